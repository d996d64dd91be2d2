/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/consumer.h>
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

static void drop(struct us_ring *ring, const unsalt_core_out_t *out) {
    rd_kafka_message_destroy(out->msg);
    if (out->part != US_NO_PART) {
        ring->ready[out->state]--;
        ring->revoked[out->state]++;
        ring->orphans -= out->reserved == US_ORPHAN;
    }
}

static bool is_of(const unsalt_core_out_t *out, uint32_t part, uint32_t generation) {
    return out->part == part && out->generation == generation && out->reserved != US_ORPHAN;
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

void us_ring_revoke(struct us_ring *ring, uint32_t part, uint32_t generation, uint32_t set) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ring->count; i++) {
        unsalt_core_out_t *out = slot(ring, i);
        bool orphan = out->part != US_NO_PART && out->reserved == US_ORPHAN && out->ticket == set;
        if (orphan || is_of(out, part, generation)) {
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
