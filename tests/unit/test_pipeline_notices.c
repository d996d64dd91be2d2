/* SPDX-License-Identifier: BSD-2-Clause */
/* What is to be told of a record is told, whatever becomes of it before somebody asks. */
#include <core/pipeline.h>
#include <string.h>
#include <support/check.h>
#include <support/failmem.h>

enum { LIMIT = 100 };

static struct failmem mem;
static struct us_pipe pipe;
static struct us_pipe_job job;

/* A record that is being delivered, or buried since its deliver was refused. */
static void begin(enum us_pipe_policy policy, bool buries) {
    failmem_init(&mem);
    struct us_pipe_params params = {
        .mem = mem.mem, .id_max = 8, .records = 10, .bytes = 100, .halted_records = 10, .halted_bytes = 100,
        .limit_ns = {LIMIT, LIMIT}, .policy = {policy, policy}, .backoff_ns = 10, .backoff_max_ns = 10,
    };
    CHECK(us_pipe_init(&pipe, &params) && us_pipe_reserve(&pipe, 1));
    us_pipe_enter(&pipe, &job, &(struct us_pipe_record){.id = "s", .id_len = 1, .seq = 1, .generation = 1}, 0);
    us_pipe_turn(&pipe, &job, 0);
    CHECK(us_pipe_next_step(&pipe, 0) == &job);
    if (buries) {
        us_pipe_delivered(&pipe, &job, US_PIPE_FAIL, 0);
        CHECK(us_pipe_next_step(&pipe, 0) == &job && job.state == US_PIPE_BURYING);
    }
}

static void expect_notice(enum us_pipe_notice expected) {
    enum us_pipe_notice what = US_PIPE_TELL_NOTHING;
    CHECK((us_pipe_take_notice(&pipe, &what) == &job) == (expected != US_PIPE_TELL_NOTHING));
    CHECK_U64(what, expected);
}

/* It has left, and was told of but for `expected`. */
static void end(enum us_pipe_notice expected) {
    expect_notice(US_PIPE_TELL_NOTHING);
    CHECK(us_pipe_take_done(&pipe) == &job);
    if (expected != US_PIPE_TELL_NOTHING) {
        CHECK_U64(us_pipe_take_untold(&job), expected);
    }
    CHECK_U64(us_pipe_take_untold(&job), US_PIPE_TELL_NOTHING);
    CHECK(us_pipe_conserved(&pipe));
    us_pipe_forget(&pipe, &job);
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}

TEST(pipeline_notices, slow_and_then_delivered) {
    begin(US_PIPE_SKIP, false);
    us_pipe_expire(&pipe, LIMIT);
    us_pipe_delivered(&pipe, &job, US_PIPE_OK, LIMIT);
    end(US_PIPE_TELL_SLOW);
}

TEST(pipeline_notices, told_before_it_leaves) {
    begin(US_PIPE_SKIP, false);
    us_pipe_expire(&pipe, LIMIT);
    expect_notice(US_PIPE_TELL_SLOW);
    expect_notice(US_PIPE_TELL_NOTHING);
    us_pipe_delivered(&pipe, &job, US_PIPE_OK, LIMIT);
    end(US_PIPE_TELL_NOTHING);
}

TEST(pipeline_notices, not_buried_and_then_buried) {
    begin(US_PIPE_DEAD_LETTER, true);
    us_pipe_buried(&pipe, &job, false, 0);
    us_pipe_expire(&pipe, 10);
    CHECK(us_pipe_next_step(&pipe, 10) == &job);
    us_pipe_buried(&pipe, &job, true, 10);
    end(US_PIPE_TELL_NOT_BURIED);
}

TEST(pipeline_notices, not_buried_and_then_cancelled) {
    begin(US_PIPE_DEAD_LETTER, true);
    us_pipe_buried(&pipe, &job, false, 0);
    us_pipe_leave(&pipe, 0, 1, 0, true);
    CHECK_U64(job.outcome, US_PIPE_CANCELLED);
    end(US_PIPE_TELL_NOT_BURIED);
}

/* One kind doesn't take the place of another. */
TEST(pipeline_notices, slow_and_then_halted) {
    begin(US_PIPE_HALT, false);
    us_pipe_expire(&pipe, LIMIT);
    us_pipe_delivered(&pipe, &job, US_PIPE_FAIL, LIMIT);
    CHECK_U64(job.state, US_PIPE_HALTED);
    expect_notice(US_PIPE_TELL_SLOW);
    expect_notice(US_PIPE_TELL_HALTED);
    CHECK(us_pipe_resolve(&pipe, 0, "s", 1, US_PIPE_SKIP_IT, LIMIT));
    end(US_PIPE_TELL_NOTHING);
}

/* That it stands is no news once it doesn't; what came before still is. */
TEST(pipeline_notices, halted_and_resolved_before_anybody_asked) {
    begin(US_PIPE_HALT, false);
    us_pipe_expire(&pipe, LIMIT);
    us_pipe_delivered(&pipe, &job, US_PIPE_FAIL, LIMIT);
    CHECK(us_pipe_resolve(&pipe, 0, "s", 1, US_PIPE_TRY_AGAIN, LIMIT));
    expect_notice(US_PIPE_TELL_SLOW);
    expect_notice(US_PIPE_TELL_NOTHING);
    us_pipe_leave(&pipe, 0, 1, 0, true);
    end(US_PIPE_TELL_NOTHING);
}

TEST(pipeline_notices, halted_and_cancelled_before_anybody_asked) {
    begin(US_PIPE_HALT, false);
    us_pipe_delivered(&pipe, &job, US_PIPE_FAIL, 0);
    us_pipe_leave(&pipe, 0, 1, 0, true);
    end(US_PIPE_TELL_NOTHING);
}
