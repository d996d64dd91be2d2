/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics: copied under a lock when rounds were made, so that any thread can read them; what hand-outs from the
 * buffer change in between stands in a tally of atomic counters, since such a call has no time for a lock.
 */
#include <kafka/consumer.h>
#include <string.h>

#define US 1000u
#define MS 1000000u
#define SEC UINT64_C(1000000000)

static const uint64_t bounds[UNSALT_WAIT_BUCKETS] = {0,        100 * US, 300 * US, MS,       3 * MS,    10 * MS,
                                                     30 * MS,  100 * MS, 300 * MS, SEC,      3 * SEC,   10 * SEC,
                                                     30 * SEC, 100 * SEC, 300 * SEC, UNSALT_NEVER};

const uint64_t *unsalt_wait_bounds(void) {
    return bounds;
}

void us_stats_init(struct unsalt *u) {
    pthread_mutex_init(&u->stats_lock, NULL);
    u->stats.conserved = 1;
}

static unsigned bucket(uint64_t ns) {
    unsigned i = 0;
    while (ns > bounds[i]) {
        i++;
    }
    return i;
}

/* Adds without a locked instruction: only the thread of the call writes. */
static void add(_Atomic uint64_t *counter, uint64_t n) {
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + n, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void us_stats_acked(struct unsalt *u) {
    add(&u->tally.acked, 1);
}

void us_stats_handed(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (out[i].part == US_NO_PART) {
            continue;
        }
        add(&u->tally.handed[out[i].state], 1);
        if (out[i].reserved == US_ORPHAN) {
            us_stats_acked(u); /* nothing waits for its acknowledgement */
        }
        if (out[i].state == UNSALT_STATE_RELEASED) {
            add(&u->tally.wait_count[bucket(out[i].waited_ns)], 1);
            add(&u->tally.wait_sum_ns, out[i].waited_ns);
        }
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
    stats->unacked = core->unacked > ready ? core->unacked - ready : 0;
}

static void add_core(const unsalt_core_counters_t *core, unsalt_stats_t *stats) {
    stats->received = core->received;
    stats->held_bytes = core->held_bytes;
    memcpy(stats->gaps, core->gaps, sizeof(stats->gaps));
    memcpy(stats->gap_numbers, core->gap_numbers, sizeof(stats->gap_numbers));
    memcpy(stats->budget_full, core->budget_full, sizeof(stats->budget_full));
    stats->gaps_open = core->gaps_open;
    stats->sessions = core->sessions;
    stats->sessions_created = core->sessions_created;
    stats->sessions_expired = core->sessions_expired;
    stats->sessions_remembered = core->sessions_remembered;
    stats->restarts = core->restarts;
    stats->epochs = core->epochs;
    stats->starts_seen = core->starts_seen;
    stats->in_order = core->in_order;
    stats->irregular = core->irregular;
    stats->questions = core->questions;
    stats->answers = core->answers;
    stats->partitions = core->partitions;
    stats->clock_regressions = core->clock_regressions;
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
    memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
    return 0;
}
