/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void engine_failed(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

void *engine_alloc(size_t count, size_t size) {
    void *ptr = calloc(count, size);
    if (!ptr)
        engine_failed("out of memory");
    return ptr;
}

/* The size of a block stands in front of it. */
enum { FRONT = 16 };

static void *counted_alloc(void *user, size_t size) {
    struct engine_memory *memory = user;
    char *block = malloc(size + FRONT);
    if (!block)
        return NULL;
    memcpy(block, &size, sizeof size);
    memory->bytes += size;
    memory->calls++;
    return block + FRONT;
}

static size_t size_of(const void *ptr) {
    size_t size;
    memcpy(&size, (const char *)ptr - FRONT, sizeof size);
    return size;
}

static void counted_release(void *user, void *ptr) {
    struct engine_memory *memory = user;
    if (!ptr)
        return;
    memory->bytes -= size_of(ptr);
    free((char *)ptr - FRONT);
}

static void *counted_resize(void *user, void *ptr, size_t size) {
    void *more = counted_alloc(user, size);
    if (more && ptr) {
        memcpy(more, ptr, size_of(ptr) < size ? size_of(ptr) : size);
        counted_release(user, ptr);
    }
    return more;
}

unsalt_mem_t engine_counted(struct engine_memory *memory) {
    return (unsalt_mem_t){memory, counted_alloc, counted_resize, counted_release};
}

void engine_params(unsalt_core_params_t *params) {
    unsalt_core_params_init(params);
    params->start = UNSALT_START_FIRST;
    params->gap_timeout_ns = UNSALT_NEVER;
    params->budget_records = params->session_budget_records = 8000000;
    params->budget_bytes = params->session_budget_bytes = UINT64_C(1) << 40;
}

unsalt_core_t *engine_new(const unsalt_core_params_t *params, int lanes) {
    unsalt_core_partition_t partition = {.set = 1, .set_size = (uint32_t)lanes, .lane = -1};
    char errstr[256];
    unsalt_core_t *core = unsalt_core_new(params, errstr, sizeof errstr);
    if (!core)
        engine_failed(errstr);
    for (int k = 0; k < lanes; k++)
        if (unsalt_core_assign(core, &partition) != k)
            engine_failed("a partition was not taken");
    return core;
}

unsalt_core_in_t engine_record(const void *session, uint32_t len, uint64_t seq, int lanes, int64_t offset) {
    uint16_t lane = (uint16_t)(seq % (uint64_t)lanes);
    return (unsalt_core_in_t){
        .session = session,
        .session_len = len,
        .part = lane,
        .seq = seq,
        .epoch = 1,
        .since = 1,
        .una = seq > 32 ? seq - 32 : 1, /* 32 records are in flight */
        .offset = offset,
        .timestamp = -1,
        .bytes = 200,
        .lane = lane,
        .lanes = (uint16_t)lanes,
        .kind = UNSALT_KIND_SEQUENCED,
    };
}

/* How many of them the application has got. */
static size_t take(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    return unsalt_core_ack_batch(core, out, n);
}

size_t engine_drive(unsalt_core_t *core, const unsalt_core_in_t *in, size_t n, size_t batch, uint64_t *now) {
    static unsalt_core_out_t out[ENGINE_BATCH];
    unsalt_core_event_t events[32];
    size_t at = 0, got = 0, n_out;
    batch = batch < ENGINE_BATCH ? batch : ENGINE_BATCH;
    while (at < n) {
        int status;
        at += unsalt_core_push(core, in + at, n - at < batch ? n - at : batch, *now += 1000, out, &n_out, &status);
        if (status < 0)
            engine_failed("a record was refused");
        got += take(core, out, n_out);
        if (status == UNSALT_CORE_PULL)
            while (unsalt_core_events(core, events, 32) == 32)
                ;
        while ((n_out = unsalt_core_pull(core, *now, out, ENGINE_BATCH)) > 0)
            got += take(core, out, n_out);
    }
    return got;
}
