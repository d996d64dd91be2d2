/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap_of_records.h"
#include <stdio.h>
#include <stdlib.h>

static void *resized(void *ptr, size_t size) {
    void *more = realloc(ptr, size);
    if (!more) {
        fprintf(stderr, "bench: out of memory\n");
        exit(70);
    }
    return more;
}

void heap_init(struct heap_of_records *heap, size_t room, uint64_t first) {
    heap->at = resized(NULL, room * sizeof *heap->at);
    heap->room = room;
    heap->count = 0;
    heap->next = first;
}

void heap_free(struct heap_of_records *heap) {
    free(heap->at);
}

void heap_push(struct heap_of_records *heap, const struct heap_record *record) {
    size_t i;
    if (heap->count == heap->room) {
        heap->room *= 2;
        heap->at = resized(heap->at, heap->room * sizeof *heap->at);
    }
    for (i = heap->count++; i > 0; i = (i - 1) / 2) {
        size_t parent = (i - 1) / 2;
        if (heap->at[parent].seq <= record->seq)
            break;
        heap->at[i] = heap->at[parent];
    }
    heap->at[i] = *record;
}

int heap_release(struct heap_of_records *heap, struct heap_record *record) {
    struct heap_record last;
    size_t i, child;
    if (!heap->count || heap->at[0].seq != heap->next)
        return 0;
    *record = heap->at[0];
    heap->next++;
    last = heap->at[--heap->count];
    for (i = 0; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count && heap->at[child + 1].seq < heap->at[child].seq)
            child++;
        if (last.seq <= heap->at[child].seq)
            break;
        heap->at[i] = heap->at[child];
    }
    heap->at[i] = last;
    return 1;
}
