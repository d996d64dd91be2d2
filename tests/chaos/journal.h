/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of a chaos run share: a journal, the arguments, the words of a payload. Lines of a journal are
 * written by write(2) to a file that is only appended to, so they outlive a process that is killed. The words of the
 * lines stand in tests/chaos/README.md. One thread.
 */
#ifndef TESTS_CHAOS_JOURNAL_H
#define TESTS_CHAOS_JOURNAL_H
#include <librdkafka/rdkafka.h>
#include <stddef.h>
#include <stdint.h>

#define CHAOS_TOPIC "chaos" /* lane 0; lane k is CHAOS_TOPIC ".lane-k" */
#define CHAOS_GROUP "chaos"
enum { CHAOS_LANES = 4, CHAOS_PARTITIONS = 6, CHAOS_SESSION_MAX = 32 };

/* Opens, and ends the process if that fails. From now on the process ends with its parent. */
void journal_open(const char *path);
/* Adds a line, printf-like, without its newline; a time of the monotonic clock in microseconds stands behind `word`. */
void journal(const char *word, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes what was added since the last flush in one piece. journal_now() does both. */
void journal_flush(void);
void journal_now(const char *word, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Microseconds of the monotonic clock, which all processes of a machine share. */
uint64_t chaos_clock(void);
/* Sleeps so long, or until a signal comes. */
void chaos_sleep(uint64_t microseconds);
/* Ends the process with status 2 and a line on stderr. printf-like. */
_Noreturn void chaos_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The value of `name=value` among the arguments; `otherwise` if there is none. */
const char *chaos_argument(char **argv, const char *name, const char *otherwise);
long long chaos_number(char **argv, const char *name, long long otherwise);

/* A librdkafka configuration for the cluster that UNSALT_TEST_BOOTSTRAP names. */
rd_kafka_conf_t *chaos_conf(void);
void chaos_set(rd_kafka_conf_t *conf, const char *name, const char *value);

/* The lane that a topic's name tells; -1 if it is none of ours. */
int chaos_lane(const char *topic);
const char *chaos_topic(int lane, char *name, size_t size);

/* xorshift64*: the next number of a sequence; `state` is never 0. */
uint64_t chaos_random(uint64_t *state);

/* {"who":"<session>","number":<n>,"run":<epoch>,...: what a payload says for itself. */
struct chaos_name {
    char session[CHAOS_SESSION_MAX];
    uint64_t number, run;
};
/* Writes a payload of exactly `len` bytes, not terminated. */
void chaos_payload(char *payload, size_t len, const struct chaos_name *name);
/* Returns 0, or -1 if it is none of ours. */
int chaos_parse(const void *payload, size_t len, struct chaos_name *name);
#endif
