/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record has a job from the moment on at which it has arrived, if there is room for those that wait for their turn;
 * else from the moment on at which there is; at the latest when the core has released it.
 */
#include <kafka/pipeline.h>
#include <string.h>

/*
 * librdkafka parses headers at the first look, and not for two threads at once. A run of phase 1 may look while another
 * one does, or while the core's dead letter goes to the application: so the first look is taken before anybody else has
 * the record. Not before that: one that merely waits pins less without.
 */
static void parse_headers(const struct unsalt_pipeline *pl, const rd_kafka_message_t *message) {
    rd_kafka_headers_t *headers;
    if (pl->callbacks.prepare) {
        rd_kafka_message_headers(message, &headers);
    }
}

/* ---- at the arrival */

/* lock. Whether the record has a job now. */
static bool start_early(struct unsalt_pipeline *pl, const struct us_partition *p, rd_kafka_message_t *message,
                        const unsalt_core_in_t *in, uint64_t now) {
    struct us_pipe_record record;
    us_job_describe(pl, p, message, in, &record);
    if (p) {
        record.part = p->part;
        record.generation = p->generation;
    }
    if (!us_pipe_room_early(&pl->pipe, record.bytes) || !us_jobs_reserve(pl, 1)) {
        return false;
    }
    parse_headers(pl, message);
    if (us_early_has(&pl->early, message)) {
        us_early_started(&pl->early, message, us_job_enter(pl, message, in, &record, now));
        return true;
    }
    if (!us_early_put(&pl->early, message, pl->pool, true)) { /* the next one that is taken */
        return false;
    }
    us_job_enter(pl, message, in, &record, now);
    return true;
}

void us_pipeline_arrived(struct unsalt *u, rd_kafka_message_t *const *messages, uint32_t n,
                         const unsalt_core_out_t *out, size_t n_out) {
    struct unsalt_pipeline *pl = u->pipeline;
    size_t left = 0;
    const unsalt_core_in_t plain = {0}; /* what the core calls unsequenced has no number, whatever its header says */
    if (!pl || !pl->callbacks.prepare || u->rehearse || n == 0) {
        return; /* records that stand for others would be prepared in vain */
    }
    const struct us_partition *p = us_partition_of(u, u->in[0].part);
    pthread_mutex_lock(&pl->lock);
    for (uint32_t i = 0; i < n; i++) {
        bool held = left == n_out || out[left].msg != messages[i];
        bool comes = held || unsalt_state_handed_out((unsalt_state_t)out[left].state);
        bool numbered = held || out[left].state != UNSALT_STATE_UNSEQUENCED;
        left += !held;
        if (comes && !start_early(pl, p, messages[i], numbered ? &u->in[i] : &plain, u->now) && held) {
            bool fits = us_pipe_fits_early(&pl->pipe, messages[i]->len + messages[i]->key_len);
            us_early_put(&pl->early, messages[i], NULL, fits); /* without memory: when its turn has come */
        }
    }
    us_threads_wake(pl);
    pthread_mutex_unlock(&pl->lock);
}

void us_pipeline_start_waiting(struct unsalt_pipeline *pl, uint64_t now) {
    struct unsalt *u = pl->u;
    const rd_kafka_message_t *message;
    bool started = true;
    while (started && pl->early.waiting > 0 && (message = us_early_oldest(&pl->early))) {
        const struct us_partition *p = us_partition_find(u, rd_kafka_topic_name(message->rkt), message->partition);
        unsalt_core_in_t in;
        bool borrowed;
        pthread_mutex_lock(&pl->lock);
        started = us_pipe_room_early(&pl->pipe, message->len + message->key_len);
        pthread_mutex_unlock(&pl->lock);
        memset(&in, 0, sizeof(in));
        if (!started || us_extract(&u->info_extractor, message, &in, &borrowed) == us_extract_nomem) {
            return;
        }
        pthread_mutex_lock(&pl->lock);
        started = start_early(pl, p, (rd_kafka_message_t *)message, &in, now);
        us_threads_wake(pl);
        pthread_mutex_unlock(&pl->lock);
    }
}

void us_pipeline_drop(struct unsalt_pipeline *pl, rd_kafka_message_t *message) {
    struct us_job *job = NULL;
    bool runs = false;
    if (pl && us_early_take(&pl->early, message, &job) && job) {
        pthread_mutex_lock(&pl->lock);
        runs = job->pipe.state == US_PIPE_RUNNING || job->pipe.strays > 0;
        us_pipe_cancel(&pl->pipe, &job->pipe);
        job->message = runs ? message : NULL; /* whoever looks at it still may */
        pthread_mutex_unlock(&pl->lock);
    }
    if (!runs) {
        rd_kafka_message_destroy(message);
    }
}

/* ---- at its turn */

static const unsalt_core_out_t *ready(const struct unsalt *u, uint32_t i) {
    return &u->ring.slots[(u->ring.first + i) & (u->ring.capacity - 1)];
}

/* Errors and ends of partitions. False: out of memory. */
static bool take_plain(struct unsalt_pipeline *pl) {
    struct unsalt *u = pl->u;
    if (us_hand_out(u, 1) == 0) {
        return false;
    }
    rd_kafka_message_t *message = u->handed[0].msg;
    us_handed_out_forget(u);
    if (pl->callbacks.error) {
        pl->callbacks.error(pl->callbacks.opaque, message);
    } else if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        us_log(u, 4, "%s", rd_kafka_message_errstr(message));
    }
    rd_kafka_message_destroy(message);
    return true;
}

/*
 * How many records at the front of the buffer can get their turn. Those without a job are looked through first, so that
 * what is short of memory stays where it is.
 */
static uint32_t look(struct unsalt_pipeline *pl, uint64_t records, uint64_t bytes) {
    struct unsalt *u = pl->u;
    uint64_t sum = 0;
    uint32_t n = 0, used = 0;
    for (; n < US_PIPELINE_CHUNK && n < records && n < u->ring.count; n++) {
        const unsalt_core_out_t *out = ready(u, n);
        const rd_kafka_message_t *message = out->msg;
        bool borrowed = false;
        sum += message->len + message->key_len;
        if (message->err || (n > 0 && sum > bytes)) {
            break;
        }
        memset(&pl->in[n], 0, sizeof(pl->in[n]));
        if (us_early_has_job(&pl->early, message)) {
            continue;
        }
        parse_headers(pl, message);
        if (out->part == US_NO_PART || out->state == UNSALT_STATE_UNSEQUENCED) {
            continue; /* its base key is enough */
        }
        if (us_extract(&u->info_extractor, message, &pl->in[n], &borrowed) == us_extract_nomem) {
            break;
        }
        if (borrowed) {
            pl->in[n].session = memcpy(pl->ids + used, pl->in[n].session, pl->in[n].session_len);
            used += pl->in[n].session_len;
        }
    }
    return n;
}

/* lock. The job of a record that was handed out; room was reserved. */
static struct us_job *job_of(struct unsalt_pipeline *pl, const unsalt_core_out_t *out, const unsalt_core_in_t *in,
                             uint64_t now) {
    struct unsalt *u = pl->u;
    rd_kafka_message_t *message = out->msg;
    struct us_job *job = NULL;
    struct us_pipe_record record;
    us_early_take(&pl->early, message, &job);
    if (job) {
        return job;
    }
    struct us_partition *p = us_partition_find(u, rd_kafka_topic_name(message->rkt), message->partition);
    us_job_describe(pl, p, message, in, &record);
    return us_job_enter(pl, message, in, &record, now);
}

static void give_turn(struct unsalt_pipeline *pl, const unsalt_core_out_t *out, const unsalt_core_in_t *in,
                      uint64_t now) {
    struct us_job *job = job_of(pl, out, in, now);
    bool plain = out->part == US_NO_PART;
    job->state = plain ? UNSALT_STATE_UNSEQUENCED : out->state;
    job->after_gap = !plain && (out->flags & UNSALT_OUT_AFTER_GAP) != 0;
    job->waited_ns = out->waited_ns;
    job->ticket = out->ticket;
    job->acks = !plain && out->reserved != US_ORPHAN;
    job->pipe.part = out->part;
    job->pipe.generation = out->generation;
    job->pipe.orphan = !plain && out->reserved == US_ORPHAN;
    job->pipe.behind = job->state == UNSALT_STATE_LATE || job->state == UNSALT_STATE_STALE;
    us_pipe_turn(&pl->pipe, &job->pipe, now);
}

/* Says that halted sessions leave no room, once until they do again. */
static void tell_full(struct unsalt_pipeline *pl, bool full) {
    if (full && !pl->told_full) {
        us_done_full(pl);
    }
    pl->told_full = full;
}

static uint64_t room(struct unsalt_pipeline *pl, uint64_t *bytes) {
    bool full_halted;
    pthread_mutex_lock(&pl->lock);
    uint64_t records = us_pipe_room(&pl->pipe, bytes, &full_halted);
    if (records == 0 && !pl->blocked) {
        pl->full++;
    }
    pl->blocked = records == 0;
    pthread_mutex_unlock(&pl->lock);
    tell_full(pl, full_halted);
    return records;
}

/* Once until there is memory again. */
static void tell_starved(struct unsalt_pipeline *pl, bool starved) {
    if (starved && !pl->starved) {
        us_log(pl->u, 2, "out of memory: the pipeline waits");
    }
    pl->starved = starved;
}

static bool reserve(struct unsalt_pipeline *pl, uint32_t n) {
    pthread_mutex_lock(&pl->lock);
    bool done = us_jobs_reserve(pl, n);
    pthread_mutex_unlock(&pl->lock);
    return done;
}

bool us_pipeline_take(struct unsalt_pipeline *pl, uint64_t now) {
    struct unsalt *u = pl->u;
    bool moved = false;
    while (u->ring.count > 0) {
        const rd_kafka_message_t *message = ready(u, 0)->msg;
        uint64_t bytes;
        if (message->err) {
            bool taken = take_plain(pl);
            tell_starved(pl, !taken);
            if (!taken) {
                return moved;
            }
            moved = true;
            continue;
        }
        uint64_t records = room(pl, &bytes);
        if (records == 0) {
            pl->starved = false;
            return moved;
        }
        uint32_t n = look(pl, records, bytes);
        bool had = n > 0 && reserve(pl, n) && us_hand_out(u, n) == n;
        tell_starved(pl, !had);
        if (!had) {
            return moved;
        }
        pthread_mutex_lock(&pl->lock);
        for (uint32_t i = 0; i < n; i++) {
            give_turn(pl, &u->handed[i], &pl->in[i], now);
        }
        us_threads_wake(pl);
        pthread_mutex_unlock(&pl->lock);
        us_handed_out_forget(u);
        moved = true;
    }
    pl->blocked = pl->starved = false;
    return moved;
}
