/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <string.h>

bool us_ring_init(struct us_ring *ring, uint32_t capacity) {
    uint32_t size = 2 * US_RING_SLACK;
    while (size < capacity + US_RING_SLACK) {
        size *= 2;
    }
    memset(ring, 0, sizeof(*ring));
    ring->slots = us_calloc(&us_mem_default, size, sizeof(*ring->slots));
    ring->capacity = ring->slots ? size : 0;
    return ring->slots != NULL;
}

void us_ring_destroy(struct us_ring *ring) {
    us_free(&us_mem_default, ring->slots);
    ring->slots = NULL;
    ring->capacity = ring->count = 0;
}

uint32_t us_ring_room(const struct us_ring *ring) {
    uint32_t used = ring->count + US_RING_SLACK;
    return used < ring->capacity ? ring->capacity - used : 0;
}

bool us_ring_full(const struct us_ring *ring) {
    return ring->count == ring->capacity;
}

static unsalt_core_out_t *slot(const struct us_ring *ring, uint32_t i) {
    return &ring->slots[(ring->first + i) & (ring->capacity - 1)];
}

void us_ring_put(struct us_ring *ring, const unsalt_core_out_t *out) {
    *slot(ring, ring->count++) = *out;
    if (out->part != US_NO_PART) {
        ring->ready[out->state]++;
    }
}

void us_ring_put_plain(struct us_ring *ring, rd_kafka_message_t *message) {
    unsalt_core_out_t out = {.msg = message, .seq = UNSALT_NO_SEQ, .part = US_NO_PART};
    us_ring_put(ring, &out);
}

uint32_t us_ring_take(struct us_ring *ring, unsalt_core_out_t *out, uint32_t max) {
    uint32_t n = ring->count < max ? ring->count : max;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = *slot(ring, i);
        if (out[i].part != US_NO_PART) {
            ring->ready[out[i].state]--;
            ring->orphans -= out[i].reserved == US_ORPHAN;
        }
    }
    ring->first = (ring->first + n) & (ring->capacity - 1);
    ring->count -= n;
    return n;
}

#define MESSAGE_BYTES 384 /* of the message, what librdkafka keeps behind it and reads to destroy it, and its end */

static void prefetch(const char *message) {
    for (int at = 0; at < MESSAGE_BYTES; at += 64) {
        __builtin_prefetch(message + at);
    }
}

/*
 * They have waited, and may have left the near caches. While the application destroys one the allocator is locked, and
 * the thread of librdkafka that makes the next ones would wait for the memory too.
 */
void us_ring_prefetch(const struct us_ring *ring, const unsalt_core_out_t *taken, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) { /* the first one was fetched when it became the next */
        prefetch(taken[i].msg);
    }
    if (ring->count > 0) {
        prefetch(slot(ring, 0)->msg);
    }
}

static void drop(struct us_ring *ring, const unsalt_core_out_t *out) {
    us_pipeline_drop(ring->pipeline, out->msg);
    if (out->part != US_NO_PART) {
        ring->ready[out->state]--;
        ring->revoked[out->state]++;
        ring->orphans -= out->reserved == US_ORPHAN;
    }
}

void us_ring_refuse(struct us_ring *ring, const unsalt_core_out_t *out) {
    us_pipeline_drop(ring->pipeline, out->msg);
    ring->revoked[out->state]++;
}

static bool is_of(const unsalt_core_out_t *out, uint32_t part, uint32_t generation) {
    return out->part == part && out->generation == generation && out->reserved != US_ORPHAN;
}

bool us_ring_has(const struct us_ring *ring, uint32_t part, uint32_t generation) {
    for (uint32_t i = 0; i < ring->count; i++) {
        if (is_of(slot(ring, i), part, generation)) {
            return true;
        }
    }
    return false;
}

void us_ring_orphan(struct us_ring *ring, uint32_t part, uint32_t generation, uint32_t set) {
    for (uint32_t i = 0; i < ring->count; i++) {
        unsalt_core_out_t *out = slot(ring, i);
        if (is_of(out, part, generation)) {
            out->reserved = US_ORPHAN;
            out->ticket = set;
            ring->orphans++;
        }
    }
}

uint32_t us_ring_revoke(struct us_ring *ring, uint32_t part, uint32_t generation, uint32_t set) {
    uint32_t kept = 0, mine = 0;
    for (uint32_t i = 0; i < ring->count; i++) {
        unsalt_core_out_t *out = slot(ring, i);
        bool orphan = out->part != US_NO_PART && out->reserved == US_ORPHAN && out->ticket == set;
        if (orphan || is_of(out, part, generation)) {
            mine += !orphan;
            drop(ring, out);
        } else {
            *slot(ring, kept++) = *out;
        }
    }
    ring->count = kept;
    return mine;
}

void us_ring_drop_eof(struct us_ring *ring, const char *topic, int32_t partition) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ring->count; i++) {
        unsalt_core_out_t *out = slot(ring, i);
        const rd_kafka_message_t *message = out->msg;
        if (out->part == US_NO_PART && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF &&
            message->partition == partition && strcmp(rd_kafka_topic_name(message->rkt), topic) == 0) {
            drop(ring, out);
        } else {
            *slot(ring, kept++) = *out;
        }
    }
    ring->count = kept;
}

void us_ring_revoke_all(struct us_ring *ring) {
    for (uint32_t i = 0; i < ring->count; i++) {
        drop(ring, slot(ring, i));
    }
    ring->count = 0;
}
