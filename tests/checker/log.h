/* SPDX-License-Identifier: BSD-2-Clause */
/* The log behind the checker: entries in order of their arrival, session names stored once. */
#ifndef CHECKER_LOG_H
#define CHECKER_LOG_H
#include "checker.h"
#include <stdlib.h>

enum checker_kind { CHECKER_RECORD, CHECKER_RUN, CHECKER_COMMIT };

struct checker_entry {
    enum checker_kind kind;
    uint32_t session; /* index of the name */
    int32_t partition;
    int64_t offset;
    uint64_t epoch, seq;
    uint64_t at;
};

struct checker_gap_entry {
    uint32_t session; /* index of the name */
    uint64_t epoch, first, last, due;
};

size_t checker_log_size(const checker_log_t *log);
const struct checker_entry *checker_log_at(const checker_log_t *log, size_t index);
/* Number of gaps, which stand beside the entries. */
size_t checker_log_gaps(const checker_log_t *log);
const struct checker_gap_entry *checker_log_gap_at(const checker_log_t *log, size_t index);
/* Number of distinct sessions; their indices are 0..n-1. */
uint32_t checker_log_names(const checker_log_t *log);
/* The name, terminated; borrowed until the log changes. */
const char *checker_log_name(const checker_log_t *log, uint32_t session, size_t *len);
/* Index of a name; UINT32_MAX if it is not there. */
uint32_t checker_log_find(const checker_log_t *log, const char *name, size_t len);
/* One more than the highest partition in the log. */
int32_t checker_log_partitions(const checker_log_t *log);
/* calloc(3) that ends the program instead of failing. */
void *checker_alloc(size_t count, size_t size);
#endif
