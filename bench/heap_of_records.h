/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one writes first: a binary heap of records, keyed by sequence (Williams, Algorithm 232, 1964). Every record goes
 * through it; what is on top is released while it is the next number. No sessions, no duplicates, no gaps, no
 * bookkeeping: the peer has less to do than the library.
 */
#ifndef BENCH_HEAP_OF_RECORDS_H
#define BENCH_HEAP_OF_RECORDS_H
#include <stddef.h>
#include <stdint.h>

/* A record as the application needs it back: the message and where it stood, for the commit. */
struct heap_record {
    uint64_t seq;
    void *msg;
    int64_t offset;
    uint32_t part;
};

struct heap_of_records {
    struct heap_record *at; /* at[0] is the lowest */
    size_t count, room;
    uint64_t next; /* number that is released next */
};

void heap_init(struct heap_of_records *heap, size_t room, uint64_t first);
void heap_free(struct heap_of_records *heap);
/* Grows as needed. */
void heap_push(struct heap_of_records *heap, const struct heap_record *record);
/* Takes the next record in sequence off. Returns 1, or 0 if it is not there. */
int heap_release(struct heap_of_records *heap, struct heap_record *record);
#endif
