/* SPDX-License-Identifier: BSD-2-Clause */
/* Records whose number or session can't be used: delivered in partition order, or dead letters. */
#include <support/check.h>
#include <support/stage.h>

static void open_stage(struct stage *s, unsalt_malformed_t policy) {
    stage_init(s);
    s->params.malformed = policy;
    s->params.session_id_max = 4;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
    s->ack = true;
}

static void push_kind(struct stage *s, unsalt_kind_t kind, const char *session, uint64_t seq) {
    s->in.kind = (uint16_t)kind;
    CHECK(stage_push(s, 0, session, seq));
    s->in.kind = UNSALT_KIND_SEQUENCED;
}

static void push_all_faults(struct stage *s) {
    push_kind(s, UNSALT_KIND_MALFORMED, "a", 1);
    push_kind(s, UNSALT_KIND_SEQUENCED, "a", 0);
    push_kind(s, UNSALT_KIND_SEQUENCED, "a", UNSALT_NO_SEQ);
    push_kind(s, UNSALT_KIND_SEQUENCED, "abcde", 5);
}

TEST(core_malformed, delivered) {
    struct stage s;
    open_stage(&s, UNSALT_MALFORMED_DELIVER);
    push_all_faults(&s);
    CHECK(s.last.state == UNSALT_STATE_UNSEQUENCED && !(s.last.flags & UNSALT_OUT_MALFORMED));
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_UNSEQUENCED], 4);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DEAD_LETTERED], 0);
    CHECK_U64(stage_counters(&s).sessions_created, 0);
    CHECK(unsalt_core_conserved(s.core));
    stage_close(&s);
}

TEST(core_malformed, dead_letters) {
    struct stage s;
    open_stage(&s, UNSALT_MALFORMED_DEAD_LETTER);
    push_all_faults(&s);
    CHECK_U64(s.last.state, UNSALT_STATE_DEAD_LETTERED);
    CHECK(s.last.flags & UNSALT_OUT_MALFORMED);
    CHECK_U64(s.last.seq, UNSALT_NO_SEQ);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_DEAD_LETTERED], 4);
    CHECK_U64(stage_counters(&s).state[UNSALT_STATE_UNSEQUENCED], 0);
    CHECK(unsalt_core_conserved(s.core));
    CHECK_I64(unsalt_core_position(s.core, 0), 4); /* acknowledged by the core itself */
    stage_close(&s);
}

/* The caller that calls a record malformed has said so; what the core finds it tells. */
TEST(core_malformed, events) {
    for (int i = 0; i < 2; i++) {
        struct stage s;
        open_stage(&s, i ? UNSALT_MALFORMED_DEAD_LETTER : UNSALT_MALFORMED_DELIVER);
        push_kind(&s, UNSALT_KIND_MALFORMED, "a", 1);
        CHECK_STR(stage_said(&s), "");
        push_kind(&s, UNSALT_KIND_SEQUENCED, "a", 0);
        CHECK_U64(s.event.type, UNSALT_CORE_EV_BELOW_FIRST);
        push_kind(&s, UNSALT_KIND_SEQUENCED, "abcde", 5);
        CHECK_U64(s.event.type, UNSALT_CORE_EV_OVERSIZED);
        stage_close(&s);
    }
}

/* The policy for late records is another one, and plain records and control are no fault. */
TEST(core_malformed, others_are_not_touched) {
    struct stage s;
    open_stage(&s, UNSALT_MALFORMED_DEAD_LETTER);
    push_kind(&s, UNSALT_KIND_UNSEQUENCED, "a", 1);
    CHECK_U64(s.last.state, UNSALT_STATE_UNSEQUENCED);
    push_kind(&s, UNSALT_KIND_CONTROL, "a", 1);
    CHECK_U64(s.last.state, UNSALT_STATE_CONTROL);
    stage_push(&s, 0, "a", 2);
    stage_flush(&s);
    CHECK_U64(s.last.state, UNSALT_STATE_RELEASED);
    stage_push(&s, 0, "a", 1);
    CHECK_U64(s.last.state, UNSALT_STATE_LATE);
    CHECK(!(s.last.flags & UNSALT_OUT_MALFORMED));
    stage_close(&s);
}

TEST(core_malformed, a_late_dead_letter_is_not_malformed) {
    struct stage s;
    stage_init(&s);
    s.params.late = UNSALT_LATE_DEAD_LETTER;
    stage_open(&s);
    stage_parts(&s, 0, 1, false, 0, 0);
    stage_push(&s, 0, "a", 2);
    stage_flush(&s);
    stage_push(&s, 0, "a", 1);
    CHECK_U64(s.last.state, UNSALT_STATE_DEAD_LETTERED);
    CHECK(!(s.last.flags & UNSALT_OUT_MALFORMED));
    push_kind(&s, UNSALT_KIND_MALFORMED, "a", 1);
    CHECK_U64(s.last.state, UNSALT_STATE_UNSEQUENCED);
    stage_close(&s);
}

TEST(core_malformed, a_kind_that_does_not_exist) {
    struct stage s;
    open_stage(&s, UNSALT_MALFORMED_DEAD_LETTER);
    s.in.kind = UNSALT_KIND_MALFORMED + 1;
    CHECK(!stage_push(&s, 0, "a", 1));
    CHECK_I64(s.status, UNSALT_CORE_INVAL);
    s.in.kind = UNSALT_KIND_SEQUENCED;
    stage_close(&s);
}
