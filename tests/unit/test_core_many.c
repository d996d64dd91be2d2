/* SPDX-License-Identifier: BSD-2-Clause */
/* A million sessions with a gap open at once: every call stays short, and the test ends within its time by design. */
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/stage.h>

enum { MANY = 1000000, BATCH = 256 };

static size_t push_all(unsalt_core_t *core, uint64_t now, uint64_t seq, int64_t *offset) {
    static char ids[BATCH][16];
    static unsalt_core_in_t in[BATCH];
    static unsalt_core_out_t out[BATCH];
    size_t released = 0;
    for (int i = 0; i < MANY; i += BATCH) {
        int n = MANY - i < BATCH ? MANY - i : BATCH;
        for (int j = 0; j < n; j++) {
            int length = snprintf(ids[j], sizeof(ids[j]), "session-%d", i + j);
            in[j] = (unsalt_core_in_t){.session = ids[j],
                                       .session_len = (uint32_t)length,
                                       .seq = seq,
                                       .since = UNSALT_NO_SEQ,
                                       .una = UNSALT_NO_SEQ,
                                       .offset = (*offset)++,
                                       .bytes = 100};
        }
        size_t n_out = 0;
        int status = 99;
        CHECK_U64(unsalt_core_push(core, in, (size_t)n, now, out, &n_out, &status), (uint64_t)n);
        released += n_out;
    }
    return released;
}

static size_t drain(unsalt_core_t *core, uint64_t now) {
    static unsalt_core_out_t out[1024];
    static unsalt_core_event_t events[256];
    size_t released = 0, n;
    while (unsalt_core_deadline(core) <= now) {
        unsalt_core_expire(core, now);
        while (unsalt_core_events(core, events, 256) == 256) {
        }
        while ((n = unsalt_core_pull(core, now, out, 1024)) > 0)
            released += n;
    }
    while ((n = unsalt_core_pull(core, now, out, 1024)) > 0)
        released += n;
    return released;
}

static unsalt_core_t *open_core(void) {
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    params.budget_records = 3 * MANY;
    params.session_ttl_ns = 10 * SEC;
    params.start = UNSALT_START_FIRST;
    unsalt_core_t *core = unsalt_core_new(&params, NULL, 0);
    unsalt_core_partition_t partition = {.set_size = 1, .lane = -1};
    CHECK(core && unsalt_core_assign(core, &partition) == 0);
    unsalt_core_reading(core, true, SEC);
    return core;
}

TEST(core_many, gaps_are_given_up_together) {
    unsalt_core_t *core = open_core();
    int64_t offset = 0;
    uint64_t now = SEC;
    CHECK_U64(push_all(core, now, 2, &offset), 0);
    unsalt_core_counters_t c;
    unsalt_core_counters(core, &c);
    CHECK_U64(c.gaps_open, MANY);
    CHECK_U64(drain(core, now), 0);
    now += 500 * MS;
    CHECK_U64(drain(core, now), 0);
    uint32_t part;
    CHECK_U64(unsalt_core_questions(core, now, &part, 1), 1);
    unsalt_core_answer(core, 0, unsalt_core_generation(core, 0), offset, now);
    CHECK_U64(drain(core, now), MANY);
    unsalt_core_counters(core, &c);
    CHECK_U64(c.gaps[UNSALT_GAP_TIMEOUT], MANY);
    CHECK_U64(c.gaps_open, 0);
    now += 100 * SEC;
    drain(core, now);
    unsalt_core_counters(core, &c);
    CHECK_U64(c.sessions, 0);
    CHECK(unsalt_core_conserved(core));
    unsalt_core_destroy(core);
}

TEST(core_many, gaps_are_filled_one_by_one) {
    unsalt_core_t *core = open_core();
    int64_t offset = 0;
    push_all(core, SEC, 2, &offset);
    CHECK_U64(push_all(core, SEC + MS, 1, &offset), MANY);
    CHECK_U64(drain(core, SEC + 2 * MS), MANY);
    unsalt_core_counters_t c;
    unsalt_core_counters(core, &c);
    CHECK_U64(c.gaps_open, 0);
    CHECK(unsalt_core_conserved(core));
    unsalt_core_destroy(core);
}
