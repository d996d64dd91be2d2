/* SPDX-License-Identifier: BSD-2-Clause */
/* DESIGN 5, "ask when due": the horizon is the time of the question once reading has passed the answered end. */
#include <support/check.h>
#include <support/stage.h>

static size_t ask(struct stage *s, uint32_t *parts) {
    return unsalt_core_questions(s->core, s->now, parts, 8);
}

static void answer(struct stage *s, uint32_t part, int64_t end) {
    unsalt_core_answer(s->core, part, unsalt_core_generation(s->core, part), end, s->now);
    stage_expire(s);
}

/* Asks and answers until nobody is asked any more; says who was. */
static unsigned ask_all(struct stage *s, const int64_t *ends) {
    uint32_t parts[8];
    unsigned who = 0;
    for (int round = 0; round < 20; round++) {
        size_t n = ask(s, parts);
        for (size_t i = 0; i < n; i++) {
            who |= 1u << parts[i];
            answer(s, parts[i], ends[parts[i]]);
        }
    }
    return who;
}

TEST(core_horizon, nobody_is_asked_before_a_gap_is_due) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 2);
    CHECK_U64(ask(&s, parts), 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS - 1);
    CHECK_U64(ask(&s, parts), 0);
    stage_wait(&s, 1);
    CHECK(ask(&s, parts) >= 1);
    CHECK_U64(ask(&s, parts), 0);
    answer(&s, 0, 1);
    answer(&s, 1, 0);
    ask_all(&s, (int64_t[]){1, 0});
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_U64(stage_counters(&s).questions, 2);
    CHECK_U64(stage_counters(&s).answers, 2);
    stage_close(&s);
}

TEST(core_horizon, the_answer_counts_from_the_question_once_reading_has_passed_it) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(ask(&s, parts), 1);
    s.now += 3 * MS;
    answer(&s, 0, 5); /* 1 was read, 4 more stand there */
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 0, "b", 1);
    stage_push(&s, 0, "b", 2);
    stage_push(&s, 0, "b", 3);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "b1 b2 b3");
    stage_push(&s, 0, "b", 4);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "b4 a2!");
    CHECK_U64(stage_counters(&s).answers, 1);
    stage_close(&s);
}

TEST(core_horizon, an_end_of_partition_passes_it_too_also_one_from_before_the_answer) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    unsalt_core_eof(s.core, 0, 3, s.now); /* two control records stand behind it; this comes once */
    stage_wait(&s, 500 * MS);
    CHECK_U64(ask(&s, parts), 1);
    answer(&s, 0, 3);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_horizon, an_open_transaction_is_waited_for) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(ask(&s, parts), 1);
    answer(&s, 0, 3); /* the record of the open transaction and more */
    unsalt_core_eof(s.core, 0, 1, s.now);
    stage_wait(&s, 20 * SEC);
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 0, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    stage_close(&s);
}

TEST(core_horizon, an_empty_partition_answers_at_once) {
    struct stage s;
    stage_init(&s);
    s.params.start = UNSALT_START_FIRST;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 77, 0);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(ask_all(&s, (int64_t[]){78, 77}), 3);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_horizon, a_failed_question_is_asked_again) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(ask(&s, parts), 1);
    answer(&s, 0, -1);
    CHECK_STR(stage_took(&s), "");
    stage_wait(&s, 10 * SEC); /* not at once, it may be */
    CHECK_U64(ask(&s, parts), 1);
    answer(&s, 0, 1);
    CHECK_STR(stage_took(&s), "a2!");
    stage_close(&s);
}

TEST(core_horizon, a_question_from_before_the_due_time_is_not_enough) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 300 * MS);
    stage_push(&s, 0, "b", 2);
    stage_wait(&s, 200 * MS);
    CHECK_U64(ask(&s, parts), 1); /* for a; b is due later */
    stage_wait(&s, 300 * MS);
    answer(&s, 0, 2);
    CHECK_STR(stage_took(&s), "a2!");
    CHECK_U64(ask(&s, parts), 1);
    answer(&s, 0, 2);
    CHECK_STR(stage_took(&s), "b2!");
    stage_close(&s);
}

TEST(core_horizon, one_question_serves_all_gaps_that_were_due) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    char name[2] = "a";
    for (; name[0] <= 'z'; name[0]++)
        stage_push(&s, 0, name, 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(ask(&s, parts), 1);
    answer(&s, 0, 26);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 26);
    CHECK_U64(stage_counters(&s).questions, 1);
    stage_close(&s);
}

TEST(core_horizon, in_a_busy_partition_the_goal_does_not_move) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    int64_t end = 1;
    bool out = false;
    for (uint64_t seq = 1; seq <= 100 && !out; seq++) { /* the end is always 20 ahead of what is read */
        if (ask(&s, parts))
            answer(&s, 0, end + 20);
        stage_push(&s, 0, "b", seq);
        end++;
        stage_wait(&s, 10 * MS);
        out = strstr(s.took, "a2!") != NULL;
    }
    CHECK_THAT(out, "the gap waits for ever behind a stream of records");
    stage_close(&s);
}

TEST(core_horizon, an_answer_of_an_old_generation_is_ignored) {
    struct stage s;
    uint32_t parts[8];
    stage_default(&s, 1);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 500 * MS);
    CHECK_U64(ask(&s, parts), 1);
    unsalt_core_answer(s.core, 0, unsalt_core_generation(s.core, 0) + 1, 1, s.now);
    unsalt_core_answer(s.core, 7, 1, 1, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "");
    stage_close(&s);
}

TEST(core_horizon, unknown_partitions_are_ignored) {
    struct stage s;
    stage_default(&s, 1);
    unsalt_core_horizon(s.core, 99, s.now, s.now);
    unsalt_core_eof(s.core, 99, 5, s.now);
    unsalt_core_pause(s.core, 99, true, s.now);
    CHECK_I64(unsalt_core_position(s.core, 99), -1);
    CHECK_U64(unsalt_core_generation(s.core, 99), 0);
    stage_close(&s);
}

TEST(core_horizon, by_the_wall_nobody_is_asked) {
    struct stage s;
    uint32_t parts[8];
    stage_init(&s);
    s.params.gap_clock = UNSALT_CLOCK_WALL;
    stage_open(&s);
    stage_parts(&s, 0, 2, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    s.now += 600 * MS;
    CHECK_U64(ask(&s, parts), 0);
    stage_close(&s);
}
