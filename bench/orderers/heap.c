/* SPDX-License-Identifier: BSD-2-Clause */
/* A textbook binary min-heap of records by number. It does no bookkeeping: it has less to do than the library. */
#include "orderers.h"
#include <stdlib.h>

/* A record as the application needs it back: the message and where it stood, for the commit. */
struct record {
    uint64_t seq;
    void *msg;
    int64_t offset;
    uint32_t part;
};
struct heap {
    struct record *at; /* at[0] is the lowest */
    size_t count, room;
};

static void push(struct heap *heap, const struct record *record) {
    size_t i;
    if (heap->count == heap->room) {
        heap->room = heap->room ? heap->room * 2 : 1024;
        heap->at = realloc(heap->at, heap->room * sizeof *heap->at);
        if (!heap->at)
            order_failed("heap", "out of memory");
    }
    for (i = heap->count++; i > 0; i = (i - 1) / 2) {
        size_t parent = (i - 1) / 2;
        if (heap->at[parent].seq <= record->seq)
            break;
        heap->at[i] = heap->at[parent];
    }
    heap->at[i] = *record;
}

static struct record pop(struct heap *heap) {
    struct record top = heap->at[0], last = heap->at[--heap->count];
    size_t i, child;
    for (i = 0; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count && heap->at[child + 1].seq < heap->at[child].seq)
            child++;
        if (last.seq <= heap->at[child].seq)
            break;
        heap->at[i] = heap->at[child];
    }
    heap->at[i] = last;
    return top;
}

void order_by_heap(const struct arrivals *arrivals, struct bench_runs *runs) {
    struct heap heap = {0};
    int64_t offsets[65536] = {0};
    uint64_t next = 1;
    size_t at = 0, copies = 0;
    struct bench_clock began = bench_start();
    while (at < arrivals->count) {
        size_t end = at + ARRIVALS_BATCH < arrivals->count ? at + ARRIVALS_BATCH : arrivals->count;
        for (; at < end; at++) {
            const struct arrival *arrival = &arrivals->at[at];
            struct record record = {arrival->seq, &heap, offsets[arrival->lane]++, arrival->lane};
            push(&heap, &record);
        }
        while (heap.count && heap.at[0].seq <= next) {
            struct record record = pop(&heap);
            if (record.seq == next)
                next++;
            else
                copies++;
        }
    }
    bench_stop(began, 1e9 / (double)arrivals->count, runs);
    if (next != arrivals->highest + 1 || next - 1 + copies != arrivals->count)
        order_failed("heap", "records are missing");
    free(heap.at);
}
