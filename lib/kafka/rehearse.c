/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash.h>
#include <base/mem.h>
#include <kafka/consumer.h>
#include <kafka/rehearse.h>
#include <string.h>

#define LATE_MAX 64 /* records that are kept back at a time */

struct late {
    rd_kafka_message_t *message; /* owned until it is pushed */
    uint64_t since, ticket;      /* ticket: the placeholder's, which the record gets */
    uint32_t part, generation;
    bool pushed;
};

struct us_rehearse {
    unsalt_rehearsal_t fate;       /* of the last record of the chunk at hand */
    rd_kafka_message_t *kept_back; /* that record, if it is to be late */
    uint64_t full_before;          /* budget_full before its push */
    unsalt_core_in_t copy;
    char placeholder, copy_mark;   /* their addresses stand for messages */
    uint32_t late_count;
    struct late late[LATE_MAX];
    char session[4096];
};

/* ---- what is chosen */

unsalt_rehearsal_t us_rehearse_draw(const struct unsalt_conf *conf, const char *topic, int32_t partition,
                                    int64_t offset) {
    const int64_t rates[] = {conf->rehearse_vanish, conf->rehearse_duplicate, conf->rehearse_late,
                             conf->rehearse_budget};
    uint64_t place = us_hash(topic, strlen(topic), (uint64_t)conf->rehearse_seed) + (uint32_t)partition;
    int64_t drawn = (int64_t)(us_mix(us_mix(place) + (uint64_t)offset) % 1000000);
    for (int i = 0; i < UNSALT_REHEARSAL__CNT; i++) {
        if (drawn < rates[i]) {
            return (unsalt_rehearsal_t)i;
        }
        drawn -= rates[i];
    }
    return US_REHEARSE_NONE;
}

static bool is_on(const struct unsalt_conf *conf) {
    return conf->rehearse_vanish + conf->rehearse_duplicate + conf->rehearse_late + conf->rehearse_budget > 0;
}

bool us_rehearse_init(struct unsalt *u) {
    if (!is_on(u->conf)) {
        return true;
    }
    u->rehearse = us_calloc(&us_mem_default, 1, sizeof(*u->rehearse));
    return u->rehearse != NULL;
}

void us_rehearse_warn(const struct unsalt *u) {
    const struct unsalt_conf *conf = u->conf;
    if (u->rehearse) {
        us_log(u, 1, "REHEARSAL IS ON: of a million records %lld vanish, %lld come twice, %lld come late, and for %lld "
               "a budget counts as full (rehearse.*). This is no way to process real data",
               (long long)conf->rehearse_vanish, (long long)conf->rehearse_duplicate, (long long)conf->rehearse_late,
               (long long)conf->rehearse_budget);
    }
}

/* ---- records on their way in */

static uint64_t budget_full(const struct unsalt *u) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(u->core, &counters);
    return counters.budget_full[UNSALT_BUDGET_RECORDS];
}

static void vanish(unsalt_core_in_t *in) {
    in->kind = UNSALT_KIND_CONTROL;
    in->session = NULL;
    in->session_len = 0;
    in->flags = 0;
    in->seq = UNSALT_NO_SEQ;
}

/* The record is pushed after its original, which may be gone by then: so its session is copied. */
static void keep_copy(struct us_rehearse *rehearse, const unsalt_core_in_t *in) {
    rehearse->copy = *in;
    memcpy(rehearse->session, in->session, in->session_len);
    rehearse->copy.session = rehearse->session;
    rehearse->copy.msg = &rehearse->copy_mark;
    rehearse->copy.flags |= UNSALT_IN_AGAIN;
}

bool us_rehearse_record(struct unsalt *u, struct us_partition *p, const rd_kafka_message_t *message, uint32_t n) {
    struct us_rehearse *rehearse = u->rehearse;
    unsalt_core_in_t *in = &u->in[n];
    rehearse->fate = US_REHEARSE_NONE;
    if (in->kind != UNSALT_KIND_SEQUENCED) {
        return false;
    }
    unsalt_rehearsal_t fate = us_rehearse_draw(u->conf, p->topic, p->partition, message->offset);
    bool again = fate == UNSALT_REHEARSAL_BUDGET && message->offset == p->rehearsed;
    if (fate == US_REHEARSE_NONE || again || (fate == UNSALT_REHEARSAL_LATE && rehearse->late_count == LATE_MAX)) {
        return false;
    }
    rehearse->fate = fate;
    if (fate == UNSALT_REHEARSAL_VANISH) {
        vanish(in);
    } else if (fate == UNSALT_REHEARSAL_DUPLICATE) {
        keep_copy(rehearse, in);
    } else if (fate == UNSALT_REHEARSAL_LATE) {
        vanish(in);
        in->kind = UNSALT_KIND_UNSEQUENCED;
        in->msg = &rehearse->placeholder;
        rehearse->kept_back = (rd_kafka_message_t *)message;
    } else {
        in->flags |= UNSALT_IN_FULL;
        rehearse->full_before = budget_full(u);
    }
    return true;
}

/* Pushes one more record and takes what comes. Returns whether it was taken. */
static bool push_one(struct unsalt *u, const unsalt_core_in_t *in, uint64_t now) {
    size_t n_out = 0, took;
    int status = UNSALT_CORE_OK;
    took = unsalt_core_push(u->core, in, 1, now, u->out, &n_out, &status);
    us_out_settle(u, u->out, n_out);
    if (status == UNSALT_CORE_PULL && us_core_events(u) + us_pull(u, now) > 0) {
        took = unsalt_core_push(u->core, in, 1, now, u->out, &n_out, &status);
        us_out_settle(u, u->out, n_out);
    }
    return took > 0;
}

void us_rehearse_pushed(struct unsalt *u, struct us_partition *p, uint32_t n, uint32_t took, uint64_t now) {
    struct us_rehearse *rehearse = u->rehearse;
    unsalt_rehearsal_t fate = rehearse->fate;
    bool happened = took == n;
    rehearse->fate = US_REHEARSE_NONE;
    if (fate == UNSALT_REHEARSAL_BUDGET && took + 1 >= n) {
        p->rehearsed = u->in[n - 1].offset; /* tried again, it finds room */
        happened = budget_full(u) > rehearse->full_before;
    } else if (fate == UNSALT_REHEARSAL_DUPLICATE && happened) {
        happened = push_one(u, &rehearse->copy, now);
    }
    if (fate != US_REHEARSE_NONE && happened) {
        u->own.rehearsed[fate]++;
    }
}

/* ---- records on their way out */

static struct late *find_late(struct us_rehearse *rehearse, const void *message) {
    for (uint32_t i = 0; i < rehearse->late_count; i++) {
        if (rehearse->late[i].message == message) {
            return &rehearse->late[i];
        }
    }
    return NULL;
}

static void remove_late(struct us_rehearse *rehearse, struct late *late) {
    *late = rehearse->late[--rehearse->late_count];
}

static bool handed_out(unsigned state) {
    return state == UNSALT_STATE_RELEASED || state == UNSALT_STATE_LATE || state == UNSALT_STATE_STALE ||
           state == UNSALT_STATE_UNSEQUENCED;
}

/* The record gets the ticket of its placeholder: the commit waits for what its place in the log was. */
static void came_late(struct unsalt *u, struct late *late, unsalt_core_out_t *out) {
    if (handed_out(out->state)) {
        unsalt_core_ack(u->core, out->part, out->generation, out->ticket);
        out->ticket = late->ticket;
    } else {
        unsalt_core_ack(u->core, late->part, late->generation, late->ticket);
    }
    remove_late(u->rehearse, late);
}

size_t us_rehearse_filter(struct unsalt *u, unsalt_core_out_t *out, size_t n) {
    struct us_rehearse *rehearse = u->rehearse;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct late *late = find_late(rehearse, out[i].msg);
        if (out[i].msg == &rehearse->placeholder) {
            rehearse->late[rehearse->late_count++] =
                (struct late){rehearse->kept_back, u->now, out[i].ticket, out[i].part, out[i].generation, false};
        } else if (out[i].msg == &rehearse->copy_mark) {
            unsalt_core_ack(u->core, out[i].part, out[i].generation, out[i].ticket);
        } else {
            if (late) {
                came_late(u, late, &out[i]);
            }
            out[kept++] = out[i];
        }
    }
    return kept;
}

/* Has its number been given up, or has it waited long enough? */
static bool is_due(const struct unsalt *u, const struct us_partition *p, const struct late *late,
                   const unsalt_core_in_t *in, uint64_t now) {
    unsalt_core_session_info_t info;
    if (now - late->since >= US_REHEARSE_LATE_MS * US_MS) {
        return true;
    }
    return unsalt_core_session_info(u->core, p->set, in->session, in->session_len, &info) == UNSALT_CORE_OK &&
           info.cursor != UNSALT_NO_SEQ && info.cursor > in->seq;
}

/* Returns whether the record is still there. */
static bool try_late(struct unsalt *u, struct late *late, uint64_t now) {
    const struct us_partition *p = us_partition_of(u, late->part);
    unsalt_core_in_t in = {.part = late->part};
    bool borrowed = false;
    if (!p || p->generation != late->generation) {
        rd_kafka_message_destroy(late->message); /* never acknowledged: it is read again */
        remove_late(u->rehearse, late);
        return false;
    }
    const char *fault = us_extract(&u->extractor, late->message, &in, &borrowed);
    if (fault || !is_due(u, p, late, &in, now)) {
        return true;
    }
    in.flags |= UNSALT_IN_AGAIN;
    late->pushed = true;
    void *message = late->message;
    if (!push_one(u, &in, now)) {
        late->pushed = false;
        return true;
    }
    return find_late(u->rehearse, message) != NULL; /* it may be held, and come out later */
}

void us_rehearse_due(struct unsalt *u, uint64_t now) {
    struct us_rehearse *rehearse = u->rehearse;
    for (uint32_t i = 0; i < rehearse->late_count && us_ring_room(&u->ring) > 1;) {
        struct late *late = &rehearse->late[i];
        i += late->pushed || try_late(u, late, now);
    }
}

void us_rehearse_drop(struct unsalt *u) {
    for (uint32_t i = 0; u->rehearse && i < u->rehearse->late_count; i++) {
        if (!u->rehearse->late[i].pushed) {
            rd_kafka_message_destroy(u->rehearse->late[i].message);
        }
    }
    if (u->rehearse) {
        u->rehearse->late_count = 0;
    }
}

void us_rehearse_free(struct unsalt *u) {
    us_free(&us_mem_default, u->rehearse);
    u->rehearse = NULL;
}
