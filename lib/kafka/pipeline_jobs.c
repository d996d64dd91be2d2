/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/pipeline.h>
#include <string.h>

#define SLAB 256

/* ---- memory: slabs that live as long as the pipeline, so the ordinary record allocates nothing */

static bool add_slab(struct unsalt_pipeline *pl) {
    void **slabs = us_array_room(&us_mem_default, pl->slabs, &pl->slab_capacity, pl->slab_count, 16, sizeof(*slabs));
    if (!slabs) {
        return false;
    }
    pl->slabs = slabs;
    struct us_job *slab = us_calloc(&us_mem_default, SLAB, sizeof(*slab));
    if (!slab) {
        return false;
    }
    pl->slabs[pl->slab_count++] = slab;
    for (uint32_t i = 0; i < SLAB; i++) {
        slab[i].next = pl->pool;
        pl->pool = &slab[i];
    }
    pl->pool_count += SLAB;
    return true;
}

bool us_jobs_reserve(struct unsalt_pipeline *pl, uint32_t n) {
    while (pl->pool_count < n) {
        if (!add_slab(pl)) {
            return false;
        }
    }
    return us_pipe_reserve(&pl->pipe, n);
}

struct us_job *us_jobs_take(struct unsalt_pipeline *pl) {
    struct us_job *job = pl->pool;
    pl->pool = job->next;
    pl->pool_count--;
    memset(job, 0, sizeof(*job));
    return job;
}

void us_jobs_give(struct unsalt_pipeline *pl, struct us_job *job) {
    us_pipe_forget(&pl->pipe, &job->pipe);
    job->next = pl->pool;
    pl->pool = job;
    pl->pool_count++;
}

void us_jobs_free(struct unsalt_pipeline *pl) {
    for (uint32_t i = 0; i < pl->slab_count; i++) {
        us_free(&us_mem_default, pl->slabs[i]);
    }
    us_free(&us_mem_default, pl->slabs);
}

/* ---- what is known of a record */

/*
 * Its session: of a record with a sequence the id, of others the base key; of others without a key, the partition. Lane
 * sets are small numbers and partitions are addresses, so they are never taken for each other.
 */
void us_job_describe(const struct unsalt_pipeline *pl, const struct us_partition *p, rd_kafka_message_t *message,
                     const unsalt_core_in_t *in, struct us_pipe_record *record) {
    size_t bytes = message->len + message->key_len;
    *record = (struct us_pipe_record){
        .space = p ? p->set : UINT32_MAX,
        .set = p ? p->set : UINT32_MAX,
        .id = in->session,
        .id_len = in->session_len,
        .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
        .seq = in->session ? in->seq : UNSALT_NO_SEQ,
        .epoch = in->session ? in->epoch : 0,
        .part = US_NO_PART,
    };
    if (in->session) {
        return;
    }
    record->id = message->key;
    record->id_len = message->key ? us_extract_base_key(&pl->u->info_extractor, message) : 0;
    if (!message->key) {
        record->space = p ? (uint64_t)(uintptr_t)p : UINT64_MAX;
    }
}

static int32_t lane_of(const struct unsalt_pipeline *pl, const rd_kafka_message_t *message,
                       const unsalt_core_in_t *in) {
    if (in->lanes > 0) {
        return in->lane;
    }
    bool topics = pl->u->conf->layout == US_LAYOUT_TOPICS;
    return topics ? us_topic_lane(&pl->u->lanes.topics, rd_kafka_topic_name(message->rkt)).lane : -1;
}

struct us_job *us_job_enter(struct unsalt_pipeline *pl, rd_kafka_message_t *message, const unsalt_core_in_t *in,
                            const struct us_pipe_record *record, uint64_t now) {
    struct us_job *job = us_jobs_take(pl);
    us_pipe_enter(&pl->pipe, &job->pipe, record, now);
    job->message = message;
    job->state = UNSALT_STATE_HELD;
    job->flags = in->session ? in->flags : 0;
    job->lane = in->session ? lane_of(pl, message, in) : -1;
    job->base_len = in->session || !message->key ? 0 : record->id_len;
    return job;
}

const void *us_job_session(const struct us_job *job, size_t *len) {
    const struct us_pipe_session *session = job->pipe.session;
    if (job->pipe.seq != UNSALT_NO_SEQ) {
        *len = session->id_len;
        return session->id;
    }
    *len = job->base_len;
    return job->message ? job->message->key : NULL;
}
