/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics: a snapshot under a lock, so that any thread can read it. A hand-out from the buffer moves a few
 * fields of it; everything is copied when rounds were made.
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

void us_stats_handed(struct unsalt *u, const unsalt_core_out_t *out, uint32_t n) {
    pthread_mutex_lock(&u->stats_lock);
    u->stats.unacked -= u->auto_acked < u->stats.unacked ? u->auto_acked : u->stats.unacked;
    u->auto_acked = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (out[i].part == US_NO_PART) {
            continue;
        }
        u->stats.state[UNSALT_STATE_READY]--;
        u->stats.state[out[i].state]++;
        u->stats.unacked++;
        if (out[i].state == UNSALT_STATE_RELEASED) {
            unsigned at = bucket(out[i].waited_ns);
            u->own.wait_count[at]++;
            u->own.wait_sum_ns += out[i].waited_ns;
            u->stats.wait_count[at] = u->own.wait_count[at];
            u->stats.wait_sum_ns = u->own.wait_sum_ns;
        }
    }
    u->stats.polls = u->own.polls;
    pthread_mutex_unlock(&u->stats_lock);
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
    u->auto_acked = 0; /* the core knows */
    unsalt_core_counters(u->core, &core);
    add_core(&core, &stats);
    add_ledger(u, &core, &stats);
    pthread_mutex_lock(&u->stats_lock);
    u->stats = stats;
    pthread_mutex_unlock(&u->stats_lock);
}

int unsalt_stats(const unsalt_t *u, unsalt_stats_t *stats, size_t size) {
    struct unsalt *mine = (struct unsalt *)u; /* for the lock */
    if (!stats || size == 0) {
        return -1;
    }
    pthread_mutex_lock(&mine->stats_lock);
    memcpy(stats, &mine->stats, size < sizeof(*stats) ? size : sizeof(*stats));
    pthread_mutex_unlock(&mine->stats_lock);
    return 0;
}
