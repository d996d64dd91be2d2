/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine as an object: parameters, birth and death, counters. */
#include <core/engine.h>
#include <stdio.h>

#define MS ((uint64_t)1000000)

void unsalt_core_params_init(unsalt_core_params_t *params) {
    *params = (unsalt_core_params_t){
        .size = sizeof(*params),
        .mem = us_mem_default,
        .seq_first = 1,
        .start = UNSALT_START_RESUME,
        .late = UNSALT_LATE_DELIVER,
        .malformed = UNSALT_MALFORMED_DELIVER,
        .gap_clock = UNSALT_CLOCK_HORIZON,
        .gap_proof = UNSALT_PROOF_AUTO,
        .gap_timeout_ns = 500 * MS,
        .gap_stall_max_ns = 60000 * MS,
        .gap_wait_max_ns = UNSALT_NEVER,
        .question_min_ns = 10 * MS,
        .budget_records = 1000000,
        .budget_bytes = (uint64_t)1 << 30,
        .session_budget_records = 1000000,
        .session_budget_bytes = (uint64_t)1 << 30,
        .budget_window = (uint64_t)1 << 24,
        .budget_policy = UNSALT_BUDGET_SKIP_GAP,
        .block_max_ns = 30000 * MS,
        .release_max = 1024,
        .session_ttl_ns = 3600000 * MS,
        .sessions_max = 4000000,
        .remembered_max = 4000000,
        .skips_max = 32,
        .session_id_max = 256,
        .restart_k = 5,
        .restart_quiet_ns = 1000 * MS,
    };
}

/* X(field, least, greatest): what unsalt_core_new() checks. */
#define RANGES(X)                                                                                   \
    X(seq_first, 0, UINT64_MAX - 1)                                                                 \
    X(start, UNSALT_START_FIRST, UNSALT_START_RESUME)                                               \
    X(late, UNSALT_LATE_DELIVER, UNSALT_LATE_DROP)                                                  \
    X(malformed, UNSALT_MALFORMED_DELIVER, UNSALT_MALFORMED_DEAD_LETTER)                             \
    X(gap_proof, UNSALT_PROOF_OFF, UNSALT_PROOF_TRUST)                                              \
    X(gap_clock, UNSALT_CLOCK_HORIZON, UNSALT_CLOCK_WALL)                                           \
    X(budget_policy, UNSALT_BUDGET_SKIP_GAP, UNSALT_BUDGET_FAIL)                                    \
    X(budget_window, 1, (uint64_t)1 << 31)                                                          \
    X(budget_records, 1, UINT64_MAX - 1)                                                            \
    X(budget_bytes, 1, UINT64_MAX - 1)                                                              \
    X(session_budget_records, 1, UINT64_MAX - 1)                                                    \
    X(session_budget_bytes, 1, UINT64_MAX - 1)                                                      \
    X(question_min_ns, 0, 60000 * MS)                                                               \
    X(release_max, 1, UINT32_MAX)                                                                   \
    X(sessions_max, 1, UINT32_MAX)                                                                  \
    X(remembered_max, 0, UINT32_MAX)                                                                \
    X(skips_max, 1, UINT32_MAX)                                                                       \
    X(session_id_max, 1, 4096)                                                                      \
    X(restart_k, 2, UINT32_MAX)

static bool params_valid(const unsalt_core_params_t *params, char *errstr, size_t size) {
    if (params->size != sizeof(*params)) {
        snprintf(errstr, size, "size: %zu is not that of this version (%zu): use unsalt_core_params_init()",
                 params->size, sizeof(*params));
        return false;
    }
#define X(field, least, greatest)                                                                   \
    if ((uint64_t)params->field + 1 < (uint64_t)(least) + 1 || (uint64_t)params->field > (uint64_t)(greatest)) { \
        snprintf(errstr, size, "%s: %llu is not in %llu..%llu", #field, (unsigned long long)params->field,       \
                 (unsigned long long)(least), (unsigned long long)(greatest));                      \
        return false;                                                                               \
    }
    RANGES(X)
#undef X
    if (!params->mem.alloc || !params->mem.resize || !params->mem.release) {
        snprintf(errstr, size, "mem: a function is missing");
        return false;
    }
    return true;
}

unsalt_core_t *unsalt_core_new(const unsalt_core_params_t *params, char *errstr, size_t errstr_size) {
    char unused[1];
    if (!errstr || errstr_size == 0) {
        errstr = unused;
        errstr_size = sizeof(unused);
    }
    if (!params_valid(params, errstr, errstr_size)) {
        return NULL;
    }
    struct unsalt_core *core = us_calloc(&params->mem, 1, sizeof(*core));
    if (core) {
        core->params = *params;
        core->mem = params->mem;
        core->chunks.mem = &core->mem;
        core->reading_since = UNSALT_NEVER;
        core->awake_max = US_AWAKE_MAX;
        core->blocked_since = UNSALT_NEVER;
        core->refused_until = UNSALT_NEVER;
        core->chunks.seed = params->hash_seed;
        us_remembered_init(&core->remembered, params->remembered_max, params->hash_seed);
        if (us_events_init(core)) {
            return core;
        }
        unsalt_core_destroy(core);
    }
    snprintf(errstr, errstr_size, "out of memory");
    return NULL;
}

void unsalt_core_destroy(unsalt_core_t *core) {
    if (!core) {
        return;
    }
    for (uint32_t i = 0; i < core->part_count; i++) {
        struct us_part *part = &core->parts[i];
        if (!part->set) {
            continue;
        }
        us_sessions_drop(core, part->set);
        us_set_remove(core, part->set, i);
        us_heap_destroy(&part->waiting, &core->mem);
        us_frontier_destroy(&part->frontier, &core->mem);
        us_free(&core->mem, part->handed.slots);
        us_done_before_destroy(&part->done_before, &core->mem);
    }
    us_sessions_destroy(core);
    us_taking_destroy(core);
    us_heap_destroy(&core->clock, &core->mem);
    us_remembered_destroy(&core->remembered, &core->mem);
    us_events_destroy(core);
    us_chunks_destroy(&core->chunks);
    us_free(&core->mem, core->leaving.records);
    us_free(&core->mem, core->parts);
    struct unsalt_mem mem = core->mem;
    us_free(&mem, core);
}

void unsalt_core_counters(const unsalt_core_t *core, unsalt_core_counters_t *counters) {
    *counters = core->counters;
    counters->sessions_remembered = us_remembered_count(&core->remembered);
    uint64_t open = 0;
    for (uint32_t i = 0; i < core->part_count; i++) {
        if (core->parts[i].set) {
            open += core->parts[i].frontier.open;
        }
    }
    counters->unacked = open - counters->state[UNSALT_STATE_HELD];
}

bool unsalt_core_conserved(const unsalt_core_t *core) {
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        sum += core->counters.state[i];
    }
    return sum == core->counters.received;
}
