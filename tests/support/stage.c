/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/stage.h>

struct stage_label {
    struct stage_label *next;
    uint64_t seq;
    bool back;
    char session[64];
};

__attribute__((format(printf, 2, 3))) static void say(char *text, const char *format, ...) {
    va_list args;
    size_t n = strlen(text);
    if (n && n + 1 < STAGE_TEXT)
        text[n++] = ' ';
    va_start(args, format);
    vsnprintf(text + n, STAGE_TEXT - n, format, args);
    va_end(args);
}

static void note_out(struct stage *stage, const unsalt_core_out_t *out) {
    struct stage_label *label = out->msg;
    stage->last = *out;
    CHECK_THAT(label && !label->back, "a record came back twice");
    label->back = true;
    const char *gap = out->flags & UNSALT_OUT_AFTER_GAP ? "!" : "";
    if (out->state == UNSALT_STATE_RELEASED)
        say(stage->took, "%s%" PRIu64 "%s", label->session, label->seq, gap);
    else
        say(stage->took, "%s:%s%" PRIu64 "%s", unsalt_state_name((unsalt_state_t)out->state), label->session,
            label->seq, gap);
    bool open = out->state == UNSALT_STATE_RELEASED || out->state == UNSALT_STATE_LATE ||
                out->state == UNSALT_STATE_STALE || out->state == UNSALT_STATE_UNSEQUENCED;
    if (stage->ack && open)
        CHECK_I64(unsalt_core_ack(stage->core, out->part, out->generation, out->ticket), UNSALT_CORE_OK);
}

static void note_event(struct stage *stage, const unsalt_core_event_t *event) {
    char session[64] = "";
    stage->event = *event;
    snprintf(session, sizeof(session), "%.*s", (int)(event->session_len < 60 ? event->session_len : 60),
             event->session ? (const char *)event->session : "");
    const char *name = unsalt_core_event_name(event->type);
    switch (event->type) {
    case UNSALT_CORE_EV_GAP:
        say(stage->said, "%s:%s%" PRIu64 "-%" PRIu64 ":%s", name, session, event->first, event->last,
            unsalt_gap_reason_name(event->reason));
        break;
    case UNSALT_CORE_EV_EPOCH:
        say(stage->said, "%s:%s:%" PRIu64, name, session, event->epoch);
        break;
    case UNSALT_CORE_EV_RESTART:
        say(stage->said, "%s:%s%" PRIu64, name, session, event->first);
        break;
    default:
        say(stage->said, "%s:%s", name, session);
    }
}

static size_t note_events(struct stage *stage) {
    unsalt_core_event_t events[32];
    size_t n, all = 0;
    while ((n = unsalt_core_events(stage->core, events, 32)) > 0) {
        all += n;
        for (size_t i = 0; i < n; i++)
            note_event(stage, &events[i]);
    }
    return all;
}

static void after_call(struct stage *stage) {
    note_events(stage);
    if (!stage->lazy)
        stage_pull(stage, SIZE_MAX);
    CHECK_THAT(unsalt_core_conserved(stage->core), "the ledger does not add up");
}

void stage_init(struct stage *stage) {
    memset(stage, 0, sizeof(*stage));
    unsalt_core_params_init(&stage->params);
    stage->params.question_min_ns = 0;
    failmem_init(&stage->mem);
    stage->now = SEC;
    stage->in = (unsalt_core_in_t){.since = 1, .una = UNSALT_NO_SEQ, .bytes = 100};
}

void stage_open(struct stage *stage) {
    char errstr[256] = "";
    stage->params.mem = stage->mem.mem;
    stage->core = unsalt_core_new(&stage->params, errstr, sizeof(errstr));
    CHECK_THAT(stage->core, "no core: %s", errstr);
    unsalt_core_reading(stage->core, true, stage->now);
}

uint32_t stage_assign(struct stage *stage, uint32_t set, uint32_t set_size, int32_t lane, int64_t start,
                      int64_t log_start) {
    unsalt_core_partition_t partition = {
        .set = set, .set_size = set_size, .lane = lane, .start_offset = start, .log_start = log_start};
    int index = unsalt_core_assign(stage->core, &partition);
    CHECK_THAT(index >= 0 && index < STAGE_PARTS, "assign says %d", index);
    stage->next[index] = start < 0 ? 0 : start;
    return (uint32_t)index;
}

void stage_parts(struct stage *stage, uint32_t set, uint32_t n, bool topics, int64_t start, int64_t log_start) {
    for (uint32_t i = 0; i < n; i++)
        stage_assign(stage, set, n, topics ? (int32_t)i : -1, start, log_start);
}

void stage_default(struct stage *stage, uint32_t n) {
    stage_init(stage);
    stage_open(stage);
    stage_parts(stage, 0, n, false, 0, 0);
}

bool stage_push(struct stage *stage, uint32_t part, const char *session, uint64_t seq) {
    struct stage_label *label = calloc(1, sizeof(*label));
    CHECK(label != NULL);
    label->next = stage->labels;
    label->seq = seq;
    snprintf(label->session, sizeof(label->session), "%s", session);
    stage->labels = label;
    unsalt_core_in_t in = stage->in;
    in.msg = label;
    in.session = session;
    in.session_len = (uint32_t)strlen(session);
    in.part = part;
    in.seq = seq;
    in.offset = stage->next[part];
    unsalt_core_out_t out;
    size_t n_out = 0;
    size_t took = unsalt_core_push(stage->core, &in, 1, stage->now, &out, &n_out, &stage->status);
    label->back = !took;
    CHECK_THAT(took == (stage->status == UNSALT_CORE_OK), "took %zu, status %d", took, stage->status);
    stage->next[part] += (int64_t)took;
    note_events(stage);
    for (size_t i = 0; i < n_out; i++)
        note_out(stage, &out);
    after_call(stage);
    return took;
}

bool stage_push_lane(struct stage *stage, uint32_t part, const char *session, uint64_t seq) {
    stage->in.lane = (uint16_t)(seq % stage->in.lanes);
    return stage_push(stage, part, session, seq);
}

size_t stage_pull(struct stage *stage, size_t max) {
    unsalt_core_out_t out[64];
    size_t all = 0;
    while (all < max) {
        size_t room = max - all < 64 ? max - all : 64;
        size_t n = unsalt_core_pull(stage->core, stage->now, out, room);
        note_events(stage);
        for (size_t i = 0; i < n; i++)
            note_out(stage, &out[i]);
        all += n;
        if (n < room)
            break;
    }
    return all;
}

void stage_expire(struct stage *stage) {
    for (int i = 0; unsalt_core_deadline(stage->core) <= stage->now; i++) {
        CHECK_THAT(i < 100000, "no rest: the deadline stays at %" PRIu64, unsalt_core_deadline(stage->core));
        unsalt_core_expire(stage->core, stage->now);
        after_call(stage);
    }
    after_call(stage);
}

void stage_wait(struct stage *stage, uint64_t ns) {
    stage->now += ns;
    stage_expire(stage);
}

void stage_horizon(struct stage *stage, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i <= last; i++)
        unsalt_core_horizon(stage->core, i, stage->now, stage->now);
    stage_expire(stage);
}

void stage_flush(struct stage *stage) {
    size_t said;
    do {
        unsalt_core_flush(stage->core, stage->now);
        said = note_events(stage);
        after_call(stage);
    } while (said);
}

unsalt_core_counters_t stage_counters(const struct stage *stage) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(stage->core, &counters);
    return counters;
}

static const char *hand_over(struct stage *stage, char *text) {
    memcpy(stage->text, text, STAGE_TEXT);
    text[0] = '\0';
    return stage->text;
}

const char *stage_took(struct stage *stage) {
    return hand_over(stage, stage->took);
}

const char *stage_said(struct stage *stage) {
    return hand_over(stage, stage->said);
}

void stage_close(struct stage *stage) {
    for (uint32_t i = 0; i < STAGE_PARTS; i++)
        if (unsalt_core_generation(stage->core, i))
            CHECK_I64(unsalt_core_revoke(stage->core, i, stage->now), UNSALT_CORE_OK);
    stage_pull(stage, SIZE_MAX);
    CHECK_THAT(unsalt_core_conserved(stage->core), "the ledger does not add up");
    CHECK_U64(stage_counters(stage).state[UNSALT_STATE_HELD], 0);
    CHECK_U64(stage_counters(stage).held_bytes, 0);
    unsalt_core_destroy(stage->core);
    while (stage->labels) {
        struct stage_label *label = stage->labels;
        CHECK_THAT(label->back, "%s%" PRIu64 " never came back", label->session, label->seq);
        stage->labels = label->next;
        free(label);
    }
    CHECK(failmem_is_balanced(&stage->mem));
}
