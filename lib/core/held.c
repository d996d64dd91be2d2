/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/held.h>

static const uint16_t capacity_of[US_CHUNK_CLASSES] = {1, 3, 7, 15};
#define SPARES_MAX 64

static struct us_chunk *chunk_get(struct us_chunks *chunks, uint32_t class_) {
    struct us_chunk *chunk = chunks->spare[class_];
    if (chunk) {
        chunks->spare[class_] = chunk->next;
        chunks->spares[class_]--;
    } else {
        chunk = us_alloc(chunks->mem, sizeof(*chunk) + capacity_of[class_] * sizeof(struct us_held));
        if (!chunk) {
            return NULL;
        }
        chunk->capacity = capacity_of[class_];
        chunk->class_ = (uint16_t)class_;
    }
    chunk->next = NULL;
    return chunk;
}

static void chunk_put(struct us_chunks *chunks, struct us_chunk *chunk) {
    uint32_t class_ = chunk->class_;
    if (chunks->spares[class_] >= SPARES_MAX) {
        us_free(chunks->mem, chunk);
        return;
    }
    chunk->next = chunks->spare[class_];
    chunks->spare[class_] = chunk;
    chunks->spares[class_]++;
}

void us_chunks_destroy(struct us_chunks *chunks) {
    for (int i = 0; i < US_CHUNK_CLASSES; i++) {
        while (chunks->spare[i]) {
            struct us_chunk *next = chunks->spare[i]->next;
            us_free(chunks->mem, chunks->spare[i]);
            chunks->spare[i] = next;
        }
        chunks->spares[i] = 0;
    }
}

struct us_held *us_fifo_grow(struct us_fifo *fifo, struct us_chunks *chunks) {
    uint32_t class_ = fifo->class_;
    if (fifo->count && class_ + 1 < US_CHUNK_CLASSES) {
        class_++;
    }
    struct us_chunk *chunk = chunk_get(chunks, class_);
    if (!chunk) {
        return NULL;
    }
    if (fifo->count) {
        fifo->tail->next = chunk;
        fifo->class_ = (uint8_t)class_;
    } else {
        fifo->head = chunk;
        fifo->first = 0;
    }
    fifo->tail = chunk;
    fifo->count++;
    fifo->end = 1;
    return &chunk->entries[0];
}

void us_fifo_next_chunk(struct us_fifo *fifo, struct us_chunks *chunks) {
    struct us_chunk *done = fifo->head;
    fifo->head = done->next;
    fifo->first = 0;
    chunk_put(chunks, done);
    if (fifo->count) {
        __builtin_prefetch(fifo->head->entries);
    }
}

void us_fifo_clear(struct us_fifo *fifo, struct us_chunks *chunks) {
    while (fifo->count) {
        us_fifo_pop(fifo, chunks);
    }
}

uint32_t us_fifo_remove_part(struct us_fifo *fifo, struct us_chunks *chunks, uint16_t part,
                             void (*gone)(void *opaque, const struct us_held *held), void *opaque) {
    uint32_t left = fifo->count, kept = 0;
    struct us_chunk *from = fifo->head, *to = fifo->head;
    uint32_t read = fifo->first, write = fifo->first;
    for (; left; left--) {
        if (read == from->capacity) {
            from = from->next;
            read = 0;
        }
        const struct us_held *entry = &from->entries[read++];
        if (entry->part == part) {
            gone(opaque, entry);
            continue;
        }
        if (write == to->capacity) {
            to = to->next;
            write = 0;
        }
        to->entries[write++] = *entry;
        kept++;
    }
    uint32_t removed = fifo->count - kept;
    if (removed == 0) {
        return 0;
    }
    struct us_chunk *rest = kept ? to->next : fifo->head;
    if (kept) {
        to->next = NULL;
    }
    while (rest) {
        struct us_chunk *next = rest->next;
        chunk_put(chunks, rest);
        rest = next;
    }
    fifo->count = kept;
    fifo->tail = to;
    fifo->end = (uint16_t)write;
    return removed;
}
