/* SPDX-License-Identifier: BSD-2-Clause */
#include <support/check.h>
#include <support/stage.h>

typedef void spoil_t(unsalt_core_params_t *params);

static void refused(spoil_t *spoil, const char *what) {
    unsalt_core_params_t params;
    struct failmem mem;
    char errstr[128] = "";
    failmem_init(&mem);
    unsalt_core_params_init(&params);
    params.mem = mem.mem;
    spoil(&params);
    unsalt_core_t *core = unsalt_core_new(&params, errstr, sizeof(errstr));
    CHECK_THAT(!core, "%s was accepted", what);
    CHECK_THAT(errstr[0], "%s was refused without a reason", what);
    CHECK(!unsalt_core_new(&params, NULL, 0));
    CHECK(failmem_is_balanced(&mem));
}

#define REFUSED(name, field, value)                          \
    static void spoil_##name(unsalt_core_params_t *params) { \
        params->field = value;                               \
    }                                                        \
    TEST(core_params, name##_is_refused) {                   \
        refused(spoil_##name, #field " = " #value);          \
    }

REFUSED(wrong_size, size, 1)
REFUSED(no_alloc, mem.alloc, NULL)
REFUSED(no_resize, mem.resize, NULL)
REFUSED(no_release, mem.release, NULL)
REFUSED(seq_first_reserved, seq_first, UNSALT_NO_SEQ)
REFUSED(start_unknown, start, (unsalt_start_t)77)
REFUSED(late_unknown, late, (unsalt_late_t)77)
REFUSED(clock_unknown, gap_clock, (unsalt_gap_clock_t)77)
REFUSED(policy_unknown, budget_policy, (unsalt_budget_policy_t)77)
REFUSED(budget_records_0, budget_records, 0)
REFUSED(budget_bytes_0, budget_bytes, 0)
REFUSED(session_budget_records_0, session_budget_records, 0)
REFUSED(session_budget_bytes_0, session_budget_bytes, 0)
REFUSED(release_max_0, release_max, 0)
REFUSED(sessions_max_0, sessions_max, 0)
REFUSED(skips_max_0, skips_max, 0)
REFUSED(session_id_max_0, session_id_max, 0)
REFUSED(session_id_max_4097, session_id_max, 4097)
REFUSED(restart_k_1, restart_k, 1)

TEST(core_params, defaults_are_as_documented) {
    unsalt_core_params_t p;
    unsalt_core_params_init(&p);
    CHECK_U64(p.size, sizeof(p));
    CHECK(p.mem.alloc && p.mem.resize && p.mem.release);
    CHECK_U64(p.hash_seed, 0);
    CHECK_U64(p.seq_first, 1);
    CHECK_I64(p.start, UNSALT_START_RESUME);
    CHECK_I64(p.late, UNSALT_LATE_DELIVER);
    CHECK_U64(p.lanes, 0);
    CHECK_I64(p.gap_clock, UNSALT_CLOCK_HORIZON);
    CHECK_U64(p.gap_timeout_ns, 500 * MS);
    CHECK_U64(p.gap_stall_max_ns, 60 * SEC);
    CHECK_U64(p.gap_wait_max_ns, UNSALT_NEVER);
    CHECK_U64(p.budget_records, 1000000);
    CHECK_U64(p.budget_bytes, 1ull << 30);
    CHECK_U64(p.session_budget_records, 1000000);
    CHECK_U64(p.session_budget_bytes, 1ull << 30);
    CHECK_I64(p.budget_policy, UNSALT_BUDGET_SKIP_GAP);
    CHECK_U64(p.block_max_ns, 30 * SEC);
    CHECK_U64(p.release_max, 1024);
    CHECK_U64(p.session_ttl_ns, 3600 * SEC);
    CHECK_U64(p.sessions_max, 4000000);
    CHECK_U64(p.remembered_max, 4000000);
    CHECK_U64(p.skips_max, 32);
    CHECK_U64(p.session_id_max, 256);
    CHECK_U64(p.restart_k, 5);
    CHECK_U64(p.restart_quiet_ns, SEC);
}

TEST(core_params, the_extremes_are_accepted) {
    struct stage s;
    stage_init(&s);
    s.params.seq_first = UINT64_MAX - 1;
    s.params.gap_timeout_ns = UNSALT_NEVER;
    s.params.gap_stall_max_ns = s.params.gap_wait_max_ns = s.params.session_ttl_ns = UNSALT_NEVER;
    s.params.block_max_ns = s.params.restart_quiet_ns = UNSALT_NEVER;
    s.params.budget_records = s.params.session_budget_records = (uint64_t)1 << 31;
    s.params.budget_bytes = s.params.session_budget_bytes = INT64_MAX;
    s.params.release_max = s.params.sessions_max = UINT32_MAX;
    s.params.skips_max = 1 << 20;
    s.params.restart_k = 1024;
    s.params.remembered_max = 0;
    s.params.session_id_max = 4096;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", UINT64_MAX - 1);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "a18446744073709551614");
    stage_close(&s);
}

TEST(core_params, null_is_no_core_and_destroys_nothing) {
    unsalt_core_destroy(NULL);
}

TEST(core_params, events_have_names) {
    CHECK_STR(unsalt_core_event_name(UNSALT_CORE_EV_GAP), "gap");
    CHECK_STR(unsalt_core_event_name(UNSALT_CORE_EV_FORGOTTEN), "forgotten");
    CHECK_STR(unsalt_core_event_name(UNSALT_CORE_EV__CNT), "?");
    CHECK_STR(unsalt_core_event_name((unsalt_core_event_type_t)-1), "?");
}
