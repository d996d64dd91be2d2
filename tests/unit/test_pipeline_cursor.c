/* SPDX-License-Identifier: BSD-2-Clause */
/* The number that a session releases next, as dead letters tell it. */
#include <core/pipeline.h>
#include <support/check.h>
#include <support/failmem.h>

enum { RECORDS = 16 };

static struct failmem mem;
static struct us_pipe pipe;
static struct us_pipe_job jobs[RECORDS];
static int count;

static void begin(void) {
    failmem_init(&mem);
    struct us_pipe_params params = {
        .mem = mem.mem, .id_max = 8, .records = RECORDS, .bytes = 100, .halted_records = 10, .halted_bytes = 100,
        .limit_ns = {UNSALT_NEVER, UNSALT_NEVER},
    };
    count = 0;
    CHECK(us_pipe_init(&pipe, &params));
}

/* A record gets its turn. Returns what its session releases next. */
static uint64_t turn(uint64_t epoch, uint64_t seq, bool behind) {
    struct us_pipe_job *job = &jobs[count++];
    CHECK(us_pipe_reserve(&pipe, 1));
    us_pipe_enter(&pipe, job, &(struct us_pipe_record){.id = "s", .id_len = 1, .epoch = epoch, .seq = seq}, 0);
    job->behind = behind;
    us_pipe_turn(&pipe, job, 0);
    return job->session->cursor;
}

static void end(void) {
    struct us_pipe_job *job;
    us_pipe_leave(&pipe, 0, 0, 0, true);
    CHECK(us_pipe_conserved(&pipe));
    while ((job = us_pipe_take_done(&pipe))) {
        us_pipe_forget(&pipe, job);
    }
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}

TEST(pipeline_cursor, follows_the_numbers) {
    begin();
    CHECK_U64(turn(1, 7, false), 8);
    CHECK_U64(turn(1, 8, false), 9);
    CHECK_U64(turn(1, 12, false), 13);
    end();
}

/* A new run of the producer begins at a low number: what was before says nothing of it. */
TEST(pipeline_cursor, begins_anew_with_an_epoch) {
    begin();
    CHECK_U64(turn(1, 1000, false), 1001);
    CHECK_U64(turn(2, 1, false), 2);
    CHECK_U64(turn(2, 2, false), 3);
    end();
}

/* What is late or of an old run moves nothing, in either direction. */
TEST(pipeline_cursor, late_and_stale_records) {
    begin();
    CHECK_U64(turn(1, 900, true), UNSALT_NO_SEQ);
    CHECK_U64(turn(2, 5, false), 6);
    CHECK_U64(turn(1, 901, true), 6);
    CHECK_U64(turn(2, 3, true), 6);
    CHECK_U64(turn(2, 6, false), 7);
    end();
}

TEST(pipeline_cursor, records_without_a_number) {
    begin();
    CHECK_U64(turn(0, UNSALT_NO_SEQ, false), UNSALT_NO_SEQ);
    end();
}
