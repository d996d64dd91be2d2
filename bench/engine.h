/* SPDX-License-Identifier: BSD-2-Clause */
/* What benchmarks of the core share: a core with its partitions, and driving it. */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H
#ifndef UNSALT_ENABLE_CORE_API
#define UNSALT_ENABLE_CORE_API
#endif
#include <stddef.h>
#include <unsalt/core.h>

enum { ENGINE_BATCH = 256 };

_Noreturn void engine_failed(const char *what);
/* Zeroed; exits without memory. */
void *engine_alloc(size_t count, size_t size);

/* An allocator that counts: what is allocated now, and how often it was called. */
struct engine_memory {
    size_t bytes, calls;
};
unsalt_mem_t engine_counted(struct engine_memory *memory);

/* Defaults with start=first, gaps that are never given up, and room for everything. */
void engine_params(unsalt_core_params_t *params);
/* A core with one lane set of partitions 0..lanes-1. */
unsalt_core_t *engine_new(const unsalt_core_params_t *params, int lanes);

/* A record of which nothing is special: epoch 1, lane = partition = seq mod lanes, 200 bytes. */
unsalt_core_in_t engine_record(const void *session, uint32_t len, uint64_t seq, int lanes, int64_t offset);

/* Acknowledges what came out. */
static inline void engine_ack(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    unsalt_core_ack_batch(core, out, n);
}

/*
 * Pushes all, ENGINE_BATCH or `batch` at a time if that is less, pulls what is ready after each and acknowledges
 * everything. *now goes on by 1 us with each push. Returns how many records were handed out.
 */
size_t engine_drive(unsalt_core_t *core, const unsalt_core_in_t *in, size_t n, size_t batch, uint64_t *now);
#endif
