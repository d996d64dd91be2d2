/* SPDX-License-Identifier: BSD-2-Clause */
/* Why does a session wait, and why does the horizon stand? (googleapis/google-cloud-go#5905: nobody could list it) */
#include <stdio.h>
#include <string.h>
#include <support/check.h>
#include <support/stage.h>

static const char *stand(const struct stage *s, uint32_t part) {
    unsalt_core_horizon_info_t info;
    return unsalt_core_horizon_info(s->core, part, &info) ? "none" : unsalt_stand_name(info.stand);
}

static unsalt_core_session_info_t session(const struct stage *s, const char *id) {
    unsalt_core_session_info_t info = {0};
    CHECK(unsalt_core_session_info(s->core, 0, id, (uint32_t)strlen(id), &info) == UNSALT_CORE_OK);
    return info;
}

TEST(core_explain, a_session_that_waits) {
    struct stage s;
    stage_default(&s, 2);
    s.in.lanes = 2;
    s.in.since = 1;
    s.in.bytes = 70;
    stage_push_lane(&s, 1, "a", 1);
    CHECK_U64(session(&s, "a").cursor, 2);
    CHECK_U64(session(&s, "a").lowest, UNSALT_NO_SEQ);
    CHECK_U64(session(&s, "a").due, UNSALT_NEVER);
    stage_push_lane(&s, 1, "a", 5);
    unsalt_core_session_info_t info = session(&s, "a");
    CHECK_U64(info.lowest, 5);
    CHECK_U64(info.held, 1);
    CHECK_U64(info.held_bytes, 70);
    CHECK_U64(info.opened, s.now);
    CHECK_U64(info.due, s.now + 500 * MS);
    CHECK_U64(info.waits_for, UINT32_MAX);
    CHECK_U64(info.lanes, 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(session(&s, "a").waits_for, 0);
    unsalt_core_session_info_t none;
    CHECK(unsalt_core_session_info(s.core, 0, "b", 1, &none) == UNSALT_CORE_INVAL);
    CHECK(unsalt_core_session_info(s.core, 1, "a", 1, &none) == UNSALT_CORE_INVAL);
    stage_close(&s);
}

TEST(core_explain, lanes_are_those_of_what_is_missing) {
    struct stage s;
    stage_default(&s, 8);
    s.in.lanes = 4;
    s.in.since = 1;
    stage_push_lane(&s, 1, "a", 1);
    stage_push_lane(&s, 3, "a", 3); /* 2 is missing, of four lanes */
    CHECK_U64(session(&s, "a").lanes, 4);
    s.in.lanes = 8;
    s.in.since = 11;
    stage_push_lane(&s, 3, "a", 11);
    CHECK_U64(session(&s, "a").lanes, 0); /* the rule of 8 lanes doesn't speak of 2 */
    stage_close(&s);
}

TEST(core_explain, a_horizon_from_the_question_to_the_end) {
    struct stage s;
    uint32_t parts[4];
    stage_default(&s, 1);
    CHECK_STR(stand(&s, 0), "nothing");
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    stage_wait(&s, 500 * MS);
    CHECK_STR(stand(&s, 0), "to_ask");
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 1);
    CHECK_STR(stand(&s, 0), "asked");
    unsalt_core_answer(s.core, 0, unsalt_core_generation(s.core, 0), 10, s.now);
    CHECK_STR(stand(&s, 0), "behind");
    unsalt_core_horizon_info_t info;
    unsalt_core_horizon_info(s.core, 0, &info);
    CHECK_U64(info.end, 10);
    CHECK_U64(info.read, 2);
    CHECK_U64(info.waiting, 1);
    CHECK_U64(info.needed, s.now);
    unsalt_core_pause(s.core, 0, true, s.now);
    CHECK_STR(stand(&s, 0), "paused");
    unsalt_core_pause(s.core, 0, false, s.now);
    unsalt_core_eof(s.core, 0, 10, s.now);
    stage_expire(&s);
    CHECK_STR(stage_said(&s), "gap:a2-2:timeout");
    CHECK_STR(stand(&s, 0), "nothing");
    CHECK_STR(stand(&s, 7), "none");
    stage_close(&s);
}

TEST(core_explain, stalled_and_incomplete) {
    struct stage s;
    stage_init(&s);
    stage_open(&s);
    stage_assign(&s, 0, 2, -1, 0, 0);
    CHECK_STR(stand(&s, 0), "incomplete");
    stage_assign(&s, 0, 2, -1, 0, 0);
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    stage_wait(&s, 500 * MS);
    stage_wait(&s, 59 * SEC);
    CHECK_STR(stand(&s, 1), "to_ask");
    stage_close(&s);
}

TEST(core_explain, names_and_words) {
    CHECK_STR(unsalt_stand_name(UNSALT_STAND_REFUSED), "refused");
    CHECK(strlen(unsalt_stand_text(UNSALT_STAND_REFUSED)) > 10);
    CHECK_STR(unsalt_stand_name(UNSALT_STAND__CNT), "?");
    CHECK_STR(unsalt_stand_text(UNSALT_STAND__CNT), "?");
}

TEST(core_explain, a_hundred_thousand_gaps_ask_each_partition_once) {
    struct stage s;
    uint32_t parts[8];
    enum { GAPS = 100000 };
    stage_default(&s, 4);
    s.lazy = true;
    for (uint32_t i = 0; i < GAPS; i++) {
        char id[16];
        unsalt_core_in_t in = s.in;
        unsalt_core_out_t out;
        size_t n;
        int status;
        in.session = id;
        in.session_len = (uint32_t)snprintf(id, sizeof(id), "s%u", i);
        in.part = i % 4;
        in.offset = i / 4;
        in.seq = 3;
        CHECK_U64(unsalt_core_push(s.core, &in, 1, s.now, &out, &n, &status), 1);
    }
    s.now += 500 * MS;
    unsalt_core_expire(s.core, s.now);
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 8), 4);
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 8), 0);
    CHECK_U64(stage_counters(&s).questions, 4);
    CHECK_U64(stage_counters(&s).gaps_open, GAPS);
    for (uint32_t i = 0; i < 4; i++) {
        unsalt_core_answer(s.core, i, unsalt_core_generation(s.core, i), GAPS / 4, s.now + 3 * MS);
    }
    s.now += 3 * MS;
    for (int i = 0; i < GAPS && stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT] < GAPS; i++) {
        unsalt_core_event_t events[256];
        unsalt_core_out_t out[256];
        unsalt_core_expire(s.core, s.now);
        unsalt_core_events(s.core, events, 256);
        unsalt_core_pull(s.core, s.now, out, 256);
    }
    unsalt_core_counters_t counters = stage_counters(&s);
    CHECK_U64(counters.gaps[UNSALT_GAP_TIMEOUT], GAPS);
    CHECK_U64(counters.questions, 4);
    CHECK_U64(unsalt_wait_quantile(counters.overdue_count, 0.99), 3 * MS);
    unsalt_core_destroy(s.core);
    s.core = NULL;
}

TEST(core_explain, questions_keep_their_distance) {
    struct stage s;
    uint32_t parts[4];
    stage_init(&s);
    s.params.question_min_ns = 10 * MS;
    s.params.gap_timeout_ns = 0;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_expire(&s);
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 1);
    unsalt_core_answer(s.core, 0, unsalt_core_generation(s.core, 0), 1, s.now);
    stage_expire(&s);
    stage_wait(&s, 1 * MS);
    stage_push(&s, 0, "b", 2);
    stage_expire(&s);
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 0);
    CHECK_U64(unsalt_core_deadline(s.core), s.now + 9 * MS);
    stage_wait(&s, 9 * MS);
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 1);
    stage_close(&s);
}

TEST(core_explain, quantiles) {
    uint64_t count[UNSALT_WAIT_BUCKETS] = {0};
    CHECK_U64(unsalt_wait_quantile(count, 0.5), 0);
    count[2] = 98;
    count[5] = 1;
    count[UNSALT_WAIT_BUCKETS - 1] = 1;
    CHECK_U64(unsalt_wait_quantile(count, 0.5), 300 * US);
    CHECK_U64(unsalt_wait_quantile(count, 0.99), 10 * MS);
    CHECK_U64(unsalt_wait_quantile(count, 1.0), UNSALT_NEVER);
}
