/* SPDX-License-Identifier: BSD-2-Clause */
/* The bounds of a pipeline, each alone: records and bytes, before their turn and behind it, and of halted sessions. */
#include <core/pipeline.h>
#include <string.h>
#include <support/check.h>
#include <support/failmem.h>

enum { BYTES = 10 }; /* of each record */

static struct failmem mem;
static struct us_pipe pipe;
static struct us_pipe_job jobs[20];
static int entered;

static void open_with(uint64_t records, uint64_t bytes, uint64_t halted_records, uint64_t halted_bytes) {
    failmem_init(&mem);
    entered = 0;
    CHECK(us_pipe_init(&pipe, &(struct us_pipe_params){
                                  .mem = mem.mem, .id_max = 8, .records = records, .bytes = bytes,
                                  .halted_records = halted_records, .halted_bytes = halted_bytes,
                                  .limit_ns = {UNSALT_NEVER, UNSALT_NEVER}, .policy = {US_PIPE_HALT, US_PIPE_HALT}}));
}

static void enter(const char *id, bool turns) {
    struct us_pipe_job *job = &jobs[entered++];
    CHECK(us_pipe_reserve(&pipe, 1));
    us_pipe_enter(&pipe, job, &(struct us_pipe_record){.id = id, .id_len = 1, .bytes = BYTES, .generation = 1,
                                                       .seq = (uint64_t)entered}, 0);
    if (turns)
        us_pipe_turn(&pipe, job, 0);
}

/* Everything goes. */
static void finish(void) {
    struct us_pipe_job *job;
    CHECK(us_pipe_conserved(&pipe));
    us_pipe_leave(&pipe, 0, 1, 0, true);
    for (int i = 0; i < entered; i++)
        if (!jobs[i].left)
            us_pipe_cancel(&pipe, &jobs[i]);
    while ((job = us_pipe_take_done(&pipe)))
        us_pipe_forget(&pipe, job);
    us_pipe_destroy(&pipe);
    CHECK(failmem_is_balanced(&mem));
}

static void deliver(enum us_pipe_res res) {
    struct us_pipe_job *job = us_pipe_next_step(&pipe, 0);
    CHECK(job);
    us_pipe_delivered(&pipe, job, res, 0);
}

/* What was released takes the room of what waits for its turn: together they are no more than may be inside. */
TEST(pipeline_room, records_before_their_turn) {
    open_with(4, 1000, 100, 1000);
    for (int i = 0; i < 3; i++)
        enter("a", true);
    CHECK(us_pipe_room_early(&pipe, BYTES));
    enter("a", false);
    CHECK(!us_pipe_room_early(&pipe, BYTES));
    deliver(US_PIPE_OK);
    CHECK(us_pipe_room_early(&pipe, BYTES));
    finish();
}

TEST(pipeline_room, bytes_before_their_turn) {
    open_with(100, 6 * BYTES, 100, 1000);
    for (int i = 0; i < 5; i++)
        enter("a", true);
    CHECK(us_pipe_room_early(&pipe, BYTES));
    enter("a", true);
    CHECK(!us_pipe_room_early(&pipe, BYTES));
    CHECK(us_pipe_fits_early(&pipe, BYTES));
    finish();
}

TEST(pipeline_room, bytes_behind_it) {
    uint64_t bytes;
    bool halted;
    open_with(100, 6 * BYTES, 100, 1000);
    for (int i = 0; i < 5; i++)
        enter("a", true);
    CHECK_U64(us_pipe_room(&pipe, &bytes, &halted), 95);
    CHECK_U64(bytes, BYTES);
    enter("a", true);
    CHECK_U64(us_pipe_room(&pipe, &bytes, &halted), 0);
    CHECK_U64(bytes, 0);
    CHECK(!halted);
    finish();
}

/* A session that stands with three records; `full` says whether that is all that may stand. */
static void three_stand(uint64_t halted_records, uint64_t halted_bytes, bool full) {
    uint64_t bytes;
    bool halted;
    open_with(100, 1000, halted_records, halted_bytes);
    for (int i = 0; i < 3; i++)
        enter("a", true);
    enter("b", true);
    deliver(US_PIPE_FAIL);
    CHECK_U64(pipe.halted.records, 3);
    CHECK_U64(pipe.halted.bytes, 3 * BYTES);
    CHECK_U64(us_pipe_room(&pipe, &bytes, &halted), full ? 0 : 99);
    CHECK_U64(halted, full);
    CHECK(us_pipe_resolve(&pipe, 0, "a", 1, US_PIPE_SKIP_IT, 0));
    CHECK_U64(us_pipe_room(&pipe, &bytes, &halted), 97);
    CHECK(!halted);
    finish();
}

TEST(pipeline_room, of_halted_sessions) {
    three_stand(4, 3 * BYTES + 1, false);
    three_stand(3, 3 * BYTES + 1, true);
    three_stand(4, 3 * BYTES, true);
}
