/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which batch is read, worked on and committed when. While the pool works on one, the next is read, and waits when it
 * is full. When the pool is done, the next one goes to it at once, if it has waited as long as it may; then the one
 * that is done is committed. So the pool works during a commit, and no result waits for records that have not come yet.
 */
#include <kafka/clock.h>
#include <kafka/relay.h>

#define WORK_MS 1000 /* how long a record is waited for while the pool works: its end wakes */

static bool has_work(const struct unsalt_relay *r) {
    return r->worked->count > 0;
}

static void swap(struct us_relay_batch **a, struct us_relay_batch **b) {
    struct us_relay_batch *first = *a;
    *a = *b;
    *b = first;
}

/* ---- giving up */

static void let_go(struct unsalt_relay *r, struct us_relay_batch *batch) {
    if (batch->count == 0)
        return;
    us_relay_give_up(r, batch);
    us_relay_drop_batch(batch);
}

void us_relay_abandon(struct unsalt_relay *r) {
    if (has_work(r))
        us_relay_pool_cancel(&r->pool);
    let_go(r, r->worked); /* which stands before the other */
    let_go(r, r->read);
}

/* ---- working */

/* The batch that is read may be worked on. */
static bool is_ripe(struct unsalt_relay *r) {
    return r->read->count > 0 && (us_relay_is_full(r) || us_clock_ms() >= r->read->until);
}

static void start(struct unsalt_relay *r) {
    swap(&r->worked, &r->read);
    us_relay_pool_start(&r->pool, r->worked->count);
}

/* NULL, or an error that names the first record that failed for good. */
static rd_kafka_error_t *failure(const struct unsalt_relay *r) {
    for (uint32_t i = 0; i < r->worked->count && r->input->relay_failure == US_PIPE_HALT; i++) {
        const struct us_relay_item *item = &r->worked->items[i];
        if (item->res == UNSALT_RELAY_FAILED && !item->cut)
            return rd_kafka_error_new(RD_KAFKA_RESP_ERR__APPLICATION, "%s [%d] offset %lld can't be transformed: %s",
                                      rd_kafka_topic_name(item->message->rkt), (int)item->message->partition,
                                      (long long)item->message->offset, us_relay_error(item));
    }
    return NULL;
}

/* ---- committing */

static void count(struct unsalt_relay *r) {
    atomic_fetch_add(&r->counters.batches, 1);
    atomic_fetch_add(&r->counters.relayed, r->sums.relayed);
    atomic_fetch_add(&r->counters.dropped, r->sums.dropped);
    atomic_fetch_add(&r->counters.markers, r->sums.markers);
    atomic_fetch_add(&r->counters.unsequenced, r->sums.unsequenced);
    atomic_fetch_add(&r->counters.heartbeats, r->sums.heartbeats);
    atomic_fetch_add(&r->counters.relaned, r->sums.relaned);
}

/* The pool is done with its batch: it is committed. `goes_on`: the next one is worked on meanwhile, if it may be. */
static rd_kafka_error_t *finish(struct unsalt_relay *r, bool goes_on) {
    rd_kafka_error_t *error = failure(r);
    bool done = false;
    if (error) {
        us_relay_abandon(r);
        return error;
    }
    swap(&r->committed, &r->worked);
    if (goes_on && r->pool.count > 0 && is_ripe(r))
        start(r);
    error = us_relay_commit(r, &done);
    if (done) {
        r->relayed += r->committed->count;
        count(r);
        us_relay_tell_failed(r, r->committed);
        us_relay_drop_batch(r->committed);
    } else {
        let_go(r, r->committed);
        us_relay_abandon(r);
    }
    return error;
}

void us_relay_part(struct unsalt_relay *r, bool lost) {
    if (has_work(r) && !lost) {
        us_relay_pool_wait(&r->pool);
        rd_kafka_error_t *error = finish(r, false);
        if (r->error)
            rd_kafka_error_destroy(error);
        else
            r->error = error;
    }
    us_relay_abandon(r);
}

/* ---- in turns */

/* How long the next record is waited for. */
static int patience(const struct unsalt_relay *r, uint64_t until) {
    uint64_t now = us_clock_ms();
    if (has_work(r))
        return WORK_MS;
    if (r->read->count > 0)
        until = r->read->until;
    return until > now ? us_clock_rest_ms(until, INT32_MAX) : 0;
}

/*
 * Nothing can be relayed now, and the consumer is polled all the same: a member that isn't would be thrown out of its
 * group, and nobody would answer its rebalances. What comes is noted to be read again. Takes the error, and returns the
 * graver of two.
 */
static rd_kafka_error_t *only_poll(struct unsalt_relay *r, rd_kafka_error_t *error) {
    rd_kafka_error_t *said = us_relay_read(r, 0);
    us_relay_abandon(r);
    if (said && rd_kafka_error_code(said) == RD_KAFKA_RESP_ERR__FATAL) {
        rd_kafka_error_destroy(error);
        return said;
    }
    rd_kafka_error_destroy(said);
    return error;
}

rd_kafka_error_t *us_relay_step(struct unsalt_relay *r, uint64_t until) {
    us_relay_join_anew(r);
    rd_kafka_error_t *error = us_relay_ready(r);
    bool polled = false; /* once in any case: that serves rebalances */
    if (!error)
        error = us_relay_rewind(r);
    if (error)
        return only_poll(r, error);
    while (!error && r->relayed == 0 && !r->error) {
        if (has_work(r) && us_relay_pool_is_done(&r->pool))
            return finish(r, true);
        if (!has_work(r) && is_ripe(r)) {
            start(r);
        } else if (us_relay_is_full(r)) {
            us_relay_pool_wait(&r->pool);
        } else {
            if (polled && !has_work(r) && r->read->count == 0 && us_clock_ms() >= until)
                break;
            error = us_relay_read(r, patience(r, until));
            polled = true;
            if (us_relay_is_behind(r))
                break;
        }
    }
    return error;
}
