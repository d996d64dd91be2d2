/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <string.h>

#define LEAST 1024

/* Addresses end in zeros: Fibonacci hashing (Knuth 6.4) spreads them. */
static uint32_t home(const struct us_early *early, const rd_kafka_message_t *message) {
    uint64_t x = (uint64_t)(uintptr_t)message * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(x >> 32) & (early->capacity - 1);
}

static uint32_t next(const struct us_early *early, uint32_t at) {
    return (at + 1) & (early->capacity - 1);
}

/* Where it is, or the free slot where it would be. */
static uint32_t place(const struct us_early *early, const rd_kafka_message_t *message) {
    uint32_t at = home(early, message);
    while (early->slots[at].message && early->slots[at].message != message) {
        at = next(early, at);
    }
    return at;
}

static bool grow(struct us_early *early) {
    uint32_t capacity = early->capacity ? 2 * early->capacity : LEAST;
    struct us_early_slot *slots = capacity ? us_calloc(&us_mem_default, capacity, sizeof(*slots)) : NULL;
    if (!slots) {
        return false;
    }
    struct us_early_slot *old = early->slots;
    uint32_t old_capacity = early->capacity;
    early->slots = slots;
    early->capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].message) {
            early->slots[place(early, old[i].message)] = old[i];
        }
    }
    us_free(&us_mem_default, old);
    return true;
}

bool us_early_has(const struct us_early *early, const rd_kafka_message_t *message) {
    return early->count > 0 && early->slots[place(early, message)].message;
}

bool us_early_has_job(const struct us_early *early, const rd_kafka_message_t *message) {
    return early->count > 0 && early->slots[place(early, message)].job;
}

/* ---- those that wait for room */

static bool waits(const struct us_early *early, const struct us_early_entry *entry) {
    if (early->count == 0) {
        return false;
    }
    const struct us_early_slot *slot = &early->slots[place(early, entry->message)];
    return slot->message && !slot->job && slot->ticket == entry->ticket;
}

static void forget_gone(struct us_early *early) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < early->queue_count; i++) {
        struct us_early_entry entry = early->queue[early->queue_first + i];
        if (waits(early, &entry)) {
            early->queue[kept++] = entry;
        }
    }
    early->queue_first = 0;
    early->queue_count = kept;
}

/* Grows only when those that wait fill half of it; else what has gone makes room for as many again. 0: no memory. */
static uint64_t enqueue(struct us_early *early, const rd_kafka_message_t *message) {
    if (early->queue_first + early->queue_count == early->queue_capacity) {
        forget_gone(early);
        if (2 * early->queue_count >= early->queue_capacity) {
            struct us_early_entry *queue = us_array_room(&us_mem_default, early->queue, &early->queue_capacity,
                                                         early->queue_capacity, LEAST, sizeof(*queue));
            if (!queue) {
                return 0;
            }
            early->queue = queue;
        }
    }
    struct us_early_entry entry = {.message = message, .ticket = ++early->tickets};
    early->queue[early->queue_first + early->queue_count++] = entry;
    return entry.ticket;
}

const rd_kafka_message_t *us_early_oldest(struct us_early *early) {
    while (early->queue_count > 0) {
        const struct us_early_entry *entry = &early->queue[early->queue_first];
        if (waits(early, entry)) {
            return entry->message;
        }
        early->queue_first++;
        early->queue_count--;
    }
    early->queue_first = 0;
    return NULL;
}

/* ---- in and out */

bool us_early_put(struct us_early *early, const rd_kafka_message_t *message, struct us_job *job, bool fits) {
    if (2 * ((uint64_t)early->count + 1) > early->capacity && !grow(early)) {
        return false;
    }
    bool queued = !job && fits;
    uint64_t ticket = queued ? enqueue(early, message) : 0;
    if (queued && ticket == 0) {
        return false;
    }
    early->slots[place(early, message)] = (struct us_early_slot){.message = message, .job = job, .ticket = ticket};
    early->count++;
    early->waiting += !job;
    return true;
}

void us_early_started(struct us_early *early, const rd_kafka_message_t *message, struct us_job *job) {
    early->slots[place(early, message)].job = job;
    early->waiting--;
}

/* Linear probing without tombstones: what follows moves up when the hole lies between its home and it. */
static void erase(struct us_early *early, uint32_t hole) {
    uint32_t mask = early->capacity - 1;
    for (uint32_t i = next(early, hole); early->slots[i].message; i = next(early, i)) {
        uint32_t from = home(early, early->slots[i].message);
        if (((i - from) & mask) >= ((i - hole) & mask)) {
            early->slots[hole] = early->slots[i];
            hole = i;
        }
    }
    early->slots[hole] = (struct us_early_slot){0};
    early->count--;
}

bool us_early_take(struct us_early *early, const rd_kafka_message_t *message, struct us_job **job) {
    if (early->count == 0) {
        return false;
    }
    uint32_t at = place(early, message);
    if (!early->slots[at].message) {
        return false;
    }
    *job = early->slots[at].job;
    early->waiting -= !*job;
    erase(early, at);
    return true;
}

void us_early_free(struct us_early *early) {
    us_free(&us_mem_default, early->slots);
    us_free(&us_mem_default, early->queue);
}
