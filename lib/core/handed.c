/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which session and number a record in the application's hands belongs to: by ticket, beside the frontier's bits. An
 * acknowledgement finds it in O(1).
 */
#include <core/engine.h>

static struct us_handed *slot_of(const struct us_part *part, uint64_t ticket) {
    return &part->handed.slots[ticket & (part->handed.size - 1)];
}

/* Makes the ring as large as the frontier's. False: out of memory, nothing changed. */
static bool grow(struct unsalt_core *core, struct us_part *part) {
    const struct us_frontier *frontier = &part->frontier;
    struct us_handed_ring bigger = {us_calloc(&core->mem, frontier->bits, sizeof(struct us_handed)), frontier->bits};
    if (!bigger.slots) {
        return false;
    }
    for (uint64_t ticket = frontier->base; part->handed.slots && ticket < frontier->next; ticket++) {
        bigger.slots[ticket & (bigger.size - 1)] = *slot_of(part, ticket);
    }
    us_free(&core->mem, part->handed.slots);
    part->handed = bigger;
    return true;
}

bool us_ticket_grow(struct unsalt_core *core, struct us_part *part) {
    if (!us_frontier_grow(&part->frontier, &core->mem, 1)) {
        return false;
    }
    if (!core->params.cursors || part->handed.size == part->frontier.bits) {
        return true;
    }
    bool grown = grow(core, part);
    us_frontier_narrow(&part->frontier, part->handed.size);
    return grown;
}

void us_handed_note(struct unsalt_core *core, struct us_session *session, const unsalt_core_out_t *out) {
    *slot_of(&core->parts[out->part], out->ticket) =
        (struct us_handed){session, out->seq, out->state == UNSALT_STATE_LATE, false};
    session->open++;
    core->handed_changes++;
    us_changed(core, session);
}

static void back(struct unsalt_core *core, struct us_part *part, uint64_t ticket) {
    struct us_handed *slot = slot_of(part, ticket);
    struct us_session *session = slot->session;
    if (!session) {
        return;
    }
    slot->session = NULL;
    *(slot->former ? &session->former : &session->open) -= 1;
    core->handed_changes++;
    us_changed(core, session);
    if (session->open == 0 && (session->special & US_SPECIAL_ENDING)) {
        us_wait_at(core, &session->gap, core->now); /* the later run waits for this; see epoch.c */
    }
}

int us_handed_ack(struct unsalt_core *core, struct us_part *part, uint64_t ticket) {
    bool first, exists = us_frontier_ack(&part->frontier, ticket, &first);
    if (exists && first) {
        back(core, part, ticket);
    }
    return exists ? UNSALT_CORE_OK : UNSALT_CORE_INVAL;
}

/* Forgets what is kept of a partition. */
static void forget(struct us_part *part) {
    for (uint64_t i = 0; i < part->handed.size; i++) {
        struct us_handed *slot = &part->handed.slots[i];
        if (slot->session) {
            *(slot->former ? &slot->session->former : &slot->session->open) -= 1;
            slot->session = NULL;
        }
    }
}

static void make_former(struct us_part *part, struct us_session *session) {
    for (uint64_t i = 0; i < part->handed.size; i++) {
        struct us_handed *slot = &part->handed.slots[i];
        if (slot->session == session && !slot->former) {
            slot->former = true;
            session->open--;
            session->former++;
        }
    }
}

void us_handed_former(struct unsalt_core *core, struct us_session *session) {
    core->handed_changes++;
    for (uint32_t i = 0; session->open > 0 && i < session->set->part_count; i++) {
        make_former(&core->parts[session->set->parts[i]], session);
    }
}

void us_handed_forget_set(struct unsalt_core *core, const struct us_set *set) {
    core->handed_changes++;
    for (uint32_t i = 0; i < set->part_count; i++) {
        forget(&core->parts[set->parts[i]]);
    }
}
