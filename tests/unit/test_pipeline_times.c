/* SPDX-License-Identifier: BSD-2-Clause */
/* What the histograms of a pipeline hold, and since when what is told of a record is so: exact, by a virtual clock. */
#include <core/pipeline.h>
#include <string.h>
#include <support/check.h>
#include <support/failmem.h>

static struct failmem mem;
static struct us_pipe pipe;
static struct us_pipe_job jobs[3];

static void open_with(bool prepares, uint32_t retries, enum us_pipe_policy policy) {
    failmem_init(&mem);
    memset(jobs, 0, sizeof jobs);
    CHECK(us_pipe_init(&pipe, &(struct us_pipe_params){
                                  .mem = mem.mem, .id_max = 8, .prepares = prepares, .records = 100, .bytes = 1000,
                                  .halted_records = 100, .halted_bytes = 1000, .limit_ns = {UNSALT_NEVER, 100},
                                  .retries = {retries, retries}, .policy = {policy, policy}, .backoff_ns = 1,
                                  .backoff_max_ns = 1}));
}

static void enter(int i, uint64_t now) {
    CHECK(us_pipe_reserve(&pipe, 1));
    us_pipe_enter(&pipe, &jobs[i], &(struct us_pipe_record){.id = "s", .id_len = 1, .seq = (uint64_t)i + 1,
                                                            .generation = 1}, now);
}

static void finish(void) {
    struct us_pipe_job *job;
    CHECK(us_pipe_conserved(&pipe));
    us_pipe_leave(&pipe, 0, 1, 0, true);
    for (int i = 0; i < 3; i++)
        if (jobs[i].session && !jobs[i].left)
            us_pipe_cancel(&pipe, &jobs[i]);
    while ((job = us_pipe_take_done(&pipe)))
        us_pipe_forget(&pipe, job);
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}

static uint64_t counted(const struct us_pipe_times *times) {
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++)
        sum += times->count[i];
    return sum;
}

static void prepare(int i, uint64_t from, uint64_t to, enum us_pipe_res res) {
    CHECK(us_pipe_next_prepare(&pipe, from) == &jobs[i]);
    CHECK(us_pipe_prepared(&pipe, &jobs[i], jobs[i].run, res, to));
}

static void deliver(int i, uint64_t from, uint64_t to, enum us_pipe_res res) {
    CHECK(us_pipe_next_step(&pipe, from) == &jobs[i]);
    us_pipe_delivered(&pipe, &jobs[i], res, to);
}

/* Each call counts where calls are counted; a record counts once where it waited. */
TEST(pipeline_times, of_each_step) {
    open_with(true, 1, US_PIPE_SKIP);
    enter(0, 1000);
    us_pipe_turn(&pipe, &jobs[0], 1010);
    prepare(0, 1007, 1040, US_PIPE_RETRY);
    us_pipe_expire(&pipe, 1060);
    prepare(0, 1061, 1080, US_PIPE_OK);
    deliver(0, 1091, 1150, US_PIPE_RETRY);
    us_pipe_expire(&pipe, 1160);
    deliver(0, 1161, 1170, US_PIPE_OK);
    CHECK_U64(counted(&pipe.counters.queued), 1);
    CHECK_U64(pipe.counters.queued.sum_ns, 7);
    CHECK_U64(counted(&pipe.counters.took[US_PIPE_PREPARE]), 2);
    CHECK_U64(pipe.counters.took[US_PIPE_PREPARE].sum_ns, 33 + 19);
    CHECK_U64(counted(&pipe.counters.turn), 1);
    CHECK_U64(pipe.counters.turn.sum_ns, 11);
    CHECK_U64(counted(&pipe.counters.took[US_PIPE_DELIVER]), 2);
    CHECK_U64(pipe.counters.took[US_PIPE_DELIVER].sum_ns, 59 + 9);
    finish();
}

/* Its phase 1 is over, so to speak, when it comes in. */
TEST(pipeline_times, without_phase_1) {
    open_with(false, 0, US_PIPE_SKIP);
    enter(0, 1000);
    us_pipe_turn(&pipe, &jobs[0], 1010);
    deliver(0, 1030, 1031, US_PIPE_OK);
    CHECK_U64(pipe.counters.turn.sum_ns, 30);
    CHECK_U64(counted(&pipe.counters.queued), 0);
    finish();
}

/* What a halted session holds back has waited all the while. */
TEST(pipeline_times, behind_a_halted_record) {
    open_with(true, 0, US_PIPE_HALT);
    enter(0, 1000);
    us_pipe_turn(&pipe, &jobs[0], 1000);
    prepare(0, 1000, 1005, US_PIPE_OK);
    deliver(0, 1010, 1020, US_PIPE_FAIL);
    CHECK_U64(jobs[0].since, 1020); /* it stands since then */
    enter(1, 1030);
    us_pipe_turn(&pipe, &jobs[1], 1040);
    CHECK(!us_pipe_next_prepare(&pipe, 1040));
    CHECK(us_pipe_resolve(&pipe, 0, "s", 1, US_PIPE_SKIP_IT, 1100));
    prepare(1, 1100, 1101, US_PIPE_OK);
    CHECK_U64(pipe.counters.queued.sum_ns, 70);
    finish();
}

/* The last attempt gives the reason: that one before it was slow is no time limit. */
TEST(pipeline_times, slow_once_and_exhausted) {
    open_with(false, 1, US_PIPE_SKIP);
    enter(0, 0);
    us_pipe_turn(&pipe, &jobs[0], 0);
    deliver(0, 0, 200, US_PIPE_RETRY);
    us_pipe_expire(&pipe, 300);
    deliver(0, 300, 301, US_PIPE_RETRY);
    CHECK(jobs[0].left && jobs[0].outcome == US_PIPE_SKIPPED);
    CHECK_U64(jobs[0].reason, US_PIPE_EXHAUSTED);
    CHECK_U64(pipe.counters.timeouts[US_PIPE_DELIVER], 1);
    finish();
}

TEST(pipeline_times, dead_letters_that_are_not_stored) {
    open_with(false, 0, US_PIPE_DEAD_LETTER);
    enter(0, 0);
    us_pipe_turn(&pipe, &jobs[0], 0);
    deliver(0, 0, 1, US_PIPE_FAIL);
    for (uint64_t n = 1; n <= 3; n++) {
        CHECK(us_pipe_next_step(&pipe, 10 * n) == &jobs[0]);
        us_pipe_buried(&pipe, &jobs[0], n == 3, 10 * n);
        us_pipe_expire(&pipe, 10 * n + 5);
    }
    CHECK_U64(pipe.counters.burial_failures, 2);
    CHECK(jobs[0].left && jobs[0].outcome == US_PIPE_BURIED);
    finish();
}

/* Whatever is due first: a time limit of either phase, or a back-off that is over. */
TEST(pipeline_times, what_is_due_next) {
    open_with(true, 1, US_PIPE_SKIP);
    CHECK_U64(us_pipe_deadline(&pipe), UNSALT_NEVER);
    enter(0, 0);
    us_pipe_turn(&pipe, &jobs[0], 0);
    prepare(0, 0, 10, US_PIPE_RETRY);
    CHECK_U64(us_pipe_deadline(&pipe), 11); /* the back-off */
    us_pipe_expire(&pipe, 11);
    CHECK_U64(us_pipe_deadline(&pipe), UNSALT_NEVER);
    prepare(0, 20, 30, US_PIPE_OK);
    CHECK(us_pipe_next_step(&pipe, 40) == &jobs[0]);
    CHECK_U64(us_pipe_deadline(&pipe), 140); /* of deliver */
    enter(1, 41);
    pipe.params.limit_ns[US_PIPE_PREPARE] = 20;
    CHECK(us_pipe_next_prepare(&pipe, 50) == &jobs[1]);
    CHECK_U64(us_pipe_deadline(&pipe), 70); /* of prepare */
    CHECK(us_pipe_prepared(&pipe, &jobs[1], jobs[1].run, US_PIPE_OK, 60));
    us_pipe_delivered(&pipe, &jobs[0], US_PIPE_OK, 60);
    CHECK_U64(us_pipe_deadline(&pipe), UNSALT_NEVER);
    finish();
}
