/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/pipeline.h>

void us_pipeline_stop(struct unsalt *u, struct us_partition *p) {
    struct unsalt_pipeline *pl = u->pipeline;
    if (pl && p->assigned) {
        pthread_mutex_lock(&pl->lock);
        us_pipe_stop(&pl->pipe, p->part, p->generation);
        pthread_mutex_unlock(&pl->lock);
    }
}

void us_pipeline_settle(struct unsalt *u) {
    if (u->pipeline) {
        us_done_settle(u->pipeline);
    }
}

void us_pipeline_leave(struct unsalt *u, const struct us_partition *p, bool whole) {
    struct unsalt_pipeline *pl = u->pipeline;
    if (pl) {
        pthread_mutex_lock(&pl->lock);
        us_pipe_leave(&pl->pipe, p->part, p->generation, p->set, whole);
        pthread_mutex_unlock(&pl->lock);
        us_done_settle(pl);
    }
}

void us_pipeline_close_begin(struct unsalt *u) {
    for (uint32_t i = 0; u->pipeline && i < u->partition_count; i++) {
        us_pipeline_stop(u, u->partitions[i]);
    }
    us_pipeline_settle(u);
}

void us_pipeline_close_serve(struct unsalt *u, uint64_t until) {
    if (u->pipeline) {
        uint64_t now = us_clock_now();
        while (us_pipeline_serve(u->pipeline, now, until) && now < until) {
            now = us_clock_now();
        }
        us_acks_apply(u);
    }
}

uint64_t us_pipeline_close_rest(struct unsalt *u, uint64_t most_ns) {
    if (!u->pipeline) {
        return most_ns;
    }
    uint64_t now = us_clock_now(), deadline = us_pipeline_deadline(u->pipeline);
    uint64_t rest = deadline > now ? deadline - now : 0;
    return rest < most_ns ? rest : most_ns;
}
