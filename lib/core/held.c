/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/near.h>

static const uint16_t capacity_of[US_CHUNK_CLASSES] = {1, 3, 7, 15};
#define SPARES_MAX 256

static struct us_chunk *chunk_get(struct us_chunks *chunks, uint32_t class_) {
    struct us_chunk *chunk = chunks->spare[class_];
    if (chunk) {
        chunks->spare[class_] = chunk->next;
        chunks->spares[class_]--;
    } else {
        chunk = us_alloc(chunks->mem, sizeof(*chunk) + capacity_of[class_] * sizeof(struct us_held_entry));
        if (!chunk) {
            return NULL;
        }
        chunk->class_ = (uint16_t)class_;
    }
    chunk->capacity = capacity_of[class_];
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
    us_near_spares_destroy(chunks);
}

/* The class of the next chunk: they grow while all that comes is of one source. */
static uint32_t next_class(const struct us_fifo *fifo, union us_source source) {
    if (fifo->count == 0) {
        return fifo->class_;
    }
    if (fifo->tail->source.all != source.all) {
        return 0;
    }
    uint32_t class_ = fifo->tail->class_;
    return class_ + 1 < US_CHUNK_CLASSES ? class_ + 1 : class_;
}

struct us_held_entry *us_fifo_grow(struct us_fifo *fifo, struct us_chunks *chunks, union us_source source) {
    uint32_t class_ = next_class(fifo, source);
    struct us_chunk *chunk = chunk_get(chunks, class_);
    if (!chunk) {
        return NULL;
    }
    chunk->source = source;
    if (fifo->count) {
        fifo->tail->next = chunk;
        fifo->tail->capacity = fifo->end;
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

static void tell_gone(const struct us_chunk *chunk, uint32_t first, uint32_t n,
                      void (*gone)(void *opaque, const struct us_held *held), void *opaque) {
    for (const struct us_held_entry *entry = &chunk->entries[first]; n > 0; n--, entry++) {
        const struct us_held held = us_held_join(entry, chunk->source);
        gone(opaque, &held);
    }
}

uint32_t us_fifo_remove_part(struct us_fifo *fifo, struct us_chunks *chunks, uint16_t part,
                             void (*gone)(void *opaque, const struct us_held *held), void *opaque) {
    struct us_chunk **link = &fifo->head, *chunk = fifo->head;
    uint32_t first = fifo->first, removed = 0;
    for (uint32_t left = fifo->count; left > 0;) {
        struct us_chunk *next = chunk->next;
        uint32_t n = chunk->capacity - first < left ? chunk->capacity - first : left;
        left -= n;
        if (chunk->source.of.part == part) {
            tell_gone(chunk, first, n, gone, opaque);
            removed += n;
            fifo->first = chunk == fifo->head ? 0 : fifo->first;
            *link = next;
            chunk_put(chunks, chunk);
        } else {
            fifo->tail = chunk;
            fifo->end = (uint16_t)(first + n);
            link = &chunk->next;
        }
        first = 0;
        chunk = next;
    }
    fifo->count -= removed;
    return removed;
}
