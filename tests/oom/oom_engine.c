/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A story that visits every corner of the engine is told again and again, and each time another allocation fails. A
 * call that fails leaves no trace: counters, positions and deadline are what they were, it succeeds when it is
 * repeated, and in the end the same records have come out in the same states as without any failure.
 */
#include <core/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/failmem.h>
#include <unsalt/core.h>

#define MS UINT64_C(1000000)

enum { PARTS = 4, RECORDS = 4000, CURSORS = 64, RANGES = 256 };

struct record {
    char session;
    uint64_t seq, epoch;
    int state; /* in which it came back; -1 = not yet */
};

/* A cursor that was taken. */
struct saved {
    unsalt_core_cursor_t cursor;
    char session;
    unsalt_core_range_t done[RANGES], skipped[RANGES];
};

struct story {
    struct failmem mem;
    bool cursors; /* are kept */
    bool keeps;   /* the application keeps what it gets */
    struct saved saved[CURSORS];
    size_t saved_n;
    unsalt_core_t *core;
    uint64_t now;
    int64_t next[PARTS];
    uint32_t generation[PARTS];
    struct record records[RECORDS];
    size_t n;
    uint64_t last[128]; /* released, by session; falls at a restart only */
    unsigned refused;   /* calls that failed */
    bool forgotten;     /* a cursor was forgotten for want of memory: the rest of the story differs, by design */
};

struct picture {
    unsalt_core_counters_t counters;
    int64_t positions[PARTS];
    uint32_t generations[PARTS];
    uint64_t deadline;
};

static struct picture look(const struct story *story) {
    struct picture picture;
    memset(&picture, 0, sizeof(picture));
    unsalt_core_counters(story->core, &picture.counters);
    for (uint32_t i = 0; i < PARTS; i++) {
        picture.positions[i] = unsalt_core_position(story->core, i);
        picture.generations[i] = unsalt_core_generation(story->core, i);
    }
    picture.deadline = unsalt_core_deadline(story->core);
    return picture;
}

static void unchanged(const struct story *story, const struct picture *before, const char *what) {
    struct picture after = look(story);
    const unsalt_core_counters_t *was = &before->counters, *is = &after.counters;
    for (int i = 0; i < UNSALT_STATE__CNT; i++)
        CHECK_THAT(was->state[i] == is->state[i], "%s failed and left a trace in %s", what,
                   unsalt_state_name((unsalt_state_t)i));
#define SAME(field)                                                                                                \
    CHECK_THAT(was->field == is->field, "%s failed, " #field " was %" PRIu64 " and is %" PRIu64, what, was->field, \
               is->field)
    SAME(received);
    SAME(held_bytes);
    SAME(gaps_open);
    SAME(sessions);
    SAME(sessions_created);
    SAME(sessions_expired);
    SAME(sessions_remembered);
    SAME(restarts);
    SAME(epochs);
    SAME(partitions);
    SAME(unacked);
    SAME(cursors_changed);
    SAME(cursors_restored);
    SAME(done_before);
#undef SAME
    CHECK_THAT(!memcmp(before->positions, after.positions, sizeof(after.positions)), "%s moved a position", what);
    CHECK_THAT(!memcmp(before->generations, after.generations, sizeof(after.generations)), "%s: generation", what);
    CHECK_THAT(before->deadline == after.deadline, "%s failed and moved the deadline from %" PRIu64 " to %" PRIu64,
               what, before->deadline, after.deadline);
    CHECK(unsalt_core_conserved(story->core));
}

static void take_out(struct story *story, const unsalt_core_out_t *out) {
    struct record *record = out->msg;
    CHECK_THAT(record->state == -1, "%c%" PRIu64 " came back twice", record->session, record->seq);
    record->state = out->state;
    uint64_t *last = &story->last[(unsigned char)record->session];
    if (out->state == UNSALT_STATE_RELEASED) {
        uint64_t key = record->epoch * 1000 + record->seq;
        CHECK_THAT(key > *last, "%c%" PRIu64 " released after %" PRIu64, record->session, key, *last);
        *last = key;
    }
    bool handed = unsalt_state_handed_out((unsalt_state_t)out->state);
    if (handed && !story->keeps)
        CHECK_I64(unsalt_core_ack(story->core, out->part, out->generation, out->ticket), UNSALT_CORE_OK);
}

static void note_event(struct story *story, const unsalt_core_event_t *event) {
    story->forgotten |= event->type == UNSALT_CORE_EV_FORGOTTEN;
    if (event->type == UNSALT_CORE_EV_RESTART && event->session)
        story->last[*(const unsigned char *)event->session] = 0;
}

static void settle(struct story *story) {
    unsalt_core_event_t events[64];
    unsalt_core_out_t out[64];
    for (int i = 0; i < 1000; i++) {
        size_t moved = 0, n;
        if (unsalt_core_deadline(story->core) <= story->now) {
            unsalt_core_expire(story->core, story->now);
            moved++;
        }
        while ((n = unsalt_core_events(story->core, events, 64)) > 0)
            for (size_t j = 0; j < n; j++, moved++)
                note_event(story, &events[j]);
        while ((n = unsalt_core_pull(story->core, story->now, out, 64)) > 0)
            for (size_t j = 0; j < n; j++, moved++)
                take_out(story, &out[j]);
        CHECK(unsalt_core_conserved(story->core));
        if (!moved)
            return;
    }
    cr_assert_fail("no rest");
}

static void push(struct story *story, unsalt_core_in_t in, char session, uint64_t seq) {
    CHECK(story->n < RECORDS);
    struct record *record = &story->records[story->n++];
    *record = (struct record){session, seq, in.epoch, -1};
    in.msg = record;
    in.session = &record->session;
    in.session_len = 1;
    in.seq = seq;
    in.una = UNSALT_NO_SEQ;
    in.bytes = 10;
    in.offset = story->next[in.part];
    for (int tries = 0;; tries++) {
        unsalt_core_out_t out;
        size_t n_out = 0;
        int status = 99;
        struct picture before = look(story);
        if (unsalt_core_push(story->core, &in, 1, story->now, &out, &n_out, &status)) {
            CHECK_I64(status, UNSALT_CORE_OK);
            if (n_out)
                take_out(story, &out);
            break;
        }
        CHECK_I64(status, UNSALT_CORE_NOMEM);
        CHECK_U64(n_out, 0);
        CHECK_THAT(tries < 3, "%c%" PRIu64 " is refused though there is memory", session, seq);
        story->refused++;
        unchanged(story, &before, "push");
    }
    story->next[in.part]++;
    settle(story);
}

static void assign(struct story *story, uint32_t part) {
    unsalt_core_partition_t partition = {
        .set = 1, .set_size = PARTS, .lane = -1, .start_offset = story->next[part], .log_start = 0};
    for (int tries = 0;; tries++) {
        struct picture before = look(story);
        int index = unsalt_core_assign(story->core, &partition);
        if (index >= 0) {
            CHECK_I64(index, part);
            break;
        }
        CHECK_I64(index, UNSALT_CORE_NOMEM);
        CHECK(tries < 3);
        story->refused++;
        unchanged(story, &before, "assign");
    }
    story->generation[part] = unsalt_core_generation(story->core, part);
}

static void revoke(struct story *story, uint32_t part) {
    for (int tries = 0;; tries++) {
        struct picture before = look(story);
        int result = unsalt_core_revoke(story->core, part, story->now);
        if (result == UNSALT_CORE_OK)
            break;
        CHECK_I64(result, UNSALT_CORE_NOMEM);
        CHECK(tries < 3);
        story->refused++;
        unchanged(story, &before, "revoke");
    }
    memset(story->last, 0, sizeof(story->last));
    settle(story);
}

static void wait(struct story *story, uint64_t ns) {
    story->now += ns;
    settle(story);
    for (uint32_t i = 0; i < PARTS; i++)
        unsalt_core_horizon(story->core, i, story->now, story->now);
    settle(story);
    story->now += 10 * MS; /* a wait that found no room tries again a moment later */
    settle(story);
    for (uint32_t i = 0; i < PARTS; i++)
        unsalt_core_horizon(story->core, i, story->now, story->now);
    settle(story);
}

/* ---- checkpoints */

static void save(struct story *story, const unsalt_core_cursor_t *cursor) {
    struct saved *saved = &story->saved[story->saved_n++];
    CHECK(story->saved_n <= CURSORS && cursor->done_count <= RANGES && cursor->skipped_count <= RANGES);
    saved->session = *(const char *)cursor->session;
    saved->cursor = *cursor;
    for (uint32_t i = 0; i < cursor->done_count; i++)
        saved->done[i] = cursor->done[i];
    for (uint32_t i = 0; i < cursor->skipped_count; i++)
        saved->skipped[i] = cursor->skipped[i];
    saved->cursor.session = &saved->session;
    saved->cursor.done = saved->done;
    saved->cursor.skipped = saved->skipped;
}

static void begin_cursors(struct story *story) {
    for (int tries = 0;; tries++) {
        struct picture before = look(story);
        int err = unsalt_core_cursors_begin(story->core);
        if (err == UNSALT_CORE_OK)
            return;
        CHECK_I64(err, UNSALT_CORE_NOMEM);
        CHECK(tries < 3);
        story->refused++;
        unchanged(story, &before, "cursors_begin");
    }
}

/* Takes what has changed. It is called again after a failure, or, one time in two, given up and begun again. */
static void take(struct story *story) {
    unsalt_core_cursor_t cursor;
    size_t first = story->saved_n;
    int more = 1;
    begin_cursors(story);
    while (more) {
        more = unsalt_core_cursors_next(story->core, &cursor);
        if (more == 1) {
            save(story, &cursor);
            continue;
        }
        CHECK(more == 0 || more == UNSALT_CORE_NOMEM);
        story->refused += more != 0;
        if (more != 0 && story->mem.calls % 2) {
            unsalt_core_cursors_end(story->core, false);
            story->saved_n = first;
            begin_cursors(story);
        }
    }
    unsalt_core_cursors_end(story->core, true);
    unsalt_core_counters_t counters;
    unsalt_core_counters(story->core, &counters);
    CHECK_U64(counters.cursors_changed, 0);
    settle(story);
}

static void restore(struct story *story, const struct saved *saved) {
    for (int tries = 0;; tries++) {
        struct picture before = look(story);
        int err = unsalt_core_restore(story->core, &saved->cursor, story->now);
        if (err == UNSALT_CORE_OK)
            return;
        CHECK_I64(err, UNSALT_CORE_NOMEM);
        CHECK(tries < 3);
        story->refused++;
        unchanged(story, &before, "restore");
    }
}

static void state_done(struct story *story, uint32_t part, const unsalt_core_range_t *ranges, size_t n) {
    for (int tries = 0;; tries++) {
        unsalt_core_range_t was[RANGES], is[RANGES];
        size_t was_n = unsalt_core_done(story->core, part, 0, was, RANGES);
        struct picture before = look(story);
        int err = unsalt_core_done_before(story->core, part, ranges, n);
        if (err == UNSALT_CORE_OK)
            return;
        CHECK_I64(err, UNSALT_CORE_NOMEM);
        CHECK(tries < 3);
        story->refused++;
        unchanged(story, &before, "done_before");
        CHECK_U64(unsalt_core_done(story->core, part, 0, is, RANGES), was_n);
        CHECK(!memcmp(was, is, was_n * sizeof(*was)));
    }
}

/* ---- chapters */

/* In order, held in lanes, held out of their lanes, many lanes; copies. */
static void chapter_order(struct story *story) {
    unsalt_core_in_t in = {.lanes = 4, .since = 1};
    for (uint64_t seq = 1; seq <= 3; seq++)
        push(story, (unsalt_core_in_t){.part = 0, .since = UNSALT_NO_SEQ}, 'a', seq);
    for (in.part = 0; in.part < PARTS; in.part++)
        for (uint64_t seq = in.part + 2; seq <= 60; seq += 4) {
            in.lane = (uint16_t)(seq % 4);
            push(story, in, 'b', seq);
        }
    in = (unsalt_core_in_t){.part = 1, .lanes = 3, .since = 1};
    for (uint64_t seq = 40; seq > 1; seq--)
        push(story, in, 'c', seq); /* one lane, descending */
    push(story, in, 'c', 20);
    in = (unsalt_core_in_t){.part = 2, .lanes = 1000, .since = 1};
    for (uint64_t seq = 90; seq > 1; seq -= 3) {
        in.lane = (uint16_t)(seq % 1000);
        push(story, in, 'd', seq);
    }
    push(story, (unsalt_core_in_t){.part = 3, .since = 1}, 'b', 1);
    push(story, (unsalt_core_in_t){.part = 3, .since = 1}, 'c', 1);
}

/* Gaps, skipped ranges, late records, the last record of a session. */
static void chapter_gaps(struct story *story) {
    unsalt_core_in_t in = {.since = UNSALT_NO_SEQ};
    for (uint64_t seq = 2; seq <= 40; seq += 2)
        push(story, in, 'e', seq);
    wait(story, 500 * MS);
    push(story, in, 'e', 42);
    in.flags = UNSALT_F_LAST;
    push(story, in, 'f', 1);
    in.flags = 0;
    push(story, in, 'f', 2);
    unsalt_core_flush(story->core, story->now++);
    settle(story);
}

/* Higher epochs, a third before the second took over, lower ones, and a producer that goes back. */
static void chapter_epochs(struct story *story) {
    for (uint64_t epoch = 1; epoch <= 3; epoch++)
        for (uint64_t seq = 1; seq <= 6; seq++)
            push(story, (unsalt_core_in_t){.part = (uint32_t)(seq % 2), .epoch = epoch, .since = UNSALT_NO_SEQ}, 'g',
                 seq);
    wait(story, 500 * MS);
    push(story, (unsalt_core_in_t){.epoch = 2, .since = UNSALT_NO_SEQ}, 'g', 7);
    unsalt_core_in_t in = {.timestamp = 1000, .since = UNSALT_NO_SEQ};
    for (uint64_t seq = 1; seq <= 10; seq++)
        push(story, in, 'h', seq);
    in.timestamp = 2000;
    for (uint64_t seq = 1; seq <= 10; seq++, in.timestamp++)
        push(story, in, 'h', seq);
    wait(story, 2000 * MS);
}

/* A partition goes and comes; sessions that hold something start again in the middle. */
static void chapter_revoke(struct story *story) {
    unsalt_core_in_t in = {.since = UNSALT_NO_SEQ};
    for (char session = 'i'; session <= 'p'; session++)
        for (in.part = 0; in.part < PARTS; in.part++)
            push(story, in, session, 2 + in.part);
    push(story, (unsalt_core_in_t){.epoch = 5, .part = 1, .since = UNSALT_NO_SEQ}, 'i', 2);
    revoke(story, 2);
    assign(story, 2);
    in.part = 1;
    for (char session = 'q'; session <= 'z'; session++)
        push(story, in, session, 9); /* unknown sessions of a set that was joined in the middle */
    wait(story, 500 * MS);
    wait(story, 500 * MS);
    if (story->cursors)
        take(story);
    wait(story, 3600 * 1000 * MS);
    push(story, in, 'q', 10); /* remembered */
    wait(story, 500 * MS);
}

static void open_core(struct story *story);

/* The application has records, some of it done, some given up; the next owner goes on from there. */
static void chapter_handover(struct story *story) {
    unsalt_core_in_t in = {.since = UNSALT_NO_SEQ};
    unsalt_core_range_t done[PARTS][RANGES];
    size_t done_n[PARTS];
    take(story);
    story->keeps = true;
    for (char session = 'A'; session <= 'J'; session++)
        for (in.part = 0; in.part < PARTS; in.part++)
            push(story, in, session, 101 + 2 * in.part);
    wait(story, 500 * MS);
    wait(story, 500 * MS);
    for (uint64_t i = 0; i < 200; i++) /* more than the window of a partition that has just been opened */
        push(story, (unsalt_core_in_t){.part = 3, .since = UNSALT_NO_SEQ}, 'K', 1 + i);
    wait(story, 500 * MS);
    for (uint32_t i = 0; i < PARTS; i++)
        for (uint64_t ticket = 0; ticket < 400; ticket += 3)
            unsalt_core_ack(story->core, i, story->generation[i], ticket);
    story->saved_n = 0;
    take(story);
    for (uint32_t i = 0; i < PARTS; i++) {
        done_n[i] = unsalt_core_done(story->core, i, 0, done[i], RANGES);
        story->next[i] = unsalt_core_position(story->core, i);
    }
    unsalt_core_destroy(story->core);
    story->keeps = false;
    memset(story->last, 0, sizeof(story->last));
    open_core(story);
    for (uint32_t i = 0; i < PARTS; i++) {
        state_done(story, i, done[i], done_n[i] / 2);
        state_done(story, i, done[i], done_n[i]);
    }
    for (int twice = 0; twice < 2; twice++)
        for (size_t i = 0; i < story->saved_n; i++)
            restore(story, &story->saved[i]);
    for (char session = 'A'; session <= 'J'; session++)
        for (in.part = 0; in.part < PARTS; in.part++)
            push(story, in, session, 101 + 2 * in.part);
    for (uint64_t seq = 1; seq <= 210; seq++)
        push(story, in = (unsalt_core_in_t){.part = 3, .since = UNSALT_NO_SEQ}, 'K', seq);
    wait(story, 500 * MS);
    take(story);
}

static void open_core(struct story *story) {
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    params.mem = story->mem.mem;
    params.cursors = story->cursors;
    story->core = NULL;
    for (int tries = 0; tries < 3 && !story->core; tries++) {
        char errstr[64] = "";
        story->core = unsalt_core_new(&params, errstr, sizeof(errstr));
        if (story->core)
            break;
        CHECK_THAT(errstr[0], "no core, and no reason");
        CHECK(failmem_is_balanced(&story->mem));
        story->refused++;
    }
    CHECK(story->core);
    story->core->awake_max = story->cursors ? 1 : 0; /* nearly all that may doze do */
    unsalt_core_reading(story->core, true, story->now);
    for (uint32_t i = 0; i < PARTS; i++)
        assign(story, i);
}

static void tell(struct story *story, bool cursors, uint64_t fail_at) {
    memset(story, 0, sizeof(*story));
    failmem_init(&story->mem);
    failmem_arm(&story->mem, fail_at, false);
    story->now = 1000 * MS;
    story->cursors = cursors;
    open_core(story);
    chapter_order(story);
    chapter_gaps(story);
    chapter_epochs(story);
    chapter_revoke(story);
    if (cursors)
        chapter_handover(story);
    unsalt_core_counters_t counters;
    unsalt_core_counters(story->core, &counters);
    CHECK_U64(counters.state[UNSALT_STATE_HELD], 0);
    for (uint32_t i = 0; i < PARTS; i++)
        CHECK_I64(unsalt_core_position(story->core, i), story->next[i]);
    unsalt_core_destroy(story->core);
    CHECK_THAT(failmem_is_balanced(&story->mem), "memory is left when allocation %" PRIu64 " fails", fail_at);
}

static void fail_each(bool cursors) {
    static struct story plain, story;
    tell(&plain, cursors, 0);
    uint64_t calls = plain.mem.calls, refused = 0;
    CHECK_U64(plain.refused, 0);
    for (uint64_t fail_at = 1; fail_at <= calls; fail_at++) {
        tell(&story, cursors, fail_at);
        CHECK_THAT(story.mem.failed == 1, "allocation %" PRIu64 " was not reached", fail_at);
        refused += story.refused;
        CHECK_U64(story.n, plain.n);
        for (size_t i = 0; i < plain.n; i++) {
            const struct record *is = &story.records[i], *was = &plain.records[i];
            CHECK_THAT(is->state >= 0, "allocation %" PRIu64 " failed, and %c%" PRIu64 " never came back", fail_at,
                       is->session, is->seq);
            CHECK_THAT(is->state == was->state || story.forgotten,
                       "allocation %" PRIu64 " failed, and %c%" PRIu64 " came out as %s, not %s", fail_at, is->session,
                       is->seq, unsalt_state_name((unsalt_state_t)is->state),
                       unsalt_state_name((unsalt_state_t)was->state));
        }
    }
    CHECK_THAT(refused > calls / 4, "only %" PRIu64 " of %" PRIu64 " failures were noticed by a call", refused, calls);
}

TEST(oom_engine, every_allocation_fails_once) {
    fail_each(false);
}

TEST(oom_engine, and_so_does_every_one_that_cursors_need) {
    fail_each(true);
}
