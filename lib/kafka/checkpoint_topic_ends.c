/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Not by rd_kafka_query_watermark_offsets(): with a leader that is known and dead it waits past its time. And not by
 * the high watermark that comes with what is fetched: a leader that was just elected may tell too low a one there,
 * while it answers no question for the end until it knows better (KIP-207).
 */
#include <base/mem.h>
#include <kafka/checkpoint_topic_ends.h>
#include <kafka/clock.h>
#include <kafka/handle_end.h>
#include <pthread.h>

#define LEADERS_MS 1000
#define ANSWER_MS 1000
#define AGAIN_MS 1000 /* between questions for a partition that has been answered */
#define FAILED_MS 200 /* after a turn in which one failed */

struct question {
    uint32_t run;            /* moves with want(): an answer to an older question doesn't count */
    bool wanted;
    struct us_checkpoint_end told;
    /* the thread's own, between snapshot and report; `failed` beyond */
    uint32_t asked_run;
    bool asked, answered, failed;
    int32_t leader;
    struct us_checkpoint_end answer;
};

struct us_checkpoint_ends {
    struct us_checkpoint_client client;
    const char *topic;
    int32_t partitions;
    void (*wake)(void *opaque);
    void *opaque;
    rd_kafka_t *rk; /* the thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* of what is below, and of the questions except for the thread's own */
    pthread_cond_t changed;
    bool stop, news;
    struct question questions[];
};

/* ---- the thread */

/* Notes which questions are open. The lock is held. */
static bool snapshot(struct us_checkpoint_ends *ends) {
    bool any = false;
    for (int32_t i = 0; i < ends->partitions; i++) {
        struct question *q = &ends->questions[i];
        q->asked = q->wanted;
        q->answered = false;
        q->asked_run = q->run;
        q->leader = -1;
        q->answer = (struct us_checkpoint_end){-1, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE};
        any |= q->asked;
    }
    return any;
}

/* Waits for news or the time; takes the open questions. False: the thread should end. */
static bool next_turn(struct us_checkpoint_ends *ends, uint64_t pause_ms) {
    uint64_t at = us_clock_now() + pause_ms * 1000000u;
    pthread_mutex_lock(&ends->lock);
    bool due = pause_ms == 0;
    while (!ends->stop && !ends->news && !due) {
        due = !us_clock_wait(&ends->changed, &ends->lock, at);
    }
    while (!ends->stop && !snapshot(ends)) {
        pthread_cond_wait(&ends->changed, &ends->lock);
    }
    ends->news = false;
    bool go_on = !ends->stop;
    pthread_mutex_unlock(&ends->lock);
    return go_on;
}

static void fail_all(struct us_checkpoint_ends *ends, rd_kafka_resp_err_t err) {
    for (int32_t i = 0; i < ends->partitions; i++) {
        ends->questions[i].answer = (struct us_checkpoint_end){-1, err};
    }
}

static void find_leaders(struct us_checkpoint_ends *ends) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(ends->rk, ends->topic, NULL);
    rd_kafka_resp_err_t err =
        rkt ? rd_kafka_metadata(ends->rk, 0, rkt, &metadata, LEADERS_MS) : RD_KAFKA_RESP_ERR__INVALID_ARG;
    if (err) {
        fail_all(ends, err);
    } else {
        const struct rd_kafka_metadata_topic *found = metadata->topic_cnt == 1 ? &metadata->topics[0] : NULL;
        if (found && found->err) {
            fail_all(ends, found->err);
        }
        for (int i = 0; found && i < found->partition_cnt; i++) {
            if (found->partitions[i].id < ends->partitions) {
                ends->questions[found->partitions[i].id].leader = found->partitions[i].leader;
            }
        }
        rd_kafka_metadata_destroy(metadata);
    }
    if (rkt) {
        rd_kafka_topic_destroy(rkt);
    }
}

/* Asks one leader for all of its partitions, beginning with `first`, and takes them off the list of open ones. */
static void ask_leader(struct us_checkpoint_ends *ends, int32_t first) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(ends->partitions - first);
    int32_t leader = ends->questions[first].leader;
    for (int32_t i = first; i < ends->partitions; i++) {
        struct question *q = &ends->questions[i];
        if (q->asked && q->leader == leader) {
            rd_kafka_topic_partition_list_add(list, ends->topic, i)->offset = RD_KAFKA_OFFSET_END;
            q->leader = -1;
        }
    }
    rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(ends->rk, list, ANSWER_MS);
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        struct us_checkpoint_end *answer = &ends->questions[one->partition].answer;
        answer->err = err ? err : one->err;
        answer->end = answer->err ? -1 : one->offset;
        if (!answer->err && answer->end < 0) {
            *answer = (struct us_checkpoint_end){-1, RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE};
        }
        ends->questions[one->partition].answered = true;
        ends->questions[one->partition].failed = answer->end < 0;
    }
    rd_kafka_topic_partition_list_destroy(list);
}

/*
 * Tells what was answered; at the end of a turn also what was not. Returns whether all have
 * an end.
 */
static bool report(struct us_checkpoint_ends *ends, bool turn_over, bool *go_on) {
    bool all = true;
    pthread_mutex_lock(&ends->lock);
    for (int32_t i = 0; i < ends->partitions; i++) {
        struct question *q = &ends->questions[i];
        if (!q->asked || !q->wanted || q->run != q->asked_run || (!q->answered && !turn_over)) {
            continue;
        }
        q->told.err = q->answer.err;
        if (q->answer.end >= 0 && (q->told.end < 0 || q->answer.end < q->told.end)) {
            q->told.end = q->answer.end;
        }
        all &= q->answer.end >= 0;
    }
    *go_on = !ends->stop;
    pthread_mutex_unlock(&ends->lock);
    ends->wake(ends->opaque);
    return all;
}

/* Leaders that have failed before come last, and each answer is told at once: nobody waits for one that is away. */
static void ask_leaders(struct us_checkpoint_ends *ends) {
    bool go_on = true;
    find_leaders(ends);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; go_on && i < ends->partitions; i++) {
            const struct question *q = &ends->questions[i];
            if (q->asked && q->leader >= 0 && (pass == 1 || !q->failed)) {
                ask_leader(ends, i);
                report(ends, false, &go_on);
            }
        }
    }
}

static void *ends_main(void *opaque) {
    struct us_checkpoint_ends *ends = opaque;
    uint64_t pause_ms = 0;
    bool go_on = true;
    while (go_on && next_turn(ends, pause_ms)) {
        char errstr[256];
        if (!ends->rk) {
            ends->rk = us_checkpoint_client_new(&ends->client, US_CHECKPOINT_ENDS, errstr, sizeof(errstr));
        }
        if (ends->rk) {
            rd_kafka_poll(ends->rk, 0); /* token refreshes */
            ask_leaders(ends);
        } else {
            fail_all(ends, RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
        }
        pause_ms = report(ends, true, &go_on) ? AGAIN_MS : FAILED_MS;
    }
    return NULL;
}

/* ---- life */

struct us_checkpoint_ends *us_checkpoint_ends_new(const struct us_checkpoint_client *client, const char *topic,
                                                  int32_t partitions, void (*wake)(void *opaque), void *opaque) {
    struct us_checkpoint_ends *ends =
        us_calloc(&us_mem_default, 1, sizeof(*ends) + (size_t)partitions * sizeof(ends->questions[0]));
    if (!ends || !us_clock_wait_init(&ends->lock, &ends->changed)) {
        us_free(&us_mem_default, ends);
        return NULL;
    }
    ends->client = *client;
    ends->topic = topic;
    ends->partitions = partitions;
    ends->wake = wake;
    ends->opaque = opaque;
    if (pthread_create(&ends->thread, NULL, ends_main, ends)) {
        us_clock_wait_destroy(&ends->lock, &ends->changed);
        us_free(&us_mem_default, ends);
        return NULL;
    }
    return ends;
}

bool us_checkpoint_ends_destroy(struct us_checkpoint_ends *ends) {
    if (!ends) {
        return true;
    }
    pthread_mutex_lock(&ends->lock);
    ends->stop = true;
    pthread_cond_signal(&ends->changed);
    pthread_mutex_unlock(&ends->lock);
    pthread_join(ends->thread, NULL);
    bool gone = us_handle_end(ends->rk, US_HANDLE_END_MS);
    us_clock_wait_destroy(&ends->lock, &ends->changed);
    us_free(&us_mem_default, ends);
    return gone;
}

/* ---- who wants to know */

static void set_wanted(struct us_checkpoint_ends *ends, int32_t partition, bool wanted) {
    struct question *q = &ends->questions[partition];
    pthread_mutex_lock(&ends->lock);
    q->run++;
    q->wanted = wanted;
    q->told = (struct us_checkpoint_end){-1, RD_KAFKA_RESP_ERR_NO_ERROR};
    ends->news |= wanted;
    pthread_cond_signal(&ends->changed);
    pthread_mutex_unlock(&ends->lock);
}

void us_checkpoint_ends_want(struct us_checkpoint_ends *ends, int32_t partition) {
    set_wanted(ends, partition, true);
}

void us_checkpoint_ends_unwant(struct us_checkpoint_ends *ends, int32_t partition) {
    set_wanted(ends, partition, false);
}

struct us_checkpoint_end us_checkpoint_ends_get(struct us_checkpoint_ends *ends, int32_t partition) {
    pthread_mutex_lock(&ends->lock);
    struct us_checkpoint_end told = ends->questions[partition].told;
    pthread_mutex_unlock(&ends->lock);
    return told;
}
