/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports as stories (docs/past.md): timers, clocks, and what a lag of zero is worth. */
#include <kafka/clock.h>
#include <kafka/conf.h>
#include <support/check.h>
#include <support/stage.h>
#include <time.h>

static void open_with(struct stage *s, uint64_t timeout, unsalt_gap_clock_t clock, uint32_t parts) {
    stage_init(s);
    s->params.gap_timeout_ns = timeout;
    s->params.gap_clock = clock;
    stage_open(s);
    stage_parts(s, 0, parts, false, 0, 0);
}

static void answer(struct stage *s, uint32_t part, int64_t end) {
    unsalt_core_answer(s->core, part, unsalt_core_generation(s->core, part), end, s->now);
    stage_expire(s);
}

/* spring-projects/spring-integration#2999: the timeout didn't come when records bore different timestamps. */
TEST(past_timers, timestamps_of_records_do_not_move_the_timer) {
    static const int64_t stamps[][3] = {{-1, -1, -1}, {0, 0, 0}, {1000, 2000, 3000}, {3000, 2000, 1000},
                                        {INT64_MAX, 0, -1}, {0, INT64_MAX, INT64_MAX - 1}};
    for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
        struct stage s;
        open_with(&s, 500 * MS, UNSALT_CLOCK_WALL, 1);
        for (uint64_t n = 0; n < 3; n++) { /* the gap opens with the first of them */
            s.in.timestamp = stamps[i][n];
            stage_push(&s, 0, "a", 4 - n);
            stage_wait(&s, 100 * MS);
        }
        stage_wait(&s, 200 * MS - 1);
        CHECK_STR(stage_took(&s), "");
        stage_wait(&s, 1);
        CHECK_STR(stage_took(&s), "a2! a3 a4");
        CHECK_U64(s.event.waited_ns, 500 * MS);
        stage_close(&s);
    }
}

/* A key of the configuration in milliseconds, as the core gets it. */
static uint64_t configured(const char *value) {
    unsalt_core_params_t params;
    unsalt_conf_t *conf = unsalt_conf_new();
    CHECK(conf && unsalt_conf_set(conf, "gap.timeout.ms", value, NULL, 0) == UNSALT_CONF_OK);
    unsalt_core_params_init(&params);
    us_conf_core_params(conf, &params);
    unsalt_conf_destroy(conf);
    return params.gap_timeout_ns;
}

/* apache/camel#8071 (CAMEL-18237): timeouts below a second became none. 0 is documented: at once. */
TEST(past_timers, timeouts_below_a_second_are_exact) {
    static const struct {
        const char *text;
        uint64_t ns;
    } rows[] = {{"1", MS}, {"10", 10 * MS}, {"500", 500 * MS}, {"999", 999 * MS}, {"1000", SEC}, {"1001", 1001 * MS}};
    for (size_t i = 0; i < 2 * (sizeof(rows) / sizeof(rows[0])); i++) {
        struct stage s;
        uint64_t timeout = rows[i / 2].ns;
        CHECK_U64(configured(rows[i / 2].text), timeout);
        open_with(&s, timeout, i % 2 ? UNSALT_CLOCK_HORIZON : UNSALT_CLOCK_WALL, 1);
        stage_push(&s, 0, "a", 2);
        CHECK_U64(unsalt_core_deadline(s.core), s.now + timeout);
        stage_wait(&s, timeout - 1);
        stage_horizon(&s, 0, 0);
        CHECK_STR(stage_took(&s), "");
        stage_wait(&s, 1);
        stage_horizon(&s, 0, 0);
        CHECK_STR(stage_took(&s), "a2!");
        CHECK_U64(s.event.waited_ns, timeout);
        stage_close(&s);
    }
    CHECK_U64(configured("0"), 0);
}

/* Each gap has its own time, however many there are and however their times lie. */
TEST(past_timers, timers_of_many_sessions_are_exact) {
    struct stage s;
    open_with(&s, 10 * MS, UNSALT_CLOCK_WALL, 1);
    uint64_t begun = s.now, given_up = 0;
    for (uint64_t n = 0; n < 1000; n++) {
        char name[2] = {(char)('a' + n % 26), 0};
        stage_push(&s, 0, name, 2 + n * 2);
        stage_wait(&s, 137 * US);
        if (stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT] > given_up) {
            given_up = stage_counters(&s).gaps[UNSALT_GAP_TIMEOUT];
            CHECK_THAT(s.event.waited_ns >= 10 * MS && s.event.waited_ns < 10 * MS + 137 * US,
                       "given up after %" PRIu64 " ns", s.event.waited_ns);
        }
        s.took[0] = s.said[0] = '\0';
    }
    CHECK(given_up > 900 && s.now - begun == 1000 * 137 * US);
    stage_close(&s);
}

/*
 * apache/kafka#9616 (KAFKA-10091): a lag of zero from old metadata let processing go on although records stood there.
 * Nothing that was learnt before a gap fell due decides it.
 */
TEST(past_timers, a_lag_of_zero_from_before_is_worth_nothing) {
    struct stage s;
    uint32_t parts[4];
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 2);
    unsalt_core_eof(s.core, 1, 0, s.now); /* before the gap opens: empty */
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 499 * MS);
    unsalt_core_eof(s.core, 1, 0, s.now); /* and a moment before it is due */
    stage_horizon(&s, 0, 1);
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 2);
    answer(&s, 0, 1);
    answer(&s, 1, 7); /* seven have come since */
    stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

/* A question that was sent before the gap fell due proves too little, whenever its answer comes. */
TEST(past_timers, an_answer_is_as_old_as_its_question) {
    struct stage s;
    uint32_t parts[4];
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 1);
    stage_push(&s, 0, "first", 2);
    stage_wait(&s, 200 * MS);
    stage_push(&s, 0, "second", 2);
    stage_wait(&s, 300 * MS);
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 1); /* for the first session's gap */
    stage_wait(&s, 10 * SEC);
    answer(&s, 0, 2);
    CHECK_STR(stage_took(&s), "first2!");
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 1);
    answer(&s, 0, 2);
    CHECK_STR(stage_took(&s), "second2!");
    stage_close(&s);
}

/*
 * apache/flink#5634 (FLINK-5479): an idle timeout ran out only because the consumer was busy elsewhere; data was
 * lost.
 */
TEST(past_timers, a_busy_partition_that_starves_another_condemns_nothing) {
    struct stage s;
    uint32_t parts[4];
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 2);
    stage_push(&s, 0, "a", 2);
    for (uint64_t seq = 1; seq <= 500; seq++) { /* 5 s in which partition 1 has a record that nobody reads */
        stage_push(&s, 0, "busy", seq);
        stage_wait(&s, 10 * MS);
        size_t n = unsalt_core_questions(s.core, s.now, parts, 4);
        for (size_t i = 0; i < n; i++)
            answer(&s, parts[i], parts[i] ? 1 : s.next[0]);
        CHECK_THAT(!strstr(stage_took(&s), "a2"), "given up while its number waits unread");
    }
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

/*
 * apache/flink#25167, apache/flink#25678 (FLINK-35886, FLINK-36751): an idleness clock ran while the source was
 * blocked by its own back-pressure; the repair forgot sources with a single split. Here time that isn't reading time
 * is no silence; and no due time stands alone.
 */
static void not_reading(uint32_t n, bool paused) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, n);
    stage_push(&s, 0, "a", 2);
    if (paused) {
        for (uint32_t part = 0; part < n; part++)
            unsalt_core_pause(s.core, part, true, s.now);
    } else {
        unsalt_core_reading(s.core, false, s.now);
    }
    for (int i = 0; i < 3600; i++)
        stage_wait(&s, SEC);
    CHECK_STR(stage_took(&s), "");
    for (uint32_t part = 0; paused && part < n; part++)
        unsalt_core_pause(s.core, part, false, s.now);
    unsalt_core_reading(s.core, true, s.now);
    stage_wait(&s, 59 * SEC);
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, n - 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}

TEST(past_timers, time_in_which_nothing_is_read_is_no_silence) {
    for (uint32_t n = 1; n <= 3; n++) {
        not_reading(n, false);
        not_reading(n, true);
    }
}

/*
 * berkeleydb/libdb#107, pocoproject/poco#40, cockroachdb/cockroach#5473: a clock that was called monotonic was the
 * wall clock, and a jump back held every timer up.
 */
TEST(past_timers, a_clock_that_jumps_back_holds_nothing_up) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_WALL, 1);
    s.now += 7200 * SEC;
    stage_push(&s, 0, "a", 2);
    uint64_t latest = s.now;
    s.now -= 3600 * SEC;
    stage_push(&s, 0, "b", 2); /* counts as a nanosecond after the latest time */
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "");
    CHECK_U64(unsalt_core_deadline(s.core), latest + 500 * MS);
    CHECK(stage_counters(&s).clock_regressions >= 1);
    s.now = latest + 500 * MS + 2; /* another one for the call of stage_expire() */
    stage_expire(&s);
    const char *took = stage_took(&s);
    CHECK_THAT(strstr(took, "a2!") && strstr(took, "b2!"), "took %s", took);
    CHECK(s.event.waited_ns >= 500 * MS && s.event.waited_ns < 500 * MS + 10);
    stage_close(&s);
}

/* Forward by an hour: what is due is given up once, with the time that passed; and by the horizon nothing is. */
TEST(past_timers, a_clock_that_jumps_forward_or_stands_still) {
    struct stage s;
    open_with(&s, 500 * MS, UNSALT_CLOCK_HORIZON, 2);
    stage_push(&s, 0, "a", 2);
    stage_wait(&s, 3600 * SEC);
    CHECK_STR(stage_took(&s), "");
    stage_horizon(&s, 0, 0);
    stage_push(&s, 1, "a", 1);
    CHECK_STR(stage_took(&s), "a1 a2");
    for (uint64_t seq = 4; seq < 40; seq++) { /* no time passes at all */
        stage_push(&s, 0, "a", seq);
        stage_expire(&s);
    }
    CHECK_STR(stage_took(&s), "");
    stage_push(&s, 1, "a", 3);
    CHECK_STR(stage_said(&s), "");
    CHECK_U64(s.last.seq, 39);
    stage_close(&s);
}

/* What the consumer passes on as the time is the clock that nobody can set. */
TEST(past_timers, the_clock_of_the_consumer_is_the_monotonic_one) {
    struct timespec t;
    for (int i = 0; i < 3; i++) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        uint64_t before = (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec, fine = us_clock_now();
        clock_gettime(CLOCK_MONOTONIC, &t);
        uint64_t after = (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
        CHECK(before <= fine && fine <= after);
        CHECK(us_clock_coarse() <= after && us_clock_coarse() + SEC > before);
    }
}
