/* SPDX-License-Identifier: BSD-2-Clause */
/* One line per event, for people who are woken by it. */
#include <inttypes.h>
#include <kafka/consumer.h>
#include <stdarg.h>

#define SESSION_SHOWN 64 /* bytes of a session id that a line shows */

struct line {
    char *text;
    size_t size, used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...) {
    va_list args;
    if (line->used >= line->size) {
        return;
    }
    va_start(args, format);
    int n = vsnprintf(line->text + line->used, line->size - line->used, format, args);
    va_end(args);
    line->used += n > 0 ? (size_t)n : 0;
}

/* Ids are bytes: what isn't printable ASCII is shown in hexadecimal. */
static void add_session(struct line *line, const unsalt_event_t *event) {
    if (!event->session) {
        return;
    }
    const unsigned char *bytes = event->session;
    size_t shown = event->session_len < SESSION_SHOWN ? event->session_len : SESSION_SHOWN;
    add(line, " session \"");
    for (size_t i = 0; i < shown; i++) {
        bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\';
        add(line, plain ? "%c" : "\\x%02x", bytes[i]);
    }
    add(line, shown < event->session_len ? "...\"" : "\"");
}

static void add_range(struct line *line, const unsalt_event_t *event) {
    if (event->first == event->last) {
        add(line, " %" PRIu64, event->first);
    } else {
        add(line, " %" PRIu64 "..%" PRIu64, event->first, event->last);
    }
}

static void add_ms(struct line *line, const unsalt_event_t *event) {
    add(line, " after %" PRIu64 " ms", event->waited_ns / US_MS);
}

static void add_place(struct line *line, const unsalt_event_t *event) {
    if (event->lane >= 0) {
        add(line, ", lane %d", (int)event->lane);
    }
    if (event->topic) {
        add(line, ", %s [%d]", event->topic, (int)event->partition);
    }
    if (event->offset >= 0) {
        add(line, " offset %" PRId64, event->offset);
    }
}

static void add_gap(struct line *line, const unsalt_event_t *event) {
    add_range(line, event);
    if (event->type == UNSALT_EVENT_RESUMED) {
        add(line, " passed over, consumed before");
        return;
    }
    add(line, " given up (%s)", unsalt_gap_reason_name(event->reason));
    add_ms(line, event);
    if (event->reason == UNSALT_GAP_TIMEOUT || event->reason == UNSALT_GAP_STALLED) {
        add(line, ", due for %" PRIu64 " ms", event->overdue_ns / US_MS);
    }
}

static void add_what(struct line *line, const unsalt_event_t *event) {
    switch (event->type) {
    case UNSALT_EVENT_GAP:
    case UNSALT_EVENT_RESUMED:
        add_gap(line, event);
        break;
    case UNSALT_EVENT_LATE:
        add_range(line, event);
        add(line, " came below the cursor, never released before");
        break;
    case UNSALT_EVENT_STALE:
        add_range(line, event);
        add(line, " of epoch %" PRIu64 ", which is over", event->epoch);
        break;
    case UNSALT_EVENT_DUPLICATE:
        add_range(line, event);
        add(line, " dropped, a copy");
        break;
    case UNSALT_EVENT_EPOCH:
        add(line, " goes on with epoch %" PRIu64 " at %" PRIu64 " (was at %" PRIu64 ")", event->epoch, event->last,
            event->first);
        break;
    case UNSALT_EVENT_RESTART:
        add(line, " started again at %" PRIu64 " (was at %" PRIu64 ") without a higher epoch", event->first,
            event->last);
        break;
    case UNSALT_EVENT_START:
        add(line, " joined at %" PRIu64, event->first);
        break;
    case UNSALT_EVENT_BUDGET:
        add(line, " %s is full with %" PRIu64 " records held: %s", unsalt_budget_name((unsalt_budget_t)event->first),
            event->count, unsalt_budget_outcome_name((unsalt_budget_outcome_t)event->last));
        break;
    case UNSALT_EVENT_MALFORMED:
        add(line, " no usable sequence or session id");
        break;
    case UNSALT_EVENT_COLLISION:
        add(line, " has lanes %" PRIu64 " and %" PRIu64 " in one partition, %" PRIu64 " such sessions so far",
            event->first, event->last, event->count);
        break;
    case UNSALT_EVENT_MISPLACED:
        add_range(line, event);
        break;
    case UNSALT_EVENT_PROOF_OFF:
        add_range(line, event);
        add(line, " contradicts what its lane has shown: its gaps wait for the clock from now on (two producers?)");
        break;
    case UNSALT_EVENT_OFFSET_BACK:
        add(line, " an offset that was read before, fenced");
        break;
    case UNSALT_EVENT_OUTSTANDING:
        add(line, " handed out and not acknowledged when its partition went");
        break;
    case UNSALT_EVENT_FORGOTTEN:
        add(line, " cursors were forgotten; unknown sessions start at the lowest number seen");
        break;
    default:
        break;
    }
}

/* Of a pipeline: what has failed, and why, is added by who raises it. */
static bool is_of_record(const unsalt_event_t *event) {
    switch (event->type) {
    case UNSALT_EVENT_PIPELINE_HALTED:
    case UNSALT_EVENT_PIPELINE_HALTED_FULL:
    case UNSALT_EVENT_PIPELINE_SKIPPED:
    case UNSALT_EVENT_PIPELINE_BURIED:
    case UNSALT_EVENT_PIPELINE_NOT_BURIED:
    case UNSALT_EVENT_PIPELINE_SLOW:
        return true;
    default:
        return false;
    }
}

void us_event_text(const unsalt_event_t *event, char *text, size_t size) {
    struct line line = {.text = text, .size = size};
    add(&line, "%s:", unsalt_event_name(event->type));
    add_session(&line, event);
    add_what(&line, event);
    if (is_of_record(event) && event->first > 0) {
        add_range(&line, event);
    }
    add_place(&line, event);
}
