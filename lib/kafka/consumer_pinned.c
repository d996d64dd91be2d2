/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What held messages pin. librdkafka hands out messages that lie in a buffer which lives as long as one of them: the
 * whole fetch response where the records are not compressed, else the decompressed batch (rd_kafka_op_new_fetch_msg(),
 * rd_kafka_msgset_reader_decompress()). Nothing tells which messages share one, but their addresses do: within a buffer
 * they ascend, with a record's own framing and headers between them, and a batch header now and then. So the buffers of
 * a partition are known, and how many records of each are held; as long as there is one, the others count too, though
 * they have passed. The core learns the sum.
 *
 * Where it is wrong: of a response that is not compressed and brings several partitions, only the parts are seen of
 * which something is held; and buffers that lie side by side by chance count as one, up to what a fetch may bring.
 */
#include <base/mem.h>
#include <kafka/consumer.h>

#define FRAMING 70       /* what stands around key and payload of the first record of a buffer */
#define GAP 256          /* between neighbours without big headers */
#define BATCH_HEADER 160 /* by how much a gap may be greater than the one before it */
#define AHEAD 4          /* messages that are fetched before they are looked at: they have waited */
#define GAP_MAX 65536    /* greater ones say nothing about headers */

static size_t own_bytes(const rd_kafka_message_t *message) {
    return message->len + message->key_len;
}

/* ---- the buffers of a partition */

static uint64_t beyond(const struct us_buffer *buffer) {
    return buffer->held ? buffer->bytes - buffer->own : 0;
}

/* Room for one more at the end: those that pin nothing are left out, and what is left moves to the front. */
static bool room(struct us_pins *pins) {
    if (pins->count < pins->capacity) {
        return true;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pins->count; i++) {
        if (pins->buffers[i].held) {
            pins->buffers[kept++] = pins->buffers[i];
        }
    }
    pins->hint = 0;
    pins->count = kept;
    if (kept < pins->capacity / 2) {
        return true;
    }
    uint32_t capacity = pins->capacity ? 2 * pins->capacity : 16;
    struct us_buffer *buffers = us_realloc_array(&us_mem_default, pins->buffers, capacity, sizeof(*buffers));
    if (buffers) {
        pins->buffers = buffers;
        pins->capacity = capacity;
    }
    return pins->count < pins->capacity;
}

static struct us_buffer *newest(struct us_pins *pins) {
    return pins->count ? &pins->buffers[pins->count - 1] : NULL;
}

/* Begins a buffer. One from which nothing is held makes place for it. NULL: out of memory. */
static struct us_buffer *begin(struct us_pins *pins, int64_t offset) {
    struct us_buffer *last = newest(pins);
    if (!last || last->held) {
        if (!room(pins)) {
            return NULL;
        }
        last = &pins->buffers[pins->count++];
    }
    *last = (struct us_buffer){.first = offset};
    return last;
}

/* The last buffer that begins at or below the offset; NULL: none. */
static struct us_buffer *find(struct us_pins *pins, int64_t offset) {
    uint32_t low = 0, high = pins->count;
    if (pins->hint < high && pins->buffers[pins->hint].first <= offset &&
        (pins->hint + 1 == high || pins->buffers[pins->hint + 1].first > offset)) {
        return &pins->buffers[pins->hint];
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pins->buffers[middle].first <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    pins->hint = low ? low - 1 : 0;
    return low ? &pins->buffers[low - 1] : NULL;
}

/* ---- addresses */

/* Do they follow each other in one buffer? The gap before tells how big headers are. */
static bool neighbours(const struct us_pins *pins, uintptr_t start) {
    uintptr_t gap = start - pins->newest, most = (uintptr_t)pins->gap + BATCH_HEADER;
    return pins->newest && start >= pins->newest && gap <= (most > GAP ? most : GAP);
}

/* The buffer of the next message, which is counted in. *before: what it had pinned beyond. NULL: out of memory. */
static struct us_buffer *place(struct us_pins *pins, const rd_kafka_message_t *message, uint64_t max,
                               uint64_t *before) {
    uintptr_t key = (uintptr_t)message->key, payload = (uintptr_t)message->payload;
    uintptr_t start = key ? key : payload, end = payload ? payload + message->len : key + message->key_len;
    struct us_buffer *last = newest(pins);
    bool nowhere = start == 0; /* neither key nor payload: it is where the one before it was */
    bool same = last && last->bytes <= max && (nowhere || neighbours(pins, start));
    uint64_t step = !nowhere && same ? end - pins->newest : end - start + FRAMING;
    if (!nowhere) {
        uintptr_t gap = start - pins->newest;
        pins->gap = pins->newest && gap < GAP_MAX ? (uint32_t)gap : pins->gap;
        pins->newest = end;
    }
    *before = same ? beyond(last) : 0;
    struct us_buffer *buffer = same ? last : begin(pins, message->offset);
    if (buffer) {
        buffer->bytes += step;
    }
    return buffer;
}

void us_pin(struct us_partition *p, rd_kafka_message_t *const *messages, uint32_t n, const unsalt_core_out_t *out,
            size_t n_out) {
    struct unsalt *u = p->u;
    uint64_t max = (uint64_t)u->before.fetch_max;
    uint64_t pinned = u->pinned;
    size_t left = 0;
    if (u->rehearse) {
        return; /* records that stand for others would be counted wrongly */
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t before;
        struct us_buffer *buffer = place(&p->pins, messages[i], max, &before);
        bool held = left == n_out || out[left].msg != messages[i];
        left += !held;
        if (!buffer) {
            continue;
        }
        if (held) {
            buffer->held++;
            buffer->own += own_bytes(messages[i]);
        }
        pinned += beyond(buffer) - before;
    }
    u->pinned = pinned;
    unsalt_core_pinned(u->core, u->pinned);
}

void us_unpin(struct unsalt *u, const unsalt_core_out_t *out, size_t n) {
    uint64_t pinned = u->pinned;
    for (size_t i = 0; i < n && !u->rehearse; i++) {
        if (i + AHEAD < n) {
            __builtin_prefetch(out[i + AHEAD].msg);
        }
        struct us_partition *p = us_partition_of(u, out[i].part);
        const rd_kafka_message_t *message = out[i].msg;
        struct us_buffer *buffer = p && p->generation == out[i].generation ? find(&p->pins, message->offset) : NULL;
        if (buffer && buffer->held) {
            pinned -= beyond(buffer);
            buffer->held--;
            buffer->own -= own_bytes(message);
            pinned += beyond(buffer);
        }
    }
    u->pinned = pinned;
    if (n > 0) {
        unsalt_core_pinned(u->core, u->pinned);
    }
}

void us_pins_drop(struct us_partition *p) {
    for (uint32_t i = 0; i < p->pins.count; i++) {
        p->u->pinned -= beyond(&p->pins.buffers[i]);
    }
    p->pins.count = p->pins.hint = 0;
    p->pins.newest = 0;
    unsalt_core_pinned(p->u->core, p->u->pinned);
}
