/* SPDX-License-Identifier: BSD-2-Clause */
/* Verdicts, back-off, and what the model of the property test leaves out: orphans, long ids, no memory, no phase 1. */
#include <core/pipeline.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>
#include <support/failmem.h>

static struct failmem mem;
static struct us_pipe pipe;
static struct us_pipe_job jobs[200];

static struct us_pipe_params params(void) {
    failmem_init(&mem);
    return (struct us_pipe_params){
        .mem = mem.mem, .id_max = 8, .prepares = true, .records = 100, .bytes = 10000, .halted_records = 100,
        .halted_bytes = 10000, .limit_ns = {UNSALT_NEVER, UNSALT_NEVER}, .backoff_ns = 100, .backoff_max_ns = 1000,
    };
}

static void open_with(struct us_pipe_params p) {
    CHECK(us_pipe_init(&pipe, &p));
}

static void finish(void) {
    struct us_pipe_job *job;
    CHECK(us_pipe_conserved(&pipe));
    while ((job = us_pipe_take_done(&pipe)))
        us_pipe_forget(&pipe, job);
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}

static void enter(int i, const char *id, uint32_t part) {
    CHECK(us_pipe_reserve(&pipe, 1));
    uint32_t len = (uint32_t)strlen(id);
    us_pipe_enter(&pipe, &jobs[i], &(struct us_pipe_record){.space = 7, .set = 7, .id = id, .id_len = len, .bytes = 10,
                                                            .seq = (uint64_t)i + 1, .part = part, .generation = 1}, 0);
}

static void ready(int i, const char *id, uint32_t part) {
    enter(i, id, part);
    us_pipe_turn(&pipe, &jobs[i], 0);
}

/* Prepares everything that waits. */
static void prepare_all(void) {
    struct us_pipe_job *job;
    while ((job = us_pipe_next_prepare(&pipe, 0)))
        CHECK(us_pipe_prepared(&pipe, job, job->run, US_PIPE_OK, 0));
}

static void expect_delivery(int i) {
    struct us_pipe_job *job = us_pipe_next_step(&pipe, 0);
    CHECK(job == &jobs[i]);
    us_pipe_delivered(&pipe, job, US_PIPE_OK, 0);
}

TEST(pipeline, verdicts) {
    for (uint32_t retries = 0; retries < 4; retries++) {
        for (uint32_t attempts = 1; attempts < 6; attempts++) {
            enum us_pipe_verdict again = attempts > retries ? US_PIPE_GIVE_UP : US_PIPE_AGAIN;
            CHECK(us_pipe_judge(US_PIPE_OK, attempts, retries) == US_PIPE_DONE);
            CHECK(us_pipe_judge(US_PIPE_RETRY, attempts, retries) == again);
            CHECK(us_pipe_judge(US_PIPE_LATE, attempts, retries) == again);
            CHECK(us_pipe_judge(US_PIPE_FAIL, attempts, retries) == US_PIPE_GIVE_UP);
        }
    }
    CHECK(us_pipe_reason_of(US_PIPE_RETRY) == US_PIPE_EXHAUSTED);
    CHECK(us_pipe_reason_of(US_PIPE_LATE) == US_PIPE_TIMEOUT);
    CHECK(us_pipe_reason_of(US_PIPE_FAIL) == US_PIPE_REFUSED);
}

/* Doubled up to a bound, between the half and the whole, and both ends are reached. */
TEST(pipeline, backoff) {
    CHECK_U64(us_pipe_backoff(100, 1000, 1, 0), 100);
    CHECK_U64(us_pipe_backoff(100, 1000, 1, 50), 50);
    CHECK_U64(us_pipe_backoff(100, 1000, 1, 51), 100);
    CHECK_U64(us_pipe_backoff(100, 1000, 2, 0), 200);
    CHECK_U64(us_pipe_backoff(100, 1000, 4, 0), 800);
    CHECK_U64(us_pipe_backoff(100, 1000, 5, 0), 1000);
    CHECK_U64(us_pipe_backoff(100, 1000, 5, 500), 500);
    CHECK_U64(us_pipe_backoff(100, 1000, UINT32_MAX, 0), 1000);
    CHECK_U64(us_pipe_backoff(1, 1, 9, UINT64_MAX), 1);
    CHECK_U64(us_pipe_backoff(1000, 100, 1, 0), 100);
    CHECK_U64(us_pipe_backoff(UINT64_MAX / 2 + 1, UINT64_MAX, 2, 0), UINT64_MAX);
}

/* A part of a lane set goes: what was released is delivered in its order; what goes with the rest of the set isn't. */
TEST(pipeline, orphans) {
    open_with(params());
    for (int i = 0; i < 4; i++)
        ready(i, "s", (uint32_t)i % 2);
    prepare_all();
    us_pipe_leave(&pipe, 0, 1, 7, false);
    CHECK(jobs[0].orphan && jobs[2].orphan && !jobs[1].orphan);
    us_pipe_leave(&pipe, 1, 2, 8, true); /* another set */
    expect_delivery(0);
    expect_delivery(1);
    CHECK(us_pipe_conserved(&pipe));
    us_pipe_leave(&pipe, 1, 1, 7, true);
    CHECK(!us_pipe_next_step(&pipe, 0));
    CHECK(jobs[2].left && jobs[2].outcome == US_PIPE_CANCELLED && jobs[3].left);
    finish();
}

/* What is being delivered when its generation ends keeps its session until it returns. */
TEST(pipeline, a_delivery_that_outlives_its_generation) {
    open_with(params());
    ready(0, "s", 0);
    ready(1, "s", 0);
    prepare_all();
    CHECK(us_pipe_next_step(&pipe, 0) == &jobs[0]);
    us_pipe_stop(&pipe, 0, 1);
    us_pipe_leave(&pipe, 0, 1, 7, true);
    CHECK(!jobs[0].left && jobs[0].over && jobs[1].left);
    CHECK(us_pipe_reserve(&pipe, 1));
    us_pipe_enter(&pipe, &jobs[2], &(struct us_pipe_record){.space = 7, .set = 7, .id = "s", .id_len = 1, .seq = 1,
                                                            .part = 0, .generation = 2}, 0);
    us_pipe_turn(&pipe, &jobs[2], 0);
    prepare_all();
    CHECK(jobs[2].state == US_PIPE_PREPARED);
    CHECK(!us_pipe_next_step(&pipe, 0));
    us_pipe_delivered(&pipe, &jobs[0], US_PIPE_OK, 0);
    CHECK(jobs[0].outcome == US_PIPE_CANCELLED);
    expect_delivery(2);
    finish();
}

/* The same through another generation, of which the session had only a record whose turn never came. */
TEST(pipeline, a_delivery_that_outlives_two_generations) {
    open_with(params());
    ready(0, "s", 0);
    prepare_all();
    CHECK(us_pipe_next_step(&pipe, 0) == &jobs[0]);
    us_pipe_stop(&pipe, 0, 1);
    us_pipe_leave(&pipe, 0, 1, 7, true);
    for (int i = 1; i < 3; i++) {
        CHECK(us_pipe_reserve(&pipe, 1));
        us_pipe_enter(&pipe, &jobs[i], &(struct us_pipe_record){.space = 7, .set = 7, .id = "s", .id_len = 1, .seq = 2,
                                                                .part = 0, .generation = (uint32_t)i + 1}, 0);
        if (i == 1) {
            us_pipe_stop(&pipe, 0, 2);
            us_pipe_cancel(&pipe, &jobs[1]);
            us_pipe_leave(&pipe, 0, 2, 7, true);
        }
    }
    us_pipe_turn(&pipe, &jobs[2], 0);
    prepare_all();
    us_pipe_delivered(&pipe, &jobs[0], US_PIPE_OK, 0);
    expect_delivery(2);
    finish();
}

/* Ids are cut at their limit: such sessions share an order, and nothing worse. */
TEST(pipeline, long_ids) {
    open_with(params());
    ready(0, "12345678-a", 0);
    ready(1, "12345678-b", 0);
    ready(2, "1234567", 0);
    CHECK(jobs[0].session == jobs[1].session && jobs[0].session != jobs[2].session);
    CHECK_U64(jobs[0].session->id_len, 8);
    prepare_all();
    expect_delivery(0);
    expect_delivery(2);
    expect_delivery(1);
    finish();
}

TEST(pipeline, without_phase_1) {
    struct us_pipe_params p = params();
    p.prepares = false;
    open_with(p);
    ready(0, "s", 0);
    CHECK(!us_pipe_next_prepare(&pipe, 0));
    expect_delivery(0);
    finish();
}

/* Those whose turn has come go first. */
TEST(pipeline, urgent_first) {
    open_with(params());
    for (int i = 0; i < 10; i++)
        enter(i, "s", 0);
    us_pipe_turn(&pipe, &jobs[9], 0);
    CHECK(us_pipe_next_prepare(&pipe, 0) == &jobs[9]);
    CHECK(us_pipe_next_prepare(&pipe, 0) == &jobs[0]);
    us_pipe_prepared(&pipe, &jobs[9], jobs[9].run, US_PIPE_OK, 0);
    expect_delivery(9);
    us_pipe_prepared(&pipe, &jobs[0], jobs[0].run, US_PIPE_OK, 0);
    for (int i = 0; i < 9; i++)
        us_pipe_cancel(&pipe, &jobs[i]);
    finish();
}

TEST(pipeline, bounds) {
    struct us_pipe_params p = params();
    uint64_t bytes;
    bool halted;
    p.records = 5;
    p.bytes = 60;
    open_with(p);
    CHECK(us_pipe_room_early(&pipe, 30) && !us_pipe_room_early(&pipe, 31));
    enter(0, "a", 0);
    enter(1, "a", 0);
    CHECK(!us_pipe_room_early(&pipe, 1));
    CHECK_U64(us_pipe_room(&pipe, &bytes, &halted), 3);
    CHECK_U64(bytes, 40);
    ready(2, "b", 0);
    ready(3, "b", 0);
    ready(4, "b", 0);
    CHECK_U64(us_pipe_room(&pipe, &bytes, &halted), 0);
    prepare_all();
    expect_delivery(2);
    CHECK_U64(us_pipe_room(&pipe, &bytes, &halted), 1);
    expect_delivery(3);
    expect_delivery(4);
    us_pipe_cancel(&pipe, &jobs[0]);
    us_pipe_cancel(&pipe, &jobs[1]);
    finish();
}

/* Short of memory nothing changes; with what was reserved nothing is allocated any more. */
TEST(pipeline, no_memory) {
    struct us_pipe_params p = params();
    char name[16];
    unsigned refused = 0;
    for (uint64_t nth = 1; nth < 4; nth++) {
        failmem_arm(&mem, nth, true);
        if (!us_pipe_init(&pipe, &p)) {
            failmem_arm(&mem, 0, false);
            us_pipe_destroy(&pipe);
            CHECK(failmem_is_balanced(&mem));
            continue;
        }
        us_pipe_destroy(&pipe);
    }
    failmem_arm(&mem, 0, false);
    open_with(p);
    for (int i = 0; i < 190; i++) {
        failmem_arm(&mem, 1, true);
        if (!us_pipe_reserve(&pipe, 1)) {
            refused++;
            failmem_arm(&mem, 0, false);
            CHECK(us_pipe_conserved(&pipe));
            CHECK(us_pipe_reserve(&pipe, 1));
        }
        failmem_arm(&mem, 1, true);
        snprintf(name, sizeof name, "s%d", i);
        struct us_pipe_record record = {.space = 7, .set = 7, .id = name, .id_len = (uint32_t)strlen(name), .seq = 1};
        us_pipe_enter(&pipe, &jobs[i], &record, 0);
        us_pipe_turn(&pipe, &jobs[i], 0);
    }
    prepare_all();
    for (int i = 0; i < 190; i++)
        expect_delivery(i);
    CHECK(refused > 100);
    failmem_arm(&mem, 0, false);
    finish();
}
