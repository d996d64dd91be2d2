/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges a consumer from outside: compares a log of what a cluster accepted with a log of what was delivered. Uses
 * nothing of the library, so that it can't share a mistake with it. Plain C, no Kafka. Any thread appends to a
 * log; all else is done by one thread when nobody appends.
 *
 * A record is named by (session, epoch, number), as its payload tells; where it stands by (partition, offset).
 * Partitions are small numbers of the caller's choice, one per topic and partition.
 */
#ifndef CHECKER_H
#define CHECKER_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct checker_log checker_log_t;

/* One record as a payload and a message tell it. `session` is borrowed. */
struct checker_record {
    const char *session;
    size_t session_len;
    uint64_t epoch;
    uint64_t seq;
    int32_t partition;
    int64_t offset;
    uint64_t at; /* when its acknowledgement came to its producer, ns of any clock; 0 = not noted: before all else */
};

/* A range of numbers that a consumer gave up. `session` is borrowed. */
struct checker_gap {
    const char *session;
    size_t session_len;
    uint64_t epoch;
    uint64_t first, last; /* both included */
    uint64_t due;         /* what was acknowledged before must not be in it; by the clock of checker_record::at */
};

/* Returns an empty log; ends the program with a line on stderr when out of memory, as all functions here do. */
checker_log_t *checker_log_new(void);
void checker_log_free(checker_log_t *log); /* NULL is allowed */

/* Appends a record: accepted by the cluster, or delivered to the application; the log's owner knows which. */
void checker_log_record(checker_log_t *log, const struct checker_record *record);
/* In a log of deliveries: a new run of the consuming process begins. Records may come again from here on. */
void checker_log_run(checker_log_t *log);
/* In a log of deliveries: nothing below `offset` of the partition may be delivered from here on. */
void checker_log_commit(checker_log_t *log, int32_t partition, int64_t offset);
/* In a log of deliveries: numbers were given up. */
void checker_log_gap(checker_log_t *log, const struct checker_gap *gap);
/* Number of records in the log, copies included. */
size_t checker_log_records(const checker_log_t *log);

/* What the comparison found. All counts are of records unless said otherwise. */
struct checker_report {
    uint64_t records;        /* distinct records that were accepted */
    uint64_t copies;         /* accepted again: the same name at another place */
    uint64_t holes;          /* ranges of numbers, between 1 and a session's highest accepted one, never accepted */
    uint64_t hole_numbers;   /* numbers in those ranges */
    uint64_t delivered;      /* distinct records that were delivered */
    uint64_t lost;           /* accepted and never delivered */
    uint64_t unknown;        /* delivered and never accepted */
    uint64_t repeated;       /* delivered again within the same run */
    uint64_t again;          /* delivered again in a later run: allowed above what was committed */
    uint64_t out_of_order;   /* delivered, in one run, after a higher one of its session */
    uint64_t overtaken;      /* delivered for the first time when a higher one had been delivered in an earlier run */
    uint64_t below_commit;   /* delivered from below a committed offset */
    uint64_t displacement;   /* longest way, in places, of a record from its place in its session; first run only */
    uint64_t gaps;           /* ranges that were given up */
    uint64_t false_gaps;     /* of them: those with a number whose acknowledgement came before the gap was due */
    uint64_t false_numbers;  /* such numbers */
    char fault[256];         /* the first thing that is wrong, for people; "" if nothing is */
};

/*
 * Compares. Both logs are borrowed and stay as they are. Takes O(n log n) time.
 * Right is: lost, unknown, repeated, out_of_order, overtaken, below_commit and false_gaps are 0.
 */
void checker_judge(const checker_log_t *accepted, const checker_log_t *delivered, struct checker_report *report);
/* Returns 1 if everything that has to be 0 is 0. */
int checker_clean(const struct checker_report *report);
/* Prints all counts on one line, `prefix` first. */
void checker_print(const struct checker_report *report, const char *prefix, FILE *to);

/*
 * Reads the name of a record from a payload of the form {"<word>":"<session>","<word>":<number>,"<word>":<epoch>...
 * Returns 0, or -1 if the payload is of another form. `record` gets session (into the payload), seq, epoch, and 0 for
 * `at`.
 */
int checker_parse(const void *payload, size_t len, struct checker_record *record);
/*
 * Writes such a payload, filled up with 'x' to `len` bytes. `words` are the three field names.
 * Returns `len`, or 0 if it doesn't fit.
 */
size_t checker_payload(char *buf, size_t len, const char *const words[3], const struct checker_record *record);
#endif
