/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of the core become events of the application, each also a log line; lines are limited per type, events
 * are not.
 */
#include <kafka/consumer.h>
#include <stdarg.h>
#include <string.h>

#define LINES_PER_SECOND 10
#define SECOND (1000 * US_MS)

static int severity(unsalt_event_type_t type) {
    static const int severities[] = {
#define X(C, name, severity, text) severity,
        UNSALT_EVENTS(X)
#undef X
    };
    return severities[type];
}

/* ---- log */

static void write_line(const struct unsalt *u, int level, const char *line) {
    if (u->conf->log_cb) {
        u->conf->log_cb(u->conf->log_opaque, level, "UNSALT", line);
    } else if (level > u->before.log_level) {
        return;
    } else if (u->before.log_cb) {
        u->before.log_cb(u->rk, level, "UNSALT", line);
    } else {
        fprintf(stderr, "%%%d|UNSALT| %s\n", level, line);
    }
}

void us_log(const struct unsalt *u, int level, const char *format, ...) {
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    write_line(u, level, line);
}

static void log_event(struct unsalt *u, const unsalt_event_t *event) {
    struct us_log_limit *limit = &u->limits[event->type];
    uint64_t now = us_clock_now();
    if (now - limit->window >= SECOND) {
        if (limit->suppressed > 0) {
            us_log(u, event->severity, "%s: %u more lines were left out", unsalt_event_name(event->type),
                   limit->suppressed);
        }
        *limit = (struct us_log_limit){.window = now};
    }
    if (limit->written >= LINES_PER_SECOND) {
        limit->suppressed++;
        return;
    }
    limit->written++;
    write_line(u, event->severity, event->text);
}

/* ---- events */

void us_event_init(unsalt_event_t *event, unsalt_event_type_t type) {
    *event = (unsalt_event_t){.size = sizeof(*event), .type = type, .severity = severity(type), .partition = -1,
                              .lane = -1, .offset = -1};
}

unsalt_event_t us_event_of(unsalt_event_type_t type, const struct us_partition *p, const unsalt_core_in_t *in) {
    unsalt_event_t event;
    us_event_init(&event, type);
    event.session = in->session;
    event.session_len = in->session_len;
    event.topic = p->topic;
    event.partition = p->partition;
    event.offset = in->offset;
    event.epoch = in->epoch;
    event.lane = in->lane;
    return event;
}

void us_event_raise(struct unsalt *u, unsalt_event_t *event) {
    char text[1024];
    if (!event->text) {
        us_event_text(event, text, sizeof(text));
        event->text = text;
    }
    if (u->conf->event_cb) {
        u->conf->event_cb(u->conf->event_opaque, event);
    }
    log_event(u, event);
}

void us_malformed(struct unsalt *u, const rd_kafka_message_t *message, const char *fault, bool dead_letter) {
    char text[512];
    unsalt_event_t event;
    us_event_init(&event, UNSALT_EVENT_MALFORMED);
    event.topic = rd_kafka_topic_name(message->rkt);
    event.partition = message->partition;
    event.offset = message->offset;
    snprintf(text, sizeof(text), "malformed: %s [%d] offset %lld: %s; %s", event.topic, (int)event.partition,
             (long long)event.offset, fault,
             dead_letter ? "given to the dead-letter callback" : "passed on as unsequenced");
    event.text = text;
    u->own.malformed++;
    us_event_raise(u, &event);
}

static unsalt_event_type_t translate(const unsalt_core_event_t *ev) {
    switch (ev->type) {
    case UNSALT_CORE_EV_GAP:
        return ev->reason == UNSALT_GAP_RESUMED ? UNSALT_EVENT_RESUMED : UNSALT_EVENT_GAP;
    case UNSALT_CORE_EV_LATE:
        return UNSALT_EVENT_LATE;
    case UNSALT_CORE_EV_STALE:
        return UNSALT_EVENT_STALE;
    case UNSALT_CORE_EV_DUPLICATE:
        return UNSALT_EVENT_DUPLICATE;
    case UNSALT_CORE_EV_EPOCH:
        return UNSALT_EVENT_EPOCH;
    case UNSALT_CORE_EV_RESTART:
        return UNSALT_EVENT_RESTART;
    case UNSALT_CORE_EV_START:
        return UNSALT_EVENT_START;
    case UNSALT_CORE_EV_BUDGET:
        return UNSALT_EVENT_BUDGET;
    case UNSALT_CORE_EV_PROOF_OFF:
        return UNSALT_EVENT_PROOF_OFF;
    case UNSALT_CORE_EV_OFFSET_BACK:
        return UNSALT_EVENT_OFFSET_BACK;
    case UNSALT_CORE_EV_FORGOTTEN:
        return UNSALT_EVENT_FORGOTTEN;
    default: /* BELOW_FIRST, OVERSIZED: no usable sequence */
        return UNSALT_EVENT_MALFORMED;
    }
}

static void pass_on(struct unsalt *u, const unsalt_core_event_t *ev) {
    unsalt_event_t event;
    const struct us_partition *p = us_partition_of(u, ev->part);
    us_event_init(&event, translate(ev));
    event.reason = ev->reason;
    event.session = ev->session;
    event.session_len = ev->session_len;
    event.topic = p ? p->topic : NULL;
    event.partition = p ? p->partition : -1;
    event.lane = ev->lane;
    event.offset = ev->offset;
    event.epoch = ev->epoch;
    event.first = ev->first;
    event.last = ev->last;
    event.waited_ns = ev->waited_ns;
    event.overdue_ns = ev->overdue_ns;
    event.count = ev->count;
    u->own.malformed += event.type == UNSALT_EVENT_MALFORMED;
    us_event_raise(u, &event);
}

size_t us_core_events(struct unsalt *u) {
    unsalt_core_event_t events[32];
    size_t total = 0, n;
    do {
        n = unsalt_core_events(u->core, events, sizeof(events) / sizeof(events[0]));
        for (size_t i = 0; i < n; i++) {
            pass_on(u, &events[i]);
        }
        total += n;
    } while (n == sizeof(events) / sizeof(events[0]));
    return total;
}
