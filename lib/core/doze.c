/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session that is awake for one record that it holds above a gap, and nothing else, takes several times the memory of
 * that record. While many others are awake too it dozes: what the row has no place for moves to a small block, with the
 * timer of the gap where it stands. It wakes before anything is done to it, and is then as it was. Who only looks at it
 * gets a view.
 */
#include <core/doze.h>

/* The timer now stands at another place in memory. */
static void move_timer(struct unsalt_core *core, struct us_wait *to, const struct us_wait *from) {
    *to = *from;
    core->clock.slots[from->node.index].node = &to->node;
}

static void link_doze(struct us_set *set, struct us_doze *doze) {
    doze->prev = set->doze_last;
    doze->next = NULL;
    if (set->doze_last) {
        set->doze_last->next = doze;
    } else {
        set->doze_first = doze;
    }
    set->doze_last = doze;
}

static void unlink_doze(struct us_set *set, struct us_doze *doze) {
    if (doze->prev) {
        doze->prev->next = doze->next;
    } else {
        set->doze_first = doze->next;
    }
    if (doze->next) {
        doze->next->prev = doze->prev;
    } else {
        set->doze_last = doze->prev;
    }
}

/* The one record that is held, in lane mode or in a page. */
static struct us_held only_held(const struct us_reasm *reasm) {
    uint64_t seq = us_reasm_lowest(reasm);
    if (reasm->modulus) {
        const struct us_fifo *fifo = &reasm->lanes[seq % reasm->modulus].fifo;
        return us_held_join(us_fifo_head(fifo), fifo->head->source);
    }
    return us_near_held(&reasm->irregular->near, seq);
}

/* One record is held, and the gap is timed by the clock: a doze has no place for more. */
static bool may_doze(const struct us_session *session) {
    const struct us_reasm *reasm = &session->reasm;
    return reasm->held == 1 && (reasm->modulus || reasm->irregular->near.count == 1) && session->blocked &&
           session->gap.where == US_WHERE_CLOCK && session->began == 0 && session->skips.count == 0 &&
           us_session_is_plain(session);
}

bool us_doze(struct unsalt_core *core, struct us_session *session) {
    if (session == core->last_session || !may_doze(session)) {
        return false;
    }
    struct us_doze *doze = us_alloc(&core->mem, sizeof(*doze));
    if (!doze) {
        return false; /* it can as well stay awake */
    }
    struct us_reasm *reasm = &session->reasm;
    *doze = (struct us_doze){.held = only_held(reasm),
                             .cursor = reasm->cursor,
                             .upto = session->rule.upto,
                             .evidence = reasm->evidence,
                             .set = session->set,
                             .ref = session->ref,
                             .modulus = reasm->modulus};
    move_timer(core, &doze->wait, &session->gap);
    doze->wait.kind = US_WAIT_DOZE;
    doze->wait.session = NULL;
    us_session_keep(session);
    session->row->is.doze = doze;
    session->row->dozes = 1;
    link_doze(session->set, doze);
    reasm->evidence = NULL; /* it has moved */
    us_reasm_empty(reasm, &core->chunks);
    us_session_block_back(core, session);
    return true;
}

void us_doze_oldest(struct unsalt_core *core, struct us_set *set) {
    struct us_session *session = set->awake_first;
    if (session && !us_doze(core, session)) {
        us_session_unlink_awake(core, session);
        us_session_link_awake(core, session);
    }
}

/* What it is when it is awake, but for the records that are held and the timer. */
static void remember(struct us_session *session, const struct us_doze *doze) {
    us_session_remember(session, doze->cursor);
    session->rule.upto = doze->upto;
    session->flushing = doze->flushing;
    session->blocked = true;
}

struct us_session *us_doze_wake(struct unsalt_core *core, struct us_doze *doze) {
    struct us_session *session = us_session_block(core, doze->set, doze->ref);
    if (!session) {
        return NULL;
    }
    remember(session, doze);
    if (us_reasm_insert(&session->reasm, &core->chunks, &doze->held, doze->modulus) != US_INSERT_HELD) {
        us_reasm_empty(&session->reasm, &core->chunks); /* irregular mode may have been entered */
        us_session_block_back(core, session);
        return NULL;
    }
    session->reasm.evidence = doze->evidence;
    move_timer(core, &session->gap, &doze->wait);
    session->gap.kind = US_WAIT_GAP;
    session->gap.session = session;
    session->row->is.awake = session;
    session->row->dozes = 0;
    unlink_doze(doze->set, doze);
    us_free(&core->mem, doze);
    return session;
}

bool us_doze_wake_all(struct unsalt_core *core, struct us_set *set) {
    while (set->doze_first) {
        if (!us_doze_wake(core, set->doze_first)) {
            return false;
        }
    }
    return true;
}

const struct us_session *us_doze_view(const struct unsalt_core *core, const struct us_doze *doze,
                                      struct us_view *view) {
    struct us_session *session = &view->session;
    us_session_view_begin(core, doze->set, doze->ref, view);
    remember(session, doze);
    /* One FIFO of one record is enough for all who read. */
    struct us_chunk *chunk = &view->chunk.is;
    chunk->capacity = 1;
    chunk->source = us_source(doze->held.part, doze->held.lane, doze->held.flags);
    chunk->entries[0] = us_held_split(&doze->held);
    view->lane = (struct us_lane){.fifo = {.head = chunk, .tail = chunk, .count = 1, .end = 1}, .last = doze->held.seq};
    view->lane.node.index = US_HEAP_OUT;
    session->reasm.lanes = &view->lane;
    session->reasm.lane_count = session->reasm.modulus = 1;
    session->reasm.evidence = doze->evidence;
    session->reasm.held = 1;
    session->reasm.held_bytes = doze->held.bytes;
    session->gap = doze->wait;
    session->gap.kind = US_WAIT_GAP;
    session->gap.session = session;
    return session;
}

void us_dozes_drop(struct unsalt_core *core, struct us_set *set) {
    while (set->doze_first) {
        struct us_doze *doze = set->doze_first;
        us_wait_gone(core, &doze->wait);
        us_evidence_destroy(doze->evidence, &core->mem);
        us_row_at(&core->rows, doze->ref)->is_awake = 0;
        set->doze_first = doze->next;
        us_free(&core->mem, doze);
    }
    set->doze_last = NULL;
}
