/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of events. It is bounded; whoever may raise one asks for room first (us_events_room()) and stops early
 * without it, so that none is lost. Session ids are copied, since a session may be gone when the event is read.
 */
#include <core/engine.h>
#include <string.h>

bool us_events_init(struct unsalt_core *core) {
    struct us_event_ring *ring = &core->events;
    ring->events = us_calloc(&core->mem, US_EVENTS_CAPACITY, sizeof(*ring->events));
    ring->ids = us_calloc(&core->mem, US_EVENTS_CAPACITY, core->params.session_id_max);
    return ring->events && ring->ids;
}

void us_events_destroy(struct unsalt_core *core) {
    us_free(&core->mem, core->events.events);
    us_free(&core->mem, core->events.ids);
}

unsalt_core_event_t *us_event(struct unsalt_core *core, unsalt_core_event_type_t type,
                              const struct us_session *session) {
    struct us_event_ring *ring = &core->events;
    uint32_t slot = (ring->first + ring->count++) % US_EVENTS_CAPACITY;
    unsalt_core_event_t *event = &ring->events[slot];
    memset(event, 0, sizeof(*event));
    event->type = type;
    event->part = UINT32_MAX;
    event->offset = -1;
    event->lane = -1;
    if (session) {
        us_event_session(core, event, session->id, session->id_len);
        event->epoch = session->epoch;
    }
    return event;
}

void us_event_session(struct unsalt_core *core, unsalt_core_event_t *event, const void *id, uint32_t len) {
    size_t room = core->params.session_id_max, slot = (size_t)(event - core->events.events);
    unsigned char *copy = core->events.ids + slot * room;
    event->session_len = len < room ? len : (uint32_t)room;
    if (event->session_len) {
        memcpy(copy, id, event->session_len);
        event->session = copy;
    }
}

size_t unsalt_core_events(unsalt_core_t *core, unsalt_core_event_t *ev, size_t max) {
    struct us_event_ring *ring = &core->events;
    size_t n = 0;
    while (n < max && ring->count) {
        ev[n++] = ring->events[ring->first];
        ring->first = (ring->first + 1) % US_EVENTS_CAPACITY;
        ring->count--;
    }
    return n;
}

const char *unsalt_core_event_name(unsalt_core_event_type_t type) {
    static const char *const names[] = {
#define X(C, name, text) #name,
        UNSALT_CORE_EVENTS(X)
#undef X
    };
    return (unsigned)type < UNSALT_CORE_EV__CNT ? names[type] : "?";
}
