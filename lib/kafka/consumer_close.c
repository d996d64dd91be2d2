/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/handle_end.h>
#include <kafka/member.h>
#include <kafka/pipeline.h>
#include <kafka/rehearse.h>

#define WATCH_SECONDS 5

/* ---- close */

/* ack=manual: other threads may still acknowledge. */
static void wait_for_acks(struct unsalt *u) {
    uint64_t now = us_clock_now();
    uint64_t until = now + (uint64_t)u->conf->revoke_timeout_ms * US_MS;
    atomic_store(&u->acks.waited_for, true);
    us_pipeline_close_begin(u);
    while (us_acks_outstanding(&u->acks, US_NO_PART) > 0 && now < until) {
        atomic_store(&u->signalled, false);
        us_pipeline_close_serve(u, until);
        if (us_acks_outstanding(&u->acks, US_NO_PART) > 0) {
            us_sleep(u, us_pipeline_close_rest(u, until - now));
        }
        now = us_clock_now();
    }
    atomic_store(&u->acks.waited_for, false);
}

/* Whatever the core gives now is dropped: it will be read again. */
static void drop_everything(struct unsalt *u) {
    us_ring_revoke_all(&u->ring);
    us_assign_close_all(u);
    do {
        us_ring_revoke_all(&u->ring);
        us_drain(u, us_clock_now());
    } while (u->ring.count > 0);
    us_rehearse_drop(u);
}

/* All go, unless they are lost, or go already. */
static void tell_revoking(struct unsalt *u) {
    rd_kafka_topic_partition_list_t *told = us_assignment_lost(u) ? NULL : us_hook_list(u, NULL, false);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        u->partitions[i]->revoking = us_partition_ours(u->partitions[i]);
    }
    us_hook_call(u, UNSALT_REVOKING, told);
}

rd_kafka_resp_err_t us_close(struct unsalt *u) {
    if (u->closed) {
        return u->close_err;
    }
    u->closing = true;
    us_handed_done(u);
    tell_revoking(u);
    wait_for_acks(u);
    us_outstanding_report(u, true);
    us_acks_close_going(u, true);
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (u->before.commit_wanted && !us_assignment_lost(u)) {
        err = us_commit(u, false, US_COMMIT_WAIT_MS);
    }
    us_checkpoint_last(u, US_COMMIT_WAIT_MS);
    if (u->revoke.active) {
        u->revoke.until = 0;
        us_revoke_continue(u, us_clock_now());
    }
    us_stats_refresh(u);
    u->stranded = u->stats.unacked;
    bool lost = us_assignment_lost(u);
    rd_kafka_topic_partition_list_t *told = us_hook_list(u, NULL, true);
    drop_everything(u);
    us_member_answer_all(u->rk, u->subscribed);
    rd_kafka_resp_err_t close_err = rd_kafka_consumer_close(u->rk);
    us_hook_call(u, lost ? UNSALT_LOST : UNSALT_REVOKED, told);
    us_watch_stop(u);
    us_partitions_close(u);
    rd_kafka_queue_cb_event_enable(u->main_queue, NULL, NULL);
    rd_kafka_queue_destroy(u->main_queue);
    u->main_queue = NULL;
    us_stats_refresh(u);
    u->close_err = err ? err : close_err;
    u->closed = true;
    return u->close_err;
}

rd_kafka_resp_err_t unsalt_consumer_close(unsalt_t *u) {
    bool free = false;
    if (u->pipeline || !atomic_compare_exchange_strong(&u->busy, &free, true)) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CONFLICT);
        return RD_KAFKA_RESP_ERR__CONFLICT;
    }
    rd_kafka_resp_err_t err = us_close(u);
    us_leave(u);
    return err;
}

/* ---- destroy */

struct watch {
    struct unsalt *u;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void report(struct unsalt *u, unsigned seconds) {
    char text[256];
    unsalt_event_t event;
    us_event_init(&event, UNSALT_EVENT_DESTROY_BLOCKED);
    event.count = u->stranded;
    event.waited_ns = seconds * 1000 * US_MS;
    snprintf(text, sizeof(text),
             "destroy_blocked: destroy waits for %u s: messages that the application has not destroyed; %llu were not "
             "acknowledged at close",
             seconds, (unsigned long long)u->stranded);
    event.text = text;
    us_event_raise(u, &event);
}

static void *watch_main(void *opaque) {
    struct watch *watch = opaque;
    unsigned seconds = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->done) {
        uint64_t at = us_clock_now() + WATCH_SECONDS * 1000 * US_MS;
        while (!watch->done && us_clock_wait(&watch->wake, &watch->lock, at)) {
        }
        if (!watch->done) {
            seconds += WATCH_SECONDS;
            report(watch->u, seconds);
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

void us_handle_told(const struct unsalt *u, bool gone, const char *what_it_does) {
    if (!gone) {
        us_log(u, 4, "the handle that %s is not gone after %d s, and is left behind: librdkafka waits for a broker's "
                     "thread", what_it_does, US_HANDLE_END_MS / 1000);
    }
}

void us_destroy_watched(struct unsalt *u) {
    struct watch watch = {.u = u};
    pthread_t thread;
    bool ready = us_clock_wait_init(&watch.lock, &watch.wake);
    bool watched = ready && pthread_create(&thread, NULL, watch_main, &watch) == 0;
    if (!watched) {
        us_log(u, 4, "no thread: nobody will tell if destroy has to wait");
    }
    rd_kafka_destroy_flags(u->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    if (watched) {
        pthread_mutex_lock(&watch.lock);
        watch.done = true;
        pthread_cond_signal(&watch.wake);
        pthread_mutex_unlock(&watch.lock);
        pthread_join(thread, NULL);
    }
    if (ready) {
        us_clock_wait_destroy(&watch.lock, &watch.wake);
    }
}
