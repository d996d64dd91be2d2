/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledgements, from any thread: what is in the application's hands, and what it has done: consumer_ack.c. */
#ifndef US_KAFKA_CONSUMER_ACK_H
#define US_KAFKA_CONSUMER_ACK_H
#ifndef UNSALT_ENABLE_CORE_API
#define UNSALT_ENABLE_CORE_API
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unsalt/consumer.h>
#include <unsalt/core.h>

struct unsalt;

struct us_in_hand {
    uint64_t ticket;
    int64_t offset;
    uint32_t part; /* US_NO_PART: free */
    uint32_t generation;
};
struct us_ack_part {
    uint64_t top;         /* highest ticket handed out in this generation + 1 */
    uint32_t generation;  /* 0 = not assigned */
    uint32_t outstanding; /* handed out and not acknowledged */
};
/* ack=manual keeps every record that is in the application's hands; ack=auto keeps only the generations. */
struct us_acks {
    pthread_mutex_t lock;     /* guards everything below */
    struct us_in_hand *table;  /* open addressing, capacity a power of two */
    uint32_t capacity, count; /* at most half full */
    unsalt_token_t *queue;    /* acknowledged, not told to the core yet; room for every record in the table */
    uint32_t queue_count, queue_capacity;
    struct us_ack_part *parts; /* by index of the core */
    uint32_t parts_count;
    atomic_bool waited_for; /* the consumer sleeps until acknowledgements come */
};

bool us_acks_init(struct us_acks *acks);
void us_acks_destroy(struct us_acks *acks);
/* Room so that n more records can be handed out and acknowledged without an allocation. False: out of memory. */
bool us_acks_reserve(struct us_acks *acks, uint32_t n);
bool us_acks_open(struct us_acks *acks, uint32_t part, uint32_t generation); /* false: out of memory */
/*
 * Tells the core all that was acknowledged, and ends the generation, in one: NO_ERROR means that the core has it, from
 * then on the answer is __STATE. To be called before the last commit, and before the core ends the partition.
 */
void us_acks_close(struct unsalt *u, uint32_t part);
void us_acks_close_going(struct unsalt *u, bool all); /* the same for what is revoking, or for all */
void us_acks_hand(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n); /* reserved before */
void us_acks_apply(struct unsalt *u);  /* tells the core */
/* As unsalt_ack() of each, under one lock. */
void us_acks_done(struct unsalt *u, const unsalt_token_t *tokens, uint32_t n);
/* They stay unacknowledged, in nobody's hands. */
void us_acks_take_back(struct unsalt *u, const unsalt_token_t *tokens, uint32_t n);
uint32_t us_acks_outstanding(struct us_acks *acks, uint32_t part); /* US_NO_PART: of all partitions */
#endif
