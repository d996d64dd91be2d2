/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <support/carry.h>

enum { TRIES = 100, PARTS = 16 };

struct next {
    unsalt_core_t *core;
    const unsalt_core_params_t *params;
    int64_t offsets[PARTS]; /* of the partition that each set has */
    char why[256];
};

static void drain(struct next *next) {
    unsalt_core_event_t events[32];
    unsalt_core_out_t out[32];
    size_t n;
    while (unsalt_core_events(next->core, events, 32) > 0)
        ;
    while ((n = unsalt_core_pull(next->core, 1, out, 32)) > 0)
        for (size_t i = 0; i < n; i++)
            unsalt_core_ack(next->core, out[i].part, out[i].generation, out[i].ticket);
}

/* The state in which a record of the number comes out at once; UNSALT_STATE__CNT: it doesn't. */
static unsalt_state_t ask(struct next *next, const unsalt_core_cursor_t *cursor, uint64_t seq) {
    unsalt_core_in_t in = {.session = cursor->session,
                           .session_len = cursor->session_len,
                           .part = cursor->set,
                           .seq = seq,
                           .epoch = cursor->epoch,
                           .since = UNSALT_NO_SEQ,
                           .una = UNSALT_NO_SEQ,
                           .offset = next->offsets[cursor->set],
                           .timestamp = -1,
                           .flags = UNSALT_F_RESEND};
    unsalt_core_out_t out = {.state = UNSALT_STATE__CNT};
    size_t n_out = 0;
    int status;
    for (int i = 0; i < TRIES && !unsalt_core_push(next->core, &in, 1, 1, &out, &n_out, &status); i++)
        drain(next);
    next->offsets[cursor->set]++;
    if (n_out)
        unsalt_core_ack(next->core, out.part, out.generation, out.ticket);
    drain(next);
    return n_out ? (unsalt_state_t)out.state : UNSALT_STATE__CNT;
}

/* wanted: a bit for each state that is right. */
static bool answers(struct next *next, const unsalt_core_cursor_t *cursor, uint64_t seq, unsigned wanted,
                    const char *what) {
    if (seq < next->params->seq_first || seq == UNSALT_NO_SEQ || next->why[0])
        return true;
    unsalt_state_t state = ask(next, cursor, seq);
    if (wanted >> state & 1)
        return true;
    snprintf(next->why, sizeof(next->why),
             "the cursor %" PRIu64 ":%" PRIu64 " was restored, and %" PRIu64 ", which is %s, comes out as %s",
             cursor->epoch, cursor->cursor, seq, what,
             state < UNSALT_STATE__CNT ? unsalt_state_name(state) : "nothing");
    return false;
}

static bool is_skipped(const unsalt_core_cursor_t *cursor, uint64_t seq) {
    for (uint32_t i = 0; i < cursor->skipped_count; i++)
        if (cursor->skipped[i].first <= seq && seq <= cursor->skipped[i].last)
            return true;
    return false;
}

static void question(struct next *next, const unsalt_core_cursor_t *cursor) {
    const unsigned late = 1u << UNSALT_STATE_LATE | 1u << UNSALT_STATE_DROPPED | 1u << UNSALT_STATE_DEAD_LETTERED;
    const unsigned done = late | 1u << UNSALT_STATE_DUPLICATE; /* what was given up may have been forgotten */
    uint64_t below = cursor->cursor - 1;
    for (uint32_t i = 0; i < cursor->done_count; i++) {
        answers(next, cursor, cursor->done[i].first, done, "done");
        answers(next, cursor, cursor->done[i].last, done, "done");
    }
    for (uint32_t i = 0; i < cursor->skipped_count; i++)
        answers(next, cursor, cursor->skipped[i].last, late, "given up");
    if (cursor->cursor > 0 && !is_skipped(cursor, below)) /* a second copy of one that was is none */
        answers(next, cursor, below, below < cursor->floor ? late : done, "below it");
    answers(next, cursor, cursor->cursor, 1u << UNSALT_STATE_RELEASED, "the next one");
}

static bool begin(struct next *next, const unsalt_core_params_t *params, uint32_t sets) {
    unsalt_core_params_t own = *params, defaults;
    unsalt_core_params_init(&defaults);
    own.mem = defaults.mem;
    next->core = unsalt_core_new(&own, next->why, sizeof(next->why));
    for (uint32_t set = 0; next->core && set < sets; set++)
        if (unsalt_core_assign(next->core, &(unsalt_core_partition_t){.set = set, .lane = -1}) != (int)set)
            return false;
    return next->core != NULL;
}

const char *carry_cursors(unsalt_core_t *core, const unsalt_core_params_t *params, uint32_t sets, bool kept) {
    static struct next next;
    unsalt_core_cursor_t cursor;
    int more = sets > PARTS ? UNSALT_CORE_INVAL : unsalt_core_cursors_begin(core);
    if (more == UNSALT_CORE_NOMEM)
        return NULL;
    next = (struct next){.params = params};
    if (more != UNSALT_CORE_OK || !begin(&next, params, sets))
        return "cursors can't be taken";
    while (!next.why[0] && (more = unsalt_core_cursors_next(core, &cursor)) == 1) {
        int err = cursor.cursor == UNSALT_NO_SEQ ? UNSALT_CORE_INVAL : unsalt_core_restore(next.core, &cursor, 1);
        if (err == UNSALT_CORE_OK)
            question(&next, &cursor);
        else if (cursor.cursor != UNSALT_NO_SEQ)
            snprintf(next.why, sizeof(next.why), "the cursor %" PRIu64 ":%" PRIu64 " can't be restored: %d",
                     cursor.epoch, cursor.cursor, err);
    }
    unsalt_core_cursors_end(core, kept && more == 0);
    unsalt_core_destroy(next.core);
    return next.why[0] ? next.why : NULL;
}
