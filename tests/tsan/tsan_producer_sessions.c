/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that stamp and settle records of the same few sessions, with evictions all the time. A plain program, for
 * ThreadSanitizer: prints what is wrong and ends with 1.
 */
#include <kafka/producer_sessions.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 20000, WINDOW = 8, SESSIONS = 24, PLACES = 4, SHARDS = 4 };

static struct us_senders senders;
static atomic_int faults;

struct last {
    uint64_t epoch, seq;
};
/* The newest stamp of each session: guarded by its shard's lock. */
static struct last last[SESSIONS];

static struct us_sent *stamp_one(int session, uint16_t lanes) {
    char bytes[16];
    int n = snprintf(bytes, sizeof bytes, "t%cs%d", 0, session);
    struct us_sender_name name = {.bytes = bytes, .size = (size_t)n, .id_at = 2};
    struct us_shard *shard = us_senders_shard(&senders, &name);
    struct us_stamp stamp;
    bool full;
    pthread_mutex_lock(&shard->lock);
    struct us_sent *sent = us_shard_begin(shard, &name, lanes, &stamp, &full);
    if (sent) {
        struct last *l = &last[session];
        bool next = stamp.epoch == l->epoch ? stamp.seq == l->seq + 1 : stamp.epoch > l->epoch && stamp.seq == 1;
        if (!next || stamp.una > stamp.seq)
            atomic_fetch_add(&faults, 1);
        if (stamp.seq % 5 == 3) { /* as if librdkafka had refused it */
            us_shard_release(shard, sent);
            sent = us_shard_begin(shard, &name, lanes, &stamp, &full);
        }
        *l = (struct last){stamp.epoch, stamp.seq};
        us_shard_commit(shard, sent, &stamp, false);
    }
    pthread_mutex_unlock(&shard->lock);
    return sent;
}

static void settle(struct us_sent *sent) {
    struct us_shard *shard = sent->shard;
    pthread_mutex_lock(&shard->lock);
    us_shard_settle(shard, sent);
    us_shard_release(shard, sent);
    pthread_mutex_unlock(&shard->lock);
}

static void *work(void *arg) {
    struct us_sent *sent[WINDOW] = {NULL};
    unsigned x = (unsigned)(size_t)arg * 7919 + 1;
    for (int i = 0; i < ROUNDS; i++) {
        x = x * 1103515245u + 12345u;
        int at = i % WINDOW;
        if (sent[at])
            settle(sent[at]);
        sent[at] = stamp_one((int)(x >> 16) % SESSIONS, (uint16_t)(1 + (x >> 8) % 4));
    }
    for (int at = 0; at < WINDOW; at++)
        if (sent[at])
            settle(sent[at]);
    return NULL;
}

int main(void) {
    struct us_lane_map map = {.layout = US_LAYOUT_HASH, .lanes = 4, .partitions = 16};
    pthread_t threads[THREADS];
    if (!us_salt_pattern_parse("#<k>", &map.pattern) ||
        !us_senders_init(&senders, &us_mem_default, &map, 1, 0, SHARDS * US_PRODUCER_SHARD_PLACES)) {
        fprintf(stderr, "not started\n");
        return 1;
    }
    senders.shard_max = PLACES;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    bool evicted = atomic_load(&senders.evicted) > 0;
    us_senders_destroy(&senders);
    if (atomic_load(&faults) || !evicted) {
        fprintf(stderr, "%d stamps out of sequence; evictions: %d\n", atomic_load(&faults), evicted);
        return 1;
    }
    return 0;
}
