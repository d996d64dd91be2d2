/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session that holds one record above a gap dozes when others are awake: nobody notices. With nothing to stay awake
 * for, every such session dozes as soon as another one's record comes.
 */
#include <core/doze.h>
#include <string.h>
#include <support/check.h>
#include <support/stage.h>

static void begin(struct stage *s) {
    stage_open(s);
    stage_parts(s, 0, 2, true, 0, 0);
    s->core->awake_max = 0;
    s->in.lanes = 2;
    s->in.since = 1;
}

/* "a" has shown number 1 and holds 3; then "b" comes. */
static void hold_one(struct stage *s) {
    stage_push_lane(s, 1, "a", 1);
    stage_push_lane(s, 1, "a", 3);
    stage_push_lane(s, 1, "b", 1);
    stage_took(s);
}

static void open_dozing(struct stage *s) {
    stage_init(s);
    begin(s);
    hold_one(s);
    CHECK_THAT(s->core->sets->doze_first, "the session is awake");
    CHECK(!s->core->sets->doze_first->next);
}

static bool any_dozes(const struct stage *s) {
    return s->core->sets->doze_first != NULL;
}

static unsalt_core_session_info_t info_of(const struct stage *s, const char *id) {
    unsalt_core_session_info_t info;
    memset(&info, 0, sizeof(info));
    CHECK(unsalt_core_session_info(s->core, 0, id, (uint32_t)strlen(id), &info) == UNSALT_CORE_OK);
    return info;
}

TEST(core_doze, it_wakes_for_its_number) {
    struct stage s;
    open_dozing(&s);
    CHECK(stage_push_lane(&s, 0, "a", 2));
    CHECK_STR(stage_took(&s), "a2 a3");
    CHECK(!any_dozes(&s));
    CHECK(stage_push_lane(&s, 0, "a", 4));
    CHECK_STR(stage_took(&s), "a4");
    stage_close(&s);
}

TEST(core_doze, and_for_another_one_or_a_copy) {
    struct stage s;
    open_dozing(&s);
    CHECK(stage_push_lane(&s, 1, "a", 3));
    CHECK_STR(stage_took(&s), "duplicate:a3");
    CHECK(stage_push_lane(&s, 0, "a", 4));
    CHECK(stage_push_lane(&s, 0, "a", 2));
    CHECK_STR(stage_took(&s), "a2 a3 a4");
    stage_close(&s);
}

TEST(core_doze, it_is_seen_as_if_it_were_awake) {
    struct stage s;
    stage_init(&s);
    begin(&s);
    s.in.bytes = 70;
    stage_push_lane(&s, 1, "a", 1);
    stage_push_lane(&s, 1, "a", 3);
    unsalt_core_session_info_t awake = info_of(&s, "a");
    stage_push_lane(&s, 1, "b", 1);
    CHECK(any_dozes(&s));
    unsalt_core_session_info_t dozes = info_of(&s, "a");
    CHECK_U64(dozes.held, 1);
    CHECK_U64(dozes.lowest, 3);
    CHECK_U64(dozes.held_bytes, 70);
    CHECK_U64(dozes.lanes, 2);
    CHECK(memcmp(&awake, &dozes, sizeof(awake)) == 0);
    stage_close(&s);
}

TEST(core_doze, its_gap_falls_due) {
    struct stage s;
    open_dozing(&s);
    stage_wait(&s, 500 * MS);
    CHECK_STR(stage_took(&s), "");
    stage_horizon(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a3!");
    CHECK_STR(stage_said(&s), "gap:a2-2:timeout");
    stage_close(&s);
}

TEST(core_doze, proof_is_kept) {
    struct stage s;
    stage_init(&s);
    begin(&s);
    stage_push_lane(&s, 1, "a", 1);
    s.in.una = 5; /* whoever sent this knew what became of 2 and 4, so they are not on its own lane */
    stage_push_lane(&s, 1, "a", 5);
    s.in.una = UNSALT_NO_SEQ;
    stage_push_lane(&s, 1, "b", 1);
    CHECK(any_dozes(&s));
    stage_took(&s);
    s.in.una = 6;
    stage_push_lane(&s, 0, "a", 6);
    CHECK_STR(stage_took(&s), "a5! a6");
    CHECK(strstr(stage_said(&s), "proven"));
    stage_close(&s);
}

TEST(core_doze, without_lanes_too) {
    struct stage s;
    stage_init(&s);
    begin(&s);
    s.in.lanes = 0;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "b", 1);
    CHECK(any_dozes(&s));
    stage_took(&s);
    stage_push(&s, 1, "a", 5);
    stage_push(&s, 1, "a", 2);
    CHECK_STR(stage_took(&s), "a2 a3");
    stage_push(&s, 1, "a", 4);
    CHECK_STR(stage_took(&s), "a4 a5");
    stage_close(&s);
}

TEST(core_doze, a_flush_wakes_it) {
    struct stage s;
    open_dozing(&s);
    stage_flush(&s);
    CHECK_STR(stage_took(&s), "a3!");
    CHECK_STR(stage_said(&s), "gap:a2-2:flush");
    stage_close(&s);
}

TEST(core_doze, what_it_holds_is_revoked) {
    struct stage s;
    open_dozing(&s);
    stage_said(&s);
    CHECK(unsalt_core_revoke(s.core, 1, s.now) == UNSALT_CORE_OK);
    stage_pull(&s, 100);
    CHECK_STR(stage_took(&s), "revoked:a3");
    stage_close(&s);
}

TEST(core_doze, it_gives_way_when_it_has_waited_longest) {
    struct stage s;
    stage_init(&s);
    s.params.budget_records = 2;
    begin(&s);
    hold_one(&s);
    s.now += MS;
    stage_push_lane(&s, 1, "b", 3);
    CHECK(!stage_push_lane(&s, 1, "b", 5));
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK_STR(stage_took(&s), "a3!");
    CHECK(stage_push_lane(&s, 1, "b", 5));
    stage_close(&s);
}

TEST(core_doze, it_gives_way_when_it_narrows_the_window) {
    struct stage s;
    stage_init(&s);
    s.ack = true;
    s.params.budget_window = 16;
    begin(&s);
    hold_one(&s);
    uint64_t seq = 2;
    s.in.lane = 0;
    s.in.lanes = 1;
    while (stage_push(&s, 1, "b", seq))
        CHECK_THAT(++seq < 100, "the window has no end");
    CHECK_I64(s.status, UNSALT_CORE_PULL);
    CHECK(strstr(stage_took(&s), "a3!"));
    CHECK(strstr(stage_said(&s), "gap:a2-2:overflow"));
    CHECK(stage_push(&s, 1, "b", seq));
    stage_close(&s);
}

TEST(core_doze, reading_knows_what_it_waits_for) {
    struct stage s;
    unsalt_read_t advice[2];
    stage_init(&s);
    s.params.budget_records = 1;
    begin(&s);
    hold_one(&s);
    CHECK(any_dozes(&s));
    unsalt_core_read_advice(s.core, advice, 2);
    CHECK_I64(advice[0], UNSALT_READ_OWED);
    CHECK_I64(advice[1], UNSALT_READ_AHEAD);
    stage_close(&s);
}

/* The blocks that are kept for those that wake are taken by others, which don't doze. */
static void take_blocks(struct stage *s) {
    char other[] = "c";
    s->core->awake_max = 100;
    for (; s->core->spare_sessions; other[0]++)
        stage_push_lane(s, 1, other, 3);
    stage_took(s);
    stage_said(s);
}

TEST(core_doze, without_memory_it_dozes_on) {
    struct stage s;
    open_dozing(&s);
    take_blocks(&s);
    failmem_arm(&s.mem, 1, true);
    CHECK(!stage_push_lane(&s, 0, "a", 2));
    CHECK_I64(s.status, UNSALT_CORE_NOMEM);
    CHECK(unsalt_core_revoke(s.core, 0, s.now) == UNSALT_CORE_NOMEM);
    CHECK(any_dozes(&s));
    failmem_arm(&s.mem, 0, false);
    CHECK(stage_push_lane(&s, 0, "a", 2));
    CHECK_STR(stage_took(&s), "a2 a3");
    CHECK(!any_dozes(&s));
    stage_close(&s);
}

TEST(core_doze, without_memory_it_is_flushed_later) {
    struct stage s;
    open_dozing(&s);
    take_blocks(&s);
    failmem_arm(&s.mem, 1, true);
    unsalt_core_flush(s.core, s.now);
    unsalt_core_expire(s.core, s.now);
    CHECK(any_dozes(&s));
    failmem_arm(&s.mem, 0, false);
    stage_wait(&s, MS);
    CHECK(strstr(stage_took(&s), "a3!"));
    CHECK(strstr(stage_said(&s), "gap:a2-2:flush"));
    stage_close(&s);
}

TEST(core_doze, without_memory_nothing_of_a_wake_is_left) {
    for (uint64_t nth = 1; nth < 8; nth++) {
        struct stage s;
        stage_init(&s);
        begin(&s);
        s.in.lanes = 0;
        stage_push(&s, 0, "a", 1);
        stage_push(&s, 0, "a", 3);
        stage_push(&s, 0, "b", 1);
        CHECK(any_dozes(&s));
        s.in.lanes = 2;
        take_blocks(&s);
        s.in.lanes = 0;
        failmem_arm(&s.mem, nth, true);
        bool taken = stage_push(&s, 1, "a", 2);
        failmem_arm(&s.mem, 0, false);
        CHECK(taken || stage_push(&s, 1, "a", 2));
        CHECK_STR(stage_took(&s), "a2 a3");
        stage_close(&s); /* no memory is left */
    }
}

/* Policy block, a full budget: "a" dozes and has waited longest, and no block is kept for it. */
static void block(struct stage *s) {
    stage_init(s);
    s->params.budget_policy = UNSALT_BUDGET_BLOCK;
    s->params.block_max_ns = 100 * MS;
    s->params.budget_records = 3;
    s->params.gap_timeout_ns = UNSALT_NEVER;
    begin(s);
    hold_one(s);
    s->core->awake_max = 100;
    s->now += MS;
    stage_push_lane(s, 1, "c", 3);
    stage_push_lane(s, 1, "b", 3);
    CHECK(any_dozes(s) && !s->core->spare_sessions);
    CHECK(!stage_push_lane(s, 1, "b", 5));
    CHECK_I64(s->status, UNSALT_CORE_BLOCKED);
    s->now += 100 * MS;
}

TEST(core_doze, without_memory_nobody_is_blocked_once_more) {
    struct stage s;
    block(&s);
    failmem_arm(&s.mem, 1, true);
    CHECK(!stage_push_lane(&s, 1, "b", 5));
    CHECK_I64(s.status, UNSALT_CORE_NOMEM);
    failmem_arm(&s.mem, 0, false);
    CHECK(!stage_push_lane(&s, 1, "b", 5));
    s.now += MS;
    CHECK(stage_push_lane(&s, 1, "b", 5) || stage_push_lane(&s, 1, "b", 5));
    CHECK_STR(stage_took(&s), "a3!");
    stage_close(&s);
}

TEST(core_doze, nor_by_an_expire) {
    struct stage s;
    block(&s);
    failmem_arm(&s.mem, 1, true);
    unsalt_core_expire(s.core, s.now);
    failmem_arm(&s.mem, 0, false);
    CHECK(any_dozes(&s));
    CHECK_U64(unsalt_core_deadline(s.core), s.now + MS);
    stage_wait(&s, MS);
    CHECK_STR(stage_took(&s), "a3!");
    stage_close(&s);
}
