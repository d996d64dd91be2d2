/* SPDX-License-Identifier: BSD-2-Clause */
/* Public reports as stories (docs/past.md): offsets that come again, and what stands in a log besides records. */
#include <support/check.h>
#include <support/prng.h>
#include <support/stage.h>

/*
 * confluentinc/librdkafka#3340, confluentinc/librdkafka#4261, microsoft/FluidFramework#9404: records of partitions
 * that were gone, and of offsets that had been read, came all the same. An offset counts once in a generation; in the
 * next one it counts again; without an assignment it counts not at all.
 */
TEST(past_offsets, each_offset_counts_once_in_a_generation) {
    struct stage s;
    stage_default(&s, 1);
    for (uint64_t seq = 1; seq <= 4; seq++)
        stage_push(&s, 0, "a", seq);
    stage_took(&s);
    for (int64_t offset = 3; offset >= 0; offset--) {
        s.next[0] = offset;
        stage_push(&s, 0, "a", 5);
    }
    CHECK_STR(stage_took(&s), "fenced:a5 fenced:a5 fenced:a5 fenced:a5");
    CHECK_I64(unsalt_core_position(s.core, 0), 0);
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    s.next[0] = 4;
    CHECK(!stage_push(&s, 0, "a", 5));
    CHECK_I64(s.status, UNSALT_CORE_INVAL);
    stage_assign(&s, 0, 1, -1, 2, 0);
    stage_push(&s, 0, "a", 3);
    stage_push(&s, 0, "a", 4);
    s.next[0] = 2;
    stage_push(&s, 0, "a", 3);
    s.next[0] = 4;
    stage_push(&s, 0, "a", 5);
    CHECK_STR(stage_took(&s), "a3 a4 fenced:a3 a5");
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_FENCED], 5);
    stage_close(&s);
}

/* A ledger that outlives its assignment hides what is read again (PostHog/posthog#68804, from its review). */
TEST(past_offsets, an_acknowledgement_of_an_old_generation_closes_nothing_of_the_new) {
    struct stage s;
    uint64_t tickets[3];
    stage_default(&s, 1);
    for (uint64_t i = 0; i < 3; i++) {
        stage_push(&s, 0, "a", i + 1);
        tickets[i] = s.last.ticket;
    }
    uint32_t old = s.last.generation;
    CHECK_I64(unsalt_core_revoke(s.core, 0, s.now), UNSALT_CORE_OK);
    stage_assign(&s, 0, 1, -1, 0, 0);
    for (uint64_t i = 0; i < 3; i++)
        stage_push(&s, 0, "a", i + 1); /* the same offsets; the tickets may be the same numbers */
    CHECK_STR(stage_took(&s), "a1 a2 a3 a1 a2 a3");
    for (int i = 0; i < 3; i++)
        CHECK_I64(unsalt_core_ack(s.core, 0, old, tickets[i]), UNSALT_CORE_FENCED);
    CHECK_I64(unsalt_core_position(s.core, 0), 0);
    CHECK_U64(stage_counters(&s).unacked, 3);
    stage_close(&s);
}

/*
 * apache/pinot#12318, apache/pinot#18337, confluentinc/librdkafka#2539, confluentinc/librdkafka#3917: thousands of
 * aborted records gave empty polls and a loop of seeks, and a lag that stayed at 1. Where reading has got to is told
 * by position, not by the last record.
 */
TEST(past_offsets, a_stretch_of_aborted_records_is_read_past) {
    struct stage s;
    uint32_t parts[4];
    stage_default(&s, 2);
    s.ack = true;
    stage_push(&s, 0, "a", 1);
    stage_push(&s, 0, "a", 3);
    stage_wait(&s, 500 * MS);
    CHECK_U64(unsalt_core_questions(s.core, s.now, parts, 4), 2);
    unsalt_core_answer(s.core, 0, s.last.generation, 2, s.now);
    unsalt_core_answer(s.core, 1, unsalt_core_generation(s.core, 1), 5001, s.now);
    for (int64_t end = 0; end <= 5000; end += 500) { /* nothing but aborted ones: only the ends come */
        unsalt_core_eof(s.core, 1, end, s.now);
        stage_wait(&s, MS);
        CHECK_STR(stage_took(&s), end ? "" : "a1");
    }
    unsalt_core_eof(s.core, 1, 5001, s.now);
    stage_expire(&s);
    CHECK_STR(stage_took(&s), "a3!");
    CHECK_I64(unsalt_core_position(s.core, 1), 5001);
    CHECK_U64(stage_counters(&s).questions, 2);
    stage_close(&s);
}

/* nats-io/nats.c#600, nats-io/nats.c#601: heartbeats between the messages spoiled the count of sequences. */
TEST(past_offsets, heartbeats_and_markers_in_between_change_no_number) {
    struct prng prng = prng_start(0x600);
    for (int round = 0; round < 30; round++) {
        struct stage s;
        stage_default(&s, 2);
        s.in.lanes = 2;
        for (uint64_t seq = 1; seq <= 200;) {
            uint64_t dice = prng_below(&prng, 4);
            s.in.kind = dice < 2 ? UNSALT_KIND_SEQUENCED : UNSALT_KIND_CONTROL;
            s.in.flags = dice == 2 ? UNSALT_F_HEARTBEAT : dice == 3 ? UNSALT_F_MARKER : 0;
            s.in.since = dice == 3 ? 1 + prng_below(&prng, seq) : 1; /* numbers that have come, or come all the same */
            uint64_t number = dice == 2 ? UNSALT_NO_SEQ : dice == 3 ? seq + prng_below(&prng, 3) : seq++;
            s.in.lane = (uint16_t)(number % 2);
            stage_push(&s, (uint32_t)prng_below(&prng, 2), "a", number);
            s.took[0] = '\0';
        }
        CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 200);
        CHECK_U64(stage_counters(&s).in_order, 200);
        CHECK_STR(stage_said(&s), "");
        stage_close(&s);
    }
}

/*
 * A topic that is a mirror of another one has other offsets and, if it was repartitioned, other partitions; a lane
 * that stood in one may stand in several. The order goes by number.
 */
TEST(past_offsets, a_mirrored_topic_with_other_offsets_and_partitions) {
    struct stage s;
    struct prng prng = prng_start(0x11);
    stage_default(&s, 3);
    s.in.lanes = 4;
    for (uint64_t seq = 400; seq >= 1; seq--) {
        uint32_t part = (uint32_t)prng_below(&prng, 3);
        s.next[part] += (int64_t)prng_below(&prng, 1000);
        stage_push_lane(&s, part, "a", seq);
    }
    CHECK_U64(stage_counters(&s).in_order, 1);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_RELEASED], 400);
    CHECK_U64(s.last.seq, 400);
    CHECK_STR(stage_said(&s), "");
    stage_close(&s);
}
