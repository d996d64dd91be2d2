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
    if (us_revoke_blocks(u)) {
        return earlier(u->revoke.until, u->now + u->sweep_ns);
    }
    if (us_fenced(u)) {
        return earlier(u->doubt_until > u->now ? u->doubt_until : UNSALT_NEVER, u->now + u->sweep_ns);
    }
    uint64_t next = u->revoke.active ? earlier(u->sweep_at, u->revoke.until) : u->sweep_at;
    next = earlier(next, earlier(unsalt_core_deadline(u->core), u->commit_at));
    for (uint32_t i = 0; i < u->partition_count; i++) {
        next = earlier(next, u->partitions[i]->answer_at);
    }
    next = earlier(next, us_checkpoint_deadline(u));
    next = earlier(next, u->retry_at ? u->retry_at : UNSALT_NEVER);
    next = earlier(next, u->again_at ? u->again_at : UNSALT_NEVER);
    next = earlier(next, u->seek_at ? u->seek_at : UNSALT_NEVER);
    return earlier(next, u->rejoin_at ? u->rejoin_at : UNSALT_NEVER);
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

/* Steps of a round that tell the core a later time than the round's: it never hears an earlier one after that. */
static uint64_t later(struct unsalt *u) {
    return u->now = us_clock_now();
}

bool us_round(struct unsalt *u, uint64_t now) {
    atomic_store(&u->signalled, false);
    u->now = now;
    us_acks_apply(u);
    us_answers(u, now);
    us_fence_round(u, now);
    bool moved = us_read_main(u); /* a rebalance, and callbacks of the application */
    now = later(u);
    if (u->revoke.active) { /* also of a member that was thrown out: the group waits for its end */
        bool blocked = us_revoke_blocks(u);
        us_revoke_continue(u, now);
        if (blocked) {
            return moved;
        }
    }
    if (us_fenced(u)) {
        return moved;
    }
    us_assign_again(u, now);
    us_group_round(u, now);
    now = later(u);
    moved |= us_checkpoint_round(u, now);
    now = later(u);
    bool sweep = now >= u->sweep_at;
    moved |= us_pull(u, now) > 0;
    moved |= us_read_partitions(u, now, sweep);
    if (u->went_back || (u->seek_at && now >= u->seek_at)) {
        us_seek_back(u);
        now = later(u);
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
    if (u->conf->ack == US_ACK_AUTO && !u->handed_acked && u->handed_count > 0) {
        u->loose = true;
        /* What is outside the ledger has no partition, so the core passes it over. */
        us_stats_acked(u, unsalt_core_ack_batch(u->core, u->handed, u->handed_count));
    }
    u->handed_acked = true;
}

void us_handed_out_forget(struct unsalt *u) {
    us_handed_done(u);
    u->handed_count = 0;
    us_info_forget(u);
}

/* A call that doesn't wait still finds what is there, even if much of it has to be held. */
#define POLL_GRACE (10 * US_MS)

/* Rounds until the buffer has something. False: the time is over, or somebody woke us. */
static bool fill_slowly(struct unsalt *u, uint64_t now, int timeout_ms) {
    uint64_t until = timeout_ms < 0 ? UNSALT_NEVER : now + (uint64_t)timeout_ms * US_MS;
    bool filled = false, moved;
    unsalt_core_reading(u->core, !u->full, now);
    for (;;) {
        moved = us_round(u, now);
        filled = u->ring.count > 0 && !us_revoke_blocks(u) && !us_fenced(u);
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
    us_loop_rest(u, !moved && !filled);
    us_stats_refresh(u);
    return filled;
}

static bool fill(struct unsalt *u, int timeout_ms) {
    u->own.polls++;
    us_handed_done(u);
    if (u->ring.count > 0 && !u->revoke.active) {
        uint64_t tick = us_clock_coarse();
        if (tick < u->sweep_at && !us_fenced_since(u, tick)) {
            return true;
        }
    }
    bool filled = fill_slowly(u, us_clock_now(), timeout_ms);
    us_handed_out_forget(u);
    return filled;
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

uint32_t us_hand_out(struct unsalt *u, size_t max) {
    uint32_t n = u->ring.count < max ? u->ring.count : (uint32_t)max;
    us_handed_out_forget(u);
    if (!reserve(u, n)) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
        return 0;
    }
    uint32_t orphans = u->ring.orphans;
    u->handed_count = us_ring_take(&u->ring, u->handed, n);
    u->torn |= u->ring.orphans < orphans; /* no commit will cover them */
    u->handed_acked = false;
    u->handed_hint = 0;
    us_ring_prefetch(&u->ring, u->handed, n);
    if (u->conf->ack == US_ACK_MANUAL) {
        us_acks_hand(u, u->handed, n);
    }
    us_stats_handed(u, u->handed, n);
    return n;
}

rd_kafka_message_t *unsalt_consumer_poll(unsalt_t *u, int timeout_ms) {
    if (!us_enter_to_poll(u)) {
        return NULL;
    }
    rd_kafka_message_t *message = NULL;
    if (fill(u, timeout_ms) && us_hand_out(u, 1) == 1) {
        message = u->handed[0].msg;
    }
    us_leave(u);
    return message;
}

ssize_t unsalt_consume_batch(unsalt_t *u, int timeout_ms, rd_kafka_message_t **messages, size_t n) {
    if (!us_enter_to_poll(u)) {
        return -1;
    }
    ssize_t count = 0;
    if (n > 0 && fill(u, timeout_ms)) {
        count = (ssize_t)us_hand_out(u, n);
        for (ssize_t i = 0; i < count; i++) {
            messages[i] = u->handed[i].msg;
        }
        count = count == 0 ? -1 : count;
    }
    us_leave(u);
    return count;
}

int unsalt_consume_callback(unsalt_t *u, int timeout_ms, unsalt_consume_cb *cb, void *opaque) {
    if (!us_enter_to_poll(u)) {
        return -1;
    }
    int count = 0;
    uint32_t ready = fill(u, timeout_ms) ? u->ring.count : 0;
    while (ready-- > 0) {
        if (us_hand_out(u, 1) == 0) {
            count = count > 0 ? count : -1;
            break;
        }
        rd_kafka_message_t *message = u->handed[0].msg;
        cb(message, opaque);
        us_handed_out_forget(u);
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
