/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll, flush and purge, as librdkafka's, with what is to be sent again. */
#include <kafka/clock.h>
#include <kafka/producer.h>

/*
 * How often poll and flush look at what is to be sent again: nothing wakes them when another thread serves a report
 * after which there is something. And how long they wait for room, or for what other threads have in hand.
 */
#define STEP_MS 100
#define IDLE_STEP_MS 10

/* A time-out that runs. Below 0: none. */
struct countdown {
    uint64_t end_ms;
    bool endless;
};

static struct countdown start(int timeout_ms) {
    return (struct countdown){us_clock_ms() + (timeout_ms > 0 ? (uint64_t)timeout_ms : 0), timeout_ms < 0};
}

/* What is left, `most` at most. */
static int left(const struct countdown *time, uint64_t most) {
    uint64_t now = us_clock_ms(), rest = time->end_ms > now ? time->end_ms - now : 0;
    return (int)(time->endless || rest > most ? most : rest);
}

static uint64_t step_of(struct unsalt_producer *p) {
    uint64_t due = us_again_due(p);
    if (due < IDLE_STEP_MS)
        return IDLE_STEP_MS;
    return due < STEP_MS ? due : STEP_MS;
}

/* From a report of unsalt_producer_destroy() nothing more is served: that does it, one after the other. */
int unsalt_producer_poll(unsalt_producer_t *p, int timeout_ms) {
    const struct countdown time = start(timeout_ms);
    int events = 0;
    if (atomic_load(&p->closing))
        return 0;
    us_again_send(p, &events);
    do {
        events += rd_kafka_poll(p->rk, events ? 0 : left(&time, step_of(p)));
        us_again_send(p, &events);
    } while (!events && left(&time, 1) != 0 && !atomic_load(&p->closing));
    return events;
}

rd_kafka_resp_err_t unsalt_producer_flush(unsalt_producer_t *p, int timeout_ms) {
    const struct countdown time = start(timeout_ms);
    int told = 0;
    while (!atomic_load(&p->closing)) {
        us_again_send(p, &told);
        int wait = left(&time, STEP_MS);
        rd_kafka_resp_err_t err = rd_kafka_flush(p->rk, wait);
        if (err && err != RD_KAFKA_RESP_ERR__TIMED_OUT)
            return err;
        if (atomic_load(&p->open) == 0)
            return RD_KAFKA_RESP_ERR_NO_ERROR;
        if (wait == 0)
            return RD_KAFKA_RESP_ERR__TIMED_OUT;
        if (!err) /* librdkafka has nothing: it waits for its time, or is in other hands */
            rd_kafka_poll(p->rk, left(&time, IDLE_STEP_MS));
    }
    return RD_KAFKA_RESP_ERR__DESTROY;
}

/* What was produced before keeps the number of purges of that time; so it is known wherever it is now. */
rd_kafka_resp_err_t unsalt_producer_purge(unsalt_producer_t *p, int purge_flags) {
    if (purge_flags & ~(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING))
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    if (purge_flags & RD_KAFKA_PURGE_F_QUEUE)
        atomic_fetch_add(&p->purges, 1);
    return rd_kafka_purge(p->rk, purge_flags);
}
