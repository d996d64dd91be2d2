/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics: copied under a lock when rounds were made, so that any thread can read them; what hand-outs from the
 * buffer change in between stands in a tally of atomic counters, since such a call has no time for a lock.
 */
#include <base/copy_out.h>
#include <base/waits.h>
#include <kafka/consumer.h>
#include <string.h>

void us_stats_init(struct unsalt *u) {
    pthread_mutex_init(&u->stats_lock, NULL);
    u->stats.conserved = 1;
}

/* Adds without a locked instruction: only the thread of the call writes. */
static void add(_Atomic uint64_t *counter, uint64_t n) {
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + n, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void us_stats_acked(struct unsalt *u, uint64_t n) {
    add(&u->tally.acked, n);
}

void us_stats_handed(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n) {
    uint64_t released = 0, waited_ns = 0, orphans = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (out[i].part == US_NO_PART) {
            continue;
        }
        orphans += out[i].reserved == US_ORPHAN;
        if (out[i].state != UNSALT_STATE_RELEASED) {
            add(&u->tally.handed[out[i].state], 1);
            continue;
        }
        released++;
        waited_ns += out[i].waited_ns;
        add(&u->tally.wait_count[us_wait_bucket(out[i].waited_ns)], 1);
    }
    add(&u->tally.handed[UNSALT_STATE_RELEASED], released);
    add(&u->tally.wait_sum_ns, waited_ns);
    if (orphans > 0) {
        us_stats_acked(u, orphans); /* nothing waits for their acknowledgement */
    }
    atomic_store_explicit(&u->tally.polls, u->own.polls, memory_order_relaxed);
}

/* The lock is held, so the statistics and the tally belong together. */
static void add_tally(const struct us_tally *tally, unsalt_stats_t *stats) {
    uint64_t acked = get(&tally->acked);
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        uint64_t handed = get(&tally->handed[i]);
        stats->state[i] += handed;
        stats->state[UNSALT_STATE_READY] -= handed;
        stats->unacked += handed;
    }
    stats->unacked -= acked < stats->unacked ? acked : stats->unacked;
    stats->polls = get(&tally->polls);
    stats->wait_sum_ns = get(&tally->wait_sum_ns);
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++) {
        stats->wait_count[i] = get(&tally->wait_count[i]);
    }
}

static void reset_tally(struct us_tally *tally, uint64_t polls) {
    atomic_store_explicit(&tally->acked, 0, memory_order_relaxed);
    atomic_store_explicit(&tally->polls, polls, memory_order_relaxed);
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        atomic_store_explicit(&tally->handed[i], 0, memory_order_relaxed);
    }
}

/* The core's ledger counts as released what still stands in our buffer, or was dropped from it at a revoke. */
static void add_ledger(const struct unsalt *u, const unsalt_core_counters_t *core, unsalt_stats_t *stats) {
    uint64_t ready = 0, revoked = 0;
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        stats->state[i] = core->state[i] - u->ring.ready[i] - u->ring.revoked[i];
        ready += u->ring.ready[i];
        revoked += u->ring.revoked[i];
    }
    stats->state[UNSALT_STATE_READY] += ready;
    stats->state[UNSALT_STATE_REVOKED] += revoked;
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        sum += stats->state[i];
    }
    stats->conserved = sum == core->received && unsalt_core_conserved(u->core);
    ready -= u->ring.orphans; /* their generation is over: the core has no more to do with them */
    for (uint32_t i = 0; i < u->partition_count; i++) {
        ready += u->partitions[i]->dropped; /* their generation isn't over: to the core they are in somebody's hands */
    }
    stats->unacked = core->unacked > ready ? core->unacked - ready : 0;
}

static void add_core(const unsalt_core_counters_t *core, unsalt_stats_t *stats) {
    stats->received = core->received;
    stats->held_bytes = core->held_bytes + core->pinned_bytes;
    memcpy(stats->gaps, core->gaps, sizeof(stats->gaps));
    memcpy(stats->gap_numbers, core->gap_numbers, sizeof(stats->gap_numbers));
    memcpy(stats->budget_full, core->budget_full, sizeof(stats->budget_full));
    memcpy(stats->budget_outcome, core->budget_outcome, sizeof(stats->budget_outcome));
    stats->gaps_open = core->gaps_open;
    stats->sessions = core->sessions;
    stats->sessions_created = core->sessions_created;
    stats->sessions_expired = core->sessions_expired;
    stats->sessions_remembered = core->sessions_remembered;
    stats->restarts = core->restarts;
    stats->epochs = core->epochs;
    stats->starts_seen = core->starts_seen;
    stats->proofs_off = core->proofs_off;
    memcpy(stats->overdue_count, core->overdue_count, sizeof(stats->overdue_count));
    stats->overdue_sum_ns = core->overdue_sum_ns;
    stats->in_order = core->in_order;
    stats->irregular = core->irregular;
    stats->questions = core->questions;
    stats->answers = core->answers;
    stats->partitions = core->partitions;
    stats->clock_regressions = core->clock_regressions;
    stats->cursors_changed = core->cursors_changed;
    stats->cursors_restored = core->cursors_restored;
    stats->done_before = core->done_before;
}

void us_stats_refresh(struct unsalt *u) {
    unsalt_core_counters_t core;
    unsalt_stats_t stats = u->own;
    unsalt_core_counters(u->core, &core);
    add_core(&core, &stats);
    add_ledger(u, &core, &stats);
    pthread_mutex_lock(&u->stats_lock);
    u->stats = stats;
    reset_tally(&u->tally, u->own.polls);
    pthread_mutex_unlock(&u->stats_lock);
}

int unsalt_stats(const unsalt_t *u, unsalt_stats_t *stats, size_t size) {
    struct unsalt *mine = (struct unsalt *)u; /* for the lock */
    if (!stats || size == 0) {
        return -1;
    }
    pthread_mutex_lock(&mine->stats_lock);
    unsalt_stats_t now = mine->stats;
    add_tally(&mine->tally, &now);
    pthread_mutex_unlock(&mine->stats_lock);
    us_copy_out(stats, size, &now, sizeof(now));
    return 0;
}
