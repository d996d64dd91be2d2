/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checkpoint=topic: what a returned commit covers never comes again, whatever happens to the consumer, everything else
 * does, and no restart raises a false gap. One member that stops and starts again.
 */
#include <broker/fixture/course.h>
#include <broker/fixture/sender.h>
#include <broker/fixture/stamper.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>

enum { COLD = 100, HOT = 20000, EACH = 100 };

static void no_trouble(const struct course_member *member) {
    CHECK_U64(member->events[UNSALT_EVENT_GAP] + member->events[UNSALT_EVENT_RESUMED], 0);
    CHECK_U64(member->events[UNSALT_EVENT_CHECKPOINT_REFUSED] + member->events[UNSALT_EVENT_CHECKPOINT_IGNORED], 0);
    CHECK_U64(member->events[UNSALT_EVENT_COMMIT_FAILED], 0);
}

static unsalt_stats_t stats_of(const struct course_member *member) {
    unsalt_stats_t stats;
    unsalt_stats(member->u, &stats, sizeof stats);
    return stats;
}

static uint64_t all_open(const struct course *course) {
    uint64_t open = 0;
    for (int s = 0; s <= COLD; s++)
        open += course_open_numbers(course, s, s ? EACH : HOT);
    return open;
}

/* The cursors of each lane set are read for themselves, and records of others may have come before. */
static void wait_loaded(struct course_member *member, unsigned before) {
    unsigned sets = strcmp(member->scene->layout, "topics") == 0 ? (unsigned)member->scene->partitions : 1;
    for (double until = scene_now() + 20; member->events[UNSALT_EVENT_CHECKPOINT_LOADED] < before + sets;) {
        CHECK_THAT(scene_now() < until, "a lane set isn't loaded");
        course_poll(member, 20, 50, false);
    }
}

/*
 * Four times it stops in the middle, with some records handed out and not acknowledged; with `every`, holes stay open
 * in what it has acknowledged, and are covered all the same.
 */
static void stop_and_go(const char *layout, unsigned every, const char *const *settings) {
    struct scene scene = {.layout = layout, .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new();
    struct course course;
    struct course_member member = {.course = &course, .scene = &scene, .every = every, .settings = settings};
    course_open(&course);
    scene_open(&scene, "ckpt");
    sender_weave(&scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    for (int run = 0; run < 5; run++) {
        unsigned loaded = member.events[UNSALT_EVENT_CHECKPOINT_LOADED];
        course_join(&member);
        for (int i = 0; i < 5 && run < 4; i++) {
            CHECK_U64(course_take(&member, 1000, true), 1000);
            course_ack_late(&member, 200);
            CHECK_I64(course_commit(&member), 0);
        }
        if (run < 4) {
            CHECK_U64(course_take(&member, 777, false), 777); /* not covered: it comes again */
        } else {
            uint64_t left = all_open(&course);
            CHECK_U64(course_take(&member, left, true), left);
            course_ack_late(&member, 0);
            CHECK_I64(course_commit(&member), 0);
        }
        wait_loaded(&member, loaded);
        CHECK_THAT(run == 0 || stats_of(&member).cursors_restored > 0, "run %d knows no session", run);
        CHECK_U64(stats_of(&member).checkpoint_refused, 0);
        CHECK_I64(course_leave(&member), 0);
        no_trouble(&member);
    }
    CHECK_U64(all_open(&course), 0);
    course_close(&course);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(checkpoint, covers_in_topics, .timeout = 60) {
    stop_and_go("topics", 0, NULL);
}

Test(checkpoint, covers_in_hash_with_every_third_left_open, .timeout = 60) {
    stop_and_go("hash", 3, NULL);
}

Test(checkpoint, covers_in_topics_with_every_third_left_open, .timeout = 60) {
    stop_and_go("topics", 3, NULL);
}

/* Sessions leave memory all the time: what is remembered of them is as good. */
Test(checkpoint, covers_sessions_that_have_expired, .timeout = 60) {
    static const char *const settings[] = {"session.ttl.ms", "1", NULL};
    stop_and_go("topics", 3, settings);
}

/* ---- what isn't plain */

static void restart(struct course_member *member) {
    CHECK_I64(course_leave(member), 0);
    memset(member->events, 0, sizeof member->events);
    member->late_records = member->stale_records = member->other_records = member->dead_letters = 0;
    course_join(member);
}

/* Reads on until everything is read to its end, as far as a number of empty polls tells. */
static void read_rest(struct course_member *member) {
    for (int empty = 0; empty < 10;)
        empty = course_poll(member, 200, 100, true) ? 0 : empty + 1;
}

/*
 * Numbers are given up, then covered: what comes with them after the restart is late, a copy of what was delivered is a
 * copy, and neither is waited for again. A late one that is acknowledged is covered like others.
 */
static void given_up(const char *late) {
    const char *const settings[] = {"gap.timeout.ms", "300", "late", late, NULL};
    bool dead = strcmp(late, "deliver") != 0;
    struct scene scene = {.layout = "hash", .partitions = 4, .lanes = 4};
    checker_log_t *accepted = checker_log_new();
    struct stamper stamper;
    struct course course;
    struct course_member member = {.course = &course, .scene = &scene, .every = 3, .settings = settings};
    course_open(&course);
    scene_open(&scene, "given-up");
    stamper_open(&stamper, &scene, NULL, NULL, accepted);
    stamper_range(&stamper, "cold-0", 1, 49, 0, 0);
    stamper_range(&stamper, "cold-0", 53, 100, 60, 0);
    stamper_flush(&stamper);
    course_absent(&course, 1, 50, 52);
    course_absent(&course, 1, 60, 60);
    course_join(&member);
    CHECK_U64(course_take(&member, 96, true), 96);
    CHECK_U64(member.events[UNSALT_EVENT_GAP], 2);
    CHECK_I64(course_commit(&member), 0);
    uint64_t open = course_open_numbers(&course, 1, 100);
    CHECK_THAT(open > 20, "only %d are left open", (int)open);

    stamper_send(&stamper, "cold-0", 51);
    stamper_send(&stamper, "cold-0", 60);
    stamper_send(&stamper, "cold-0", 49);
    stamper_send(&stamper, "cold-0", 98);
    stamper_range(&stamper, "cold-0", 101, 110, 0, 0);
    stamper_flush(&stamper);
    restart(&member);
    CHECK_U64(course_take(&member, open + 10 + (dead ? 0 : 2), false), open + 10 + (dead ? 0 : 2));
    CHECK_U64(dead ? member.dead_letters : member.late_records, 2);
    CHECK_U64(member.events[UNSALT_EVENT_GAP] + member.events[UNSALT_EVENT_RESUMED], 0);
    CHECK(stats_of(&member).state[UNSALT_STATE_DUPLICATE] >= 2);

    restart(&member); /* nothing was covered */
    member.every = 0;
    CHECK_U64(course_take(&member, open + 10 + (dead ? 0 : 2), true), open + 10 + (dead ? 0 : 2));
    CHECK_U64(dead ? member.dead_letters : member.late_records, 2);
    CHECK_I64(course_commit(&member), 0);
    CHECK_U64(course_open_numbers(&course, 1, 110), 0);

    restart(&member);
    stamper_send(&stamper, "cold-0", 52);
    stamper_send(&stamper, "cold-0", 111);
    stamper_flush(&stamper);
    CHECK_U64(course_take(&member, dead ? 1 : 2, true), dead ? 1 : 2);
    read_rest(&member);
    CHECK_U64(dead ? member.dead_letters : member.late_records, 1);
    CHECK_U64(member.events[UNSALT_EVENT_GAP] + member.events[UNSALT_EVENT_RESUMED], 0);
    CHECK_I64(course_leave(&member), 0);
    stamper_close(&stamper);
    course_close(&course);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(checkpoint, what_was_given_up_is_late_after_a_restart, .timeout = 60) {
    given_up("deliver");
}

Test(checkpoint, what_was_given_up_is_a_dead_letter_after_a_restart, .timeout = 60) {
    given_up("dead-letter");
}

/*
 * A producer that restarts around the commit. As long as the application keeps something of the earlier run, for longer
 * than the later one waits for it, the session's cursor stays with that run: so what was kept comes again in its place,
 * and not as stale, which a policy might drop. What was acknowledged of the later run doesn't come again; its numbers
 * are gaps then.
 */
static void runs(uint64_t acknowledged) {
    enum { FIRST = 40, SECOND = 30 };
    struct scene scene = {.layout = "topics", .partitions = 2, .lanes = 4};
    checker_log_t *accepted = checker_log_new();
    struct stamper stamper;
    struct course course;
    struct course_member member = {.course = &course, .scene = &scene};
    int later = 1 + COURSE_SESSIONS / 2;
    course_open(&course);
    scene_open(&scene, "runs");
    stamper_open(&stamper, &scene, NULL, NULL, accepted);
    stamper_range(&stamper, "cold-0", 1, FIRST, 0, 0);
    stamper.epoch = 2;
    stamper_range(&stamper, "cold-0", 1, SECOND, 0, 0);
    stamper_flush(&stamper);
    course_join(&member);
    CHECK_U64(course_take(&member, acknowledged, true), acknowledged);
    if (acknowledged < FIRST)
        CHECK_U64(course_take(&member, FIRST - acknowledged, false), FIRST - acknowledged);
    member.every = 4;
    uint64_t more = FIRST + 20 - (acknowledged < FIRST ? FIRST : acknowledged);
    CHECK_U64(course_take(&member, more, true), more);
    CHECK_I64(course_commit(&member), 0);
    uint64_t open = course_open_numbers(&course, 1, FIRST) + course_open_numbers(&course, later, SECOND);
    CHECK_U64(course_open_numbers(&course, 1, FIRST), FIRST - acknowledged);
    stamper_range(&stamper, "cold-0", SECOND + 1, SECOND + 10, 0, 0);
    stamper_flush(&stamper);
    restart(&member);
    member.every = 0;
    CHECK_U64(course_take(&member, open + 10, true), open + 10);
    CHECK_I64(course_commit(&member), 0);
    CHECK_U64(member.stale_records, 0);
    if (acknowledged >= FIRST)
        no_trouble(&member);
    restart(&member);
    stamper_send(&stamper, "cold-0", SECOND + 11);
    stamper_flush(&stamper);
    CHECK_U64(course_take(&member, 1, true), 1);
    read_rest(&member);
    no_trouble(&member);
    CHECK_I64(course_leave(&member), 0);
    CHECK_U64(member.stale_records, 0);
    CHECK_U64(course_open_numbers(&course, later, SECOND + 11), 1);
    stamper_close(&stamper);
    course_close(&course);
    checker_log_free(accepted);
    scene_close(&scene);
}

Test(checkpoint, a_producer_restarts_before_the_commit, .timeout = 60) {
    runs(40);
}

Test(checkpoint, a_producer_restarts_before_its_end_is_acknowledged, .timeout = 60) {
    runs(37);
}
