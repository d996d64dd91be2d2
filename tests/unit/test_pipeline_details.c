/* SPDX-License-Identifier: BSD-2-Clause */
/* What is counted, kept and matched: orphans by their lane set, calls over attempts that begin anew, sizes that fit. */
#include <core/pipeline.h>
#include <support/check.h>
#include <support/failmem.h>

enum { LIMIT = 100 };

static struct failmem mem;
static struct us_pipe pipe;
static struct us_pipe_job job;

static void begin(void) {
    failmem_init(&mem);
    struct us_pipe_params params = {
        .mem = mem.mem, .id_max = 8, .prepares = true, .records = 10, .bytes = 100, .halted_records = 10,
        .halted_bytes = 100, .limit_ns = {LIMIT, UNSALT_NEVER}, .retries = {1, 0},
        .policy = {US_PIPE_HALT, US_PIPE_HALT}, .backoff_ns = 10, .backoff_max_ns = 10,
    };
    CHECK(us_pipe_init(&pipe, &params) && us_pipe_reserve(&pipe, 1));
}

static void enter(uint64_t space, uint64_t set) {
    us_pipe_enter(&pipe, &job, &(struct us_pipe_record){.space = space, .set = set, .seq = UNSALT_NO_SEQ,
                                                        .generation = 1}, 0);
    us_pipe_turn(&pipe, &job, 0);
}

static void prepare(enum us_pipe_res res, uint64_t now) {
    CHECK(us_pipe_next_prepare(&pipe, now) == &job);
    CHECK(us_pipe_prepared(&pipe, &job, job.run, res, now));
}

static void end(enum us_pipe_outcome outcome) {
    CHECK(us_pipe_take_done(&pipe) == &job);
    CHECK_U64(job.outcome, outcome);
    CHECK(us_pipe_conserved(&pipe));
    us_pipe_forget(&pipe, &job);
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}

/* Those without a key are in a space of their own: an orphan among them goes with its set all the same. */
TEST(pipeline_details, an_orphan_without_a_key) {
    begin();
    enter(123456789, 7);
    prepare(US_PIPE_FAIL, 0);
    CHECK_U64(job.state, US_PIPE_HALTED);
    us_pipe_leave(&pipe, 0, 1, 7, false);
    CHECK(job.orphan);
    us_pipe_leave(&pipe, 1, 1, 6, true);
    CHECK(!job.left);
    us_pipe_leave(&pipe, 1, 1, 7, true);
    CHECK(job.left);
    end(US_PIPE_CANCELLED);
}

/* Tried again by the application's word, it isn't called for the first time. */
TEST(pipeline_details, attempts_that_begin_anew_are_retries) {
    begin();
    enter(7, 7);
    prepare(US_PIPE_FAIL, 0);
    CHECK(us_pipe_resolve(&pipe, 7, "", 0, US_PIPE_TRY_AGAIN, 5));
    prepare(US_PIPE_OK, 20);
    CHECK_U64(job.attempts[US_PIPE_PREPARE], 1);
    CHECK_U64(pipe.counters.attempts[US_PIPE_PREPARE], 2);
    CHECK_U64(pipe.counters.retries[US_PIPE_PREPARE], 1);
    CHECK_U64(pipe.counters.queued.sum_ns, 0);
    CHECK(us_pipe_next_step(&pipe, 30) == &job);
    us_pipe_delivered(&pipe, &job, US_PIPE_FAIL, 30);
    CHECK(us_pipe_resolve(&pipe, 7, "", 0, US_PIPE_TRY_AGAIN, 40));
    CHECK(us_pipe_next_step(&pipe, 50) == &job);
    us_pipe_delivered(&pipe, &job, US_PIPE_OK, 60);
    CHECK_U64(pipe.counters.retries[US_PIPE_DELIVER], 1);
    CHECK_U64(pipe.counters.turn.sum_ns, 10);
    end(US_PIPE_DELIVERED);
}

/* The newest attempt is the one that counts: a text of the one before says nothing of it. */
TEST(pipeline_details, the_newest_run_was_late) {
    begin();
    enter(7, 7);
    CHECK(us_pipe_next_prepare(&pipe, 0) == &job);
    us_pipe_expire(&pipe, LIMIT);
    CHECK(job.late && job.state == US_PIPE_RETRYING);
    us_pipe_expire(&pipe, LIMIT + 10);
    CHECK(us_pipe_next_prepare(&pipe, LIMIT + 10) == &job);
    CHECK(!job.late);
    us_pipe_expire(&pipe, 2 * LIMIT + 10);
    CHECK(job.late && job.state == US_PIPE_HALTED);
    CHECK(!us_pipe_prepared(&pipe, &job, 1, US_PIPE_OK, 300) && !us_pipe_prepared(&pipe, &job, 2, US_PIPE_OK, 300));
    us_pipe_leave(&pipe, 0, 1, 7, true);
    end(US_PIPE_CANCELLED);
}

/* What is larger than half of the bytes can't enter before its turn, however long it waits. */
TEST(pipeline_details, sizes_that_never_fit) {
    begin();
    CHECK(us_pipe_fits_early(&pipe, 50) && us_pipe_room_early(&pipe, 50));
    CHECK(!us_pipe_fits_early(&pipe, 51) && !us_pipe_room_early(&pipe, 51));
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}
