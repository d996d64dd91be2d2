/* SPDX-License-Identifier: BSD-2-Clause */
/* Time limits that nobody looks at until a call returns: its thread may be the one that would have looked. */
#include <core/pipeline.h>
#include <string.h>
#include <support/check.h>
#include <support/failmem.h>

static struct failmem mem;
static struct us_pipe pipe;
static struct us_pipe_job job;

/* A record of a session whose turn has come, at time 0; limits of 100, no retry but for the one given. */
static void open_one(uint32_t retries, enum us_pipe_policy policy) {
    failmem_init(&mem);
    const struct us_pipe_params params = {
        .mem = mem.mem, .id_max = 8, .prepares = true, .records = 100, .bytes = 10000, .halted_records = 100,
        .halted_bytes = 10000, .limit_ns = {100, 100}, .retries = {retries, retries}, .policy = {policy, policy},
        .backoff_ns = 100, .backoff_max_ns = 1000,
    };
    CHECK(us_pipe_init(&pipe, &params));
    CHECK(us_pipe_reserve(&pipe, 1));
    us_pipe_enter(&pipe, &job, &(struct us_pipe_record){.id = "s", .id_len = 1, .bytes = 10, .seq = 1,
                                                        .generation = 1}, 0);
    us_pipe_turn(&pipe, &job, 0);
}

static void finish(void) {
    struct us_pipe_job *done;
    CHECK(us_pipe_conserved(&pipe));
    if (!job.left)
        us_pipe_leave(&pipe, 0, 1, 0, true);
    while ((done = us_pipe_take_done(&pipe)))
        us_pipe_forget(&pipe, done);
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}

static void prepare(void) {
    CHECK(us_pipe_next_prepare(&pipe, 0) == &job);
    CHECK(us_pipe_prepared(&pipe, &job, job.run, US_PIPE_OK, 99));
}

/* The callback may have been told that nobody waits for it: so nobody does. */
TEST(pipeline_limits, a_late_prepare_has_failed) {
    open_one(1, US_PIPE_SKIP);
    CHECK(us_pipe_next_prepare(&pipe, 0) == &job);
    CHECK(!us_pipe_is_overdue(&pipe, &job, 99));
    CHECK(us_pipe_is_overdue(&pipe, &job, 100));
    CHECK(!us_pipe_prepared(&pipe, &job, job.run, US_PIPE_OK, 100));
    CHECK(job.state == US_PIPE_RETRYING);
    CHECK_U64(job.strays, 0);
    us_pipe_expire(&pipe, 200);
    CHECK(us_pipe_next_prepare(&pipe, 200) == &job);
    CHECK(!us_pipe_prepared(&pipe, &job, job.run, US_PIPE_OK, 300));
    CHECK(job.left && job.outcome == US_PIPE_SKIPPED && job.reason == US_PIPE_TIMEOUT);
    CHECK_U64(pipe.counters.timeouts[US_PIPE_PREPARE], 2);
    CHECK_U64(pipe.counters.failures[US_PIPE_PREPARE], 2);
    finish();
}

/* It counts, and what is to be told of it is not lost though the record leaves at once. */
TEST(pipeline_limits, a_late_deliver_counts) {
    open_one(0, US_PIPE_SKIP);
    prepare();
    CHECK(!us_pipe_is_overdue(&pipe, &job, 10000));
    CHECK(us_pipe_next_step(&pipe, 200) == &job);
    CHECK(!us_pipe_is_overdue(&pipe, &job, 299));
    CHECK(us_pipe_is_overdue(&pipe, &job, 300));
    us_pipe_delivered(&pipe, &job, US_PIPE_OK, 300);
    CHECK(job.left && job.outcome == US_PIPE_DELIVERED);
    CHECK(!us_pipe_is_overdue(&pipe, &job, 10000));
    CHECK_U64(job.untold, 1u << US_PIPE_TELL_SLOW);
    CHECK(us_links_empty(&pipe.notices));
    CHECK_U64(pipe.counters.timeouts[US_PIPE_DELIVER], 1);
    CHECK_U64(pipe.counters.failures[US_PIPE_DELIVER], 0);
    finish();
}

/* Both are told, in this order; and a limit that was seen while it ran isn't seen again. */
TEST(pipeline_limits, a_late_deliver_that_halts) {
    enum us_pipe_notice what;
    open_one(0, US_PIPE_HALT);
    prepare();
    CHECK(us_pipe_next_step(&pipe, 200) == &job);
    us_pipe_expire(&pipe, 300);
    us_pipe_delivered(&pipe, &job, US_PIPE_RETRY, 400);
    CHECK(job.state == US_PIPE_HALTED && job.reason == US_PIPE_TIMEOUT);
    CHECK_U64(pipe.counters.timeouts[US_PIPE_DELIVER], 1);
    CHECK(us_pipe_take_notice(&pipe, &what) == &job && what == US_PIPE_TELL_SLOW);
    CHECK(us_pipe_take_notice(&pipe, &what) == &job && what == US_PIPE_TELL_HALTED);
    CHECK(!us_pipe_take_notice(&pipe, &what));
    finish();
}

/* Resolved before it was told: of the halt nothing is to be told any more. */
TEST(pipeline_limits, a_halt_that_is_over_is_not_told) {
    enum us_pipe_notice what;
    open_one(0, US_PIPE_HALT);
    prepare();
    CHECK(us_pipe_next_step(&pipe, 200) == &job);
    us_pipe_delivered(&pipe, &job, US_PIPE_RETRY, 400);
    CHECK(us_pipe_resolve(&pipe, 0, "s", 1, US_PIPE_TRY_AGAIN, 400));
    CHECK(us_pipe_take_notice(&pipe, &what) == &job && what == US_PIPE_TELL_SLOW);
    CHECK(!us_pipe_take_notice(&pipe, &what));
    finish();
}

/* ---- what fails while its session stops is cancelled: nothing final has happened to it */

TEST(pipeline_limits, a_prepare_that_fails_at_a_revoke) {
    open_one(0, US_PIPE_SKIP);
    CHECK(us_pipe_next_prepare(&pipe, 0) == &job);
    us_pipe_stop(&pipe, 0, 1);
    CHECK(us_pipe_prepared(&pipe, &job, job.run, US_PIPE_RETRY, 50));
    CHECK(job.left && job.outcome == US_PIPE_CANCELLED);
    CHECK_U64(pipe.counters.failures[US_PIPE_PREPARE], 1);
    CHECK_U64(pipe.counters.final_failures[US_PIPE_PREPARE], 0);
    finish();
}

TEST(pipeline_limits, a_deliver_that_fails_at_a_revoke) {
    open_one(3, US_PIPE_SKIP);
    prepare();
    CHECK(us_pipe_next_step(&pipe, 200) == &job);
    us_pipe_stop(&pipe, 0, 1);
    us_pipe_delivered(&pipe, &job, US_PIPE_RETRY, 250);
    CHECK(job.left && job.outcome == US_PIPE_CANCELLED);
    CHECK_U64(pipe.counters.failures[US_PIPE_DELIVER], 1);
    CHECK_U64(pipe.counters.final_failures[US_PIPE_DELIVER], 0);
    finish();
}

/* A record of the same session whose turn has not come: it is the core's to give up, and will be. */
TEST(pipeline_limits, an_early_prepare_that_fails_at_a_revoke) {
    static struct us_pipe_job ahead;
    open_one(0, US_PIPE_SKIP);
    prepare();
    CHECK(us_pipe_reserve(&pipe, 1));
    us_pipe_enter(&pipe, &ahead, &(struct us_pipe_record){.id = "s", .id_len = 1, .bytes = 10, .seq = 3,
                                                          .generation = 1}, 0);
    CHECK(us_pipe_next_prepare(&pipe, 0) == &ahead);
    us_pipe_stop(&pipe, 0, 1);
    CHECK(us_pipe_prepared(&pipe, &ahead, ahead.run, US_PIPE_FAIL, 50));
    CHECK(ahead.state == US_PIPE_FAILED);
    us_pipe_cancel(&pipe, &ahead);
    CHECK_U64(pipe.counters.final_failures[US_PIPE_PREPARE], 0);
    finish();
}

TEST(pipeline_limits, a_failure_that_is_final) {
    open_one(0, US_PIPE_SKIP);
    prepare();
    CHECK(us_pipe_next_step(&pipe, 200) == &job);
    us_pipe_delivered(&pipe, &job, US_PIPE_RETRY, 250);
    CHECK(job.left && job.outcome == US_PIPE_SKIPPED);
    CHECK_U64(pipe.counters.final_failures[US_PIPE_DELIVER], 1);
    finish();
}
