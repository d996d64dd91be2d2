/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements come from any thread; the core has one thread. So unsalt_ack() answers from a table of what is in
 * the application's hands, and queues the token; the polling thread tells the core. Hash: the finaliser of
 * splitmix64 (Steele, Lea, Flood 2014); tickets are ours, so nobody can choose them to collide.
 */
#include <base/hash.h>
#include <base/mem.h>
#include <kafka/consumer.h>
#include <string.h>

bool us_acks_init(struct us_acks *acks) {
    return pthread_mutex_init(&acks->lock, NULL) == 0;
}

void us_acks_destroy(struct us_acks *acks) {
    us_free(&us_mem_default, acks->table);
    us_free(&us_mem_default, acks->queue);
    us_free(&us_mem_default, acks->parts);
    pthread_mutex_destroy(&acks->lock);
}

/* ---- the table; the lock is held */

static uint32_t home(const struct us_acks *acks, uint32_t part, uint64_t ticket) {
    return (uint32_t)us_mix(ticket ^ ((uint64_t)part << 40)) & (acks->capacity - 1);
}

static void insert(struct us_acks *acks, const struct us_in_hand *handed) {
    uint32_t i = home(acks, handed->part, handed->ticket);
    while (acks->table[i].part != US_NO_PART) {
        i = (i + 1) & (acks->capacity - 1);
    }
    acks->table[i] = *handed;
    acks->count++;
}

/* The slot of a token, or capacity if it isn't there. */
static uint32_t find(const struct us_acks *acks, const unsalt_token_t *token) {
    if (acks->count == 0) {
        return acks->capacity;
    }
    uint32_t i = home(acks, token->part, token->ticket);
    while (acks->table[i].part != US_NO_PART) {
        const struct us_in_hand *h = &acks->table[i];
        if (h->ticket == token->ticket && h->part == token->part && h->generation == token->generation) {
            return i;
        }
        i = (i + 1) & (acks->capacity - 1);
    }
    return acks->capacity;
}

/* Linear probing without tombstones: what follows moves up when the hole lies between its home and it. */
static void erase(struct us_acks *acks, uint32_t hole) {
    uint32_t mask = acks->capacity - 1;
    for (uint32_t i = (hole + 1) & mask; acks->table[i].part != US_NO_PART; i = (i + 1) & mask) {
        uint32_t from = home(acks, acks->table[i].part, acks->table[i].ticket);
        if (((i - from) & mask) >= ((i - hole) & mask)) {
            acks->table[hole] = acks->table[i];
            hole = i;
        }
    }
    acks->table[hole].part = US_NO_PART;
    acks->count--;
}

static bool grow_table(struct us_acks *acks, uint64_t wanted) {
    if (2 * wanted <= acks->capacity) {
        return true;
    }
    uint32_t capacity = acks->capacity ? acks->capacity : 1024;
    while (capacity < 2 * wanted && capacity < UINT32_C(1) << 31) {
        capacity *= 2;
    }
    struct us_in_hand *table = 2 * wanted > capacity ? NULL : us_calloc(&us_mem_default, capacity, sizeof(*table));
    if (!table) {
        return false;
    }
    for (uint32_t i = 0; i < capacity; i++) {
        table[i].part = US_NO_PART;
    }
    struct us_acks old = *acks;
    acks->table = table;
    acks->capacity = capacity;
    acks->count = 0;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.table[i].part != US_NO_PART) {
            insert(acks, &old.table[i]);
        }
    }
    us_free(&us_mem_default, old.table);
    return true;
}

static bool grow_queue(struct us_acks *acks, uint64_t wanted) {
    if (wanted <= acks->queue_capacity) {
        return true;
    }
    uint64_t capacity = wanted + wanted / 2 + 1024;
    unsalt_token_t *queue = NULL;
    if (capacity <= UINT32_MAX) {
        queue = us_realloc_array(&us_mem_default, acks->queue, capacity, sizeof(*queue));
    }
    if (!queue) {
        return false;
    }
    acks->queue = queue;
    acks->queue_capacity = (uint32_t)capacity;
    return true;
}

bool us_acks_reserve(struct us_acks *acks, uint32_t n) {
    pthread_mutex_lock(&acks->lock);
    uint64_t handed = (uint64_t)acks->count + n;
    bool done = grow_table(acks, handed) && grow_queue(acks, handed + acks->queue_count);
    pthread_mutex_unlock(&acks->lock);
    return done;
}

/* ---- partitions */

bool us_acks_open(struct us_acks *acks, uint32_t part, uint32_t generation) {
    bool done = true;
    pthread_mutex_lock(&acks->lock);
    if (part >= acks->parts_count) {
        uint32_t count = part + 16;
        struct us_ack_part *parts = us_realloc_array(&us_mem_default, acks->parts, count, sizeof(*parts));
        done = parts != NULL;
        if (done) {
            memset(parts + acks->parts_count, 0, (count - acks->parts_count) * sizeof(*parts));
            acks->parts = parts;
            acks->parts_count = count;
        }
    }
    if (done) {
        acks->parts[part] = (struct us_ack_part){.generation = generation};
    }
    pthread_mutex_unlock(&acks->lock);
    return done;
}

/* What was acknowledged and not told. The lock is held. */
static void apply(struct unsalt *u) {
    struct us_acks *acks = &u->acks;
    u->loose |= acks->queue_count > 0;
    for (uint32_t i = 0; i < acks->queue_count; i++) {
        const unsalt_token_t *token = &acks->queue[i];
        unsalt_core_ack(u->core, token->part, token->generation, token->ticket);
    }
    acks->queue_count = 0;
}

/* Forgets what is outstanding of a partition. Erasing moves entries, so a slot is looked at until it holds another. */
static void forget(struct us_acks *acks, uint32_t part) {
    if (part < acks->parts_count) {
        struct us_ack_part *mine = &acks->parts[part];
        for (uint32_t i = 0; mine->outstanding > 0 && i < 2 * acks->capacity; i++) {
            uint32_t at = i & (acks->capacity - 1);
            while (acks->table[at].part == part) {
                erase(acks, at);
                mine->outstanding--;
            }
        }
        *mine = (struct us_ack_part){0};
    }
}

void us_acks_close(struct unsalt *u, uint32_t part) {
    pthread_mutex_lock(&u->acks.lock);
    apply(u);
    forget(&u->acks, part);
    pthread_mutex_unlock(&u->acks.lock);
}

void us_acks_close_going(struct unsalt *u, bool all) {
    pthread_mutex_lock(&u->acks.lock);
    apply(u);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && (all || p->revoking)) {
            forget(&u->acks, p->part);
        }
    }
    pthread_mutex_unlock(&u->acks.lock);
}

void us_acks_hand(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n) {
    struct us_acks *acks = &u->acks;
    pthread_mutex_lock(&acks->lock);
    for (uint32_t i = 0; i < n; i++) {
        if (out[i].part == US_NO_PART || out[i].reserved == US_ORPHAN) {
            continue;
        }
        const rd_kafka_message_t *message = out[i].msg;
        struct us_in_hand handed = {.ticket = out[i].ticket, .offset = message->offset, .part = out[i].part,
                                   .generation = out[i].generation};
        struct us_ack_part *part = &acks->parts[out[i].part];
        insert(acks, &handed);
        part->outstanding++;
        part->top = out[i].ticket >= part->top ? out[i].ticket + 1 : part->top;
    }
    pthread_mutex_unlock(&acks->lock);
}

void us_acks_apply(struct unsalt *u) {
    pthread_mutex_lock(&u->acks.lock);
    apply(u);
    pthread_mutex_unlock(&u->acks.lock);
}

uint32_t us_acks_outstanding(struct us_acks *acks, uint32_t part) {
    pthread_mutex_lock(&acks->lock);
    uint32_t n = part == US_NO_PART ? acks->count : 0;
    if (part < acks->parts_count) {
        n = acks->parts[part].outstanding;
    }
    pthread_mutex_unlock(&acks->lock);
    return n;
}

/* ---- the application's side */

static rd_kafka_resp_err_t acknowledge(struct us_acks *acks, const unsalt_token_t *token, bool manual) {
    if (token->generation == 0 || token->part >= acks->parts_count) {
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    struct us_ack_part *part = &acks->parts[token->part];
    if (part->generation != token->generation) {
        return RD_KAFKA_RESP_ERR__STATE;
    }
    if (!manual) {
        return RD_KAFKA_RESP_ERR_NO_ERROR; /* ack=auto does it at the next call */
    }
    uint32_t at = find(acks, token);
    if (at == acks->capacity) {
        return token->ticket < part->top ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    erase(acks, at);
    part->outstanding--;
    acks->queue[acks->queue_count++] = *token;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void us_acks_done(struct unsalt *u, const unsalt_token_t *tokens, uint32_t n) {
    if (n == 0) {
        return;
    }
    pthread_mutex_lock(&u->acks.lock);
    for (uint32_t i = 0; i < n; i++) {
        acknowledge(&u->acks, &tokens[i], true);
    }
    pthread_mutex_unlock(&u->acks.lock);
}

void us_acks_take_back(struct unsalt *u, const unsalt_token_t *tokens, uint32_t n) {
    struct us_acks *acks = &u->acks;
    pthread_mutex_lock(&acks->lock);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = find(acks, &tokens[i]);
        struct us_partition *p = us_partition_of(u, tokens[i].part);
        if (acks->count == 0 || at == acks->capacity) {
            continue; /* its generation is over */
        }
        erase(acks, at);
        acks->parts[tokens[i].part].outstanding--;
        p->dropped++;
    }
    pthread_mutex_unlock(&acks->lock);
}

rd_kafka_resp_err_t unsalt_ack(unsalt_t *u, unsalt_token_t token) {
    pthread_mutex_lock(&u->acks.lock);
    rd_kafka_resp_err_t err = acknowledge(&u->acks, &token, u->conf->ack == US_ACK_MANUAL);
    pthread_mutex_unlock(&u->acks.lock);
    if (atomic_load(&u->acks.waited_for)) {
        us_signal(u);
    }
    return err;
}
