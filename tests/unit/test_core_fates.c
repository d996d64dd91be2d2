/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many gaps whose fate becomes known at once: more than the queue of events has room for. Seen on brokers: the rest of
 * them was looked at again only when it fell due, which is never with gap.timeout.ms=-1.
 */
#include <support/check.h>
#include <support/stage.h>

enum { HOLES = 2000 };

/* Pulls and takes events as the consumer does, until nothing is to be done at this time. */
static uint64_t drain(struct stage *s) {
    unsalt_core_out_t out[512];
    unsalt_core_event_t events[64];
    uint64_t released = 0;
    for (int i = 0; i < 10 * HOLES; i++) {
        size_t pulled = unsalt_core_pull(s->core, s->now, out, 512), said = 0, n;
        while ((n = unsalt_core_events(s->core, events, 64)) > 0) {
            said += n;
        }
        released += pulled;
        if (!pulled && !said && unsalt_core_deadline(s->core) > s->now) {
            break;
        }
        unsalt_core_expire(s->core, s->now);
    }
    return released;
}

static void open_stage(struct stage *s, unsalt_gap_proof_t proof) {
    stage_init(s);
    s->params.gap_timeout_ns = UNSALT_NEVER;
    s->params.gap_proof = proof;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
    s->in.session = "a";
    s->in.session_len = 1;
    s->in.lanes = 1;
    s->in.since = 1;
    s->in.una = 1;
}

/* Around the stage's own bookkeeping, which knows what it pulled. */
static void push(struct stage *s, uint64_t seq) {
    unsalt_core_out_t out;
    size_t n;
    int status;
    s->in.seq = seq;
    CHECK_U64(unsalt_core_push(s->core, &s->in, 1, s->now, &out, &n, &status), 1);
    s->in.offset++;
}

/* Every second number: all of them wait for number 1. */
static void push_every_second(struct stage *s) {
    for (uint64_t seq = 2; seq <= 2 * HOLES; seq += 2) {
        push(s, seq);
    }
}

TEST(core_fates, more_proofs_at_once_than_events_have_room) {
    struct stage s;
    open_stage(&s, UNSALT_PROOF_AUTO);
    push_every_second(&s);
    CHECK_U64(drain(&s), 0);
    s.in.una = 2 * HOLES + 1;
    push(&s, 2 * HOLES + 1); /* all below is decided, and its lane hasn't shown the odd ones */
    CHECK_U64(drain(&s), HOLES + 1);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_PROVEN], HOLES);
    unsalt_core_destroy(s.core);
}

TEST(core_fates, more_markers_at_once_than_events_have_room) {
    struct stage s;
    open_stage(&s, UNSALT_PROOF_OFF);
    push_every_second(&s);
    s.in.kind = UNSALT_KIND_CONTROL;
    s.in.flags = UNSALT_F_MARKER;
    push(&s, 2 * HOLES); /* since 1: none of what isn't held will come */
    s.in.kind = UNSALT_KIND_SEQUENCED;
    s.in.flags = 0;
    CHECK_U64(drain(&s), HOLES);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_MARKER], HOLES);
    unsalt_core_destroy(s.core);
}

TEST(core_fates, a_flush_of_more_gaps_than_events_have_room) {
    struct stage s;
    open_stage(&s, UNSALT_PROOF_AUTO);
    push_every_second(&s);
    unsalt_core_flush(s.core, s.now);
    CHECK_U64(drain(&s), HOLES);
    CHECK_U64(stage_counters(&s).gaps[UNSALT_GAP_FLUSH], HOLES);
    unsalt_core_destroy(s.core);
}
