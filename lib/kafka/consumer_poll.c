/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one loop behind poll, batch and callback. The ordinary call finds messages in the hand-out buffer and costs one
 * clock read; otherwise rounds are made until there is something or the time is over.
 */
#include <base/mem.h>
#include <kafka/consumer.h>

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t us_next_deadline(const struct unsalt *u) {
    if (u->revoke.active) {
        return earlier(u->revoke.until, u->now + u->sweep_ns);
    }
    uint64_t next = earlier(u->sweep_at, earlier(unsalt_core_deadline(u->core), u->commit_at));
    for (uint32_t i = 0; i < u->partition_count; i++) {
        next = earlier(next, u->partitions[i]->answer_at);
    }
    if (u->retry_at) {
        next = earlier(next, u->retry_at);
    }
    return next;
}

/* Verdicts of time. Each call of the core is bounded, and stops early when events or releases want to be taken. */
static void expire(struct unsalt *u, uint64_t now) {
    while (unsalt_core_deadline(u->core) <= now) {
        unsalt_core_expire(u->core, now);
        size_t moved = us_core_events(u);
        moved += us_pull(u, now);
        if (moved == 0) {
            break;
        }
    }
}

bool us_round(struct unsalt *u, uint64_t now) {
    atomic_store(&u->signalled, false);
    u->now = now;
    us_acks_apply(u);
    us_answers(u, now);
    bool moved = us_read_main(u);
    if (u->revoke.active) {
        us_revoke_continue(u, now);
        return moved;
    }
    bool sweep = now >= u->sweep_at;
    moved |= us_pull(u, now) > 0;
    moved |= us_read_partitions(u, now, sweep);
    if (u->went_back) {
        us_seek_back(u);
    }
    expire(u, now);
    moved |= us_pull(u, now) > 0;
    us_core_events(u);
    us_questions(u, now);
    us_commit_due(u, now);
    if (sweep) {
        u->own.sweeps++;
        u->sweep_at = now + u->sweep_ns;
    }
    return moved;
}

void us_handed_done(struct unsalt *u) {
    if (u->conf->ack == US_ACK_AUTO) {
        for (uint32_t i = 0; i < u->handed_count; i++) {
            const unsalt_core_out_t *out = &u->handed[i];
            if (out->part != US_NO_PART) {
                if (unsalt_core_ack(u->core, out->part, out->generation, out->ticket) == UNSALT_CORE_OK) {
                    us_stats_acked(u);
                }
            }
        }
    }
    u->handed_count = 0;
    us_info_forget(u);
}

/* A call that doesn't wait still finds what is there, even if much of it has to be held. */
#define POLL_GRACE (10 * US_MS)

/* Rounds until the buffer has something. False: the time is over, or somebody woke us. */
static bool fill_slowly(struct unsalt *u, uint64_t now, int timeout_ms) {
    uint64_t until = timeout_ms < 0 ? UNSALT_NEVER : now + (uint64_t)timeout_ms * US_MS;
    bool filled = false;
    unsalt_core_reading(u->core, true, now);
    for (;;) {
        bool moved = us_round(u, now);
        filled = u->ring.count > 0 && !u->revoke.active;
        if (filled || atomic_exchange(&u->woken, false)) {
            break;
        }
        now = us_clock_now();
        if (now >= until && (!moved || timeout_ms > 0 || now >= until + POLL_GRACE)) {
            break;
        }
        if (!moved) {
            uint64_t next = earlier(until, us_next_deadline(u));
            us_sleep(u, next > now ? next - now : US_MS);
            now = us_clock_now();
        }
    }
    unsalt_core_reading(u->core, false, us_clock_now());
    us_stats_refresh(u);
    return filled;
}

static bool fill(struct unsalt *u, int timeout_ms) {
    u->own.polls++;
    us_handed_done(u);
    if (u->ring.count > 0 && us_clock_coarse() < u->sweep_at && !u->revoke.active) {
        return true;
    }
    return fill_slowly(u, us_clock_now(), timeout_ms);
}

/* Makes room for n records in the application's hands. */
static bool reserve(struct unsalt *u, uint32_t n) {
    if (n > u->handed_capacity) {
        unsalt_core_out_t *grown = us_realloc_array(&us_mem_default, u->handed, n, sizeof(*grown));
        if (!grown) {
            return false;
        }
        u->handed = grown;
        u->handed_capacity = n;
    }
    return u->conf->ack == US_ACK_AUTO || us_acks_reserve(&u->acks, n);
}

/* Moves up to max messages from the buffer to the application's hands. 0: out of memory, nothing moved. */
static uint32_t hand_out(struct unsalt *u, size_t max) {
    uint32_t n = u->ring.count < max ? u->ring.count : (uint32_t)max;
    if (!reserve(u, n)) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
        return 0;
    }
    u->handed_count = us_ring_take(&u->ring, u->handed, n);
    u->handed_hint = 0;
    if (u->conf->ack == US_ACK_MANUAL) {
        us_acks_hand(u, u->handed, n);
    }
    us_stats_handed(u, u->handed, n);
    return n;
}

rd_kafka_message_t *unsalt_consumer_poll(unsalt_t *u, int timeout_ms) {
    if (!us_enter(u)) {
        return NULL;
    }
    rd_kafka_message_t *message = NULL;
    if (fill(u, timeout_ms) && hand_out(u, 1) == 1) {
        message = u->handed[0].msg;
    }
    us_leave(u);
    return message;
}

ssize_t unsalt_consume_batch(unsalt_t *u, int timeout_ms, rd_kafka_message_t **messages, size_t n) {
    if (!us_enter(u)) {
        return -1;
    }
    ssize_t count = 0;
    if (n > 0 && fill(u, timeout_ms)) {
        count = (ssize_t)hand_out(u, n);
        for (ssize_t i = 0; i < count; i++) {
            messages[i] = u->handed[i].msg;
        }
        count = count == 0 ? -1 : count;
    }
    us_leave(u);
    return count;
}

int unsalt_consume_callback(unsalt_t *u, int timeout_ms, unsalt_consume_cb *cb, void *opaque) {
    if (!us_enter(u)) {
        return -1;
    }
    int count = 0;
    uint32_t ready = fill(u, timeout_ms) ? u->ring.count : 0;
    while (ready-- > 0) {
        if (hand_out(u, 1) == 0) {
            count = count > 0 ? count : -1;
            break;
        }
        rd_kafka_message_t *message = u->handed[0].msg;
        cb(message, opaque);
        us_handed_done(u);
        rd_kafka_message_destroy(message);
        count++;
        /* A slow callback must not keep the group waiting: the rest comes by the next call. */
        if (us_clock_now() >= u->sweep_at) {
            break;
        }
    }
    us_leave(u);
    return count;
}
