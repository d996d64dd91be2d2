/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <errno.h>
#include <kafka/chance.h>
#include <kafka/consumer.h>
#include <kafka/pipeline.h>
#include <kafka/rehearse.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static _Thread_local rd_kafka_resp_err_t last_error;

rd_kafka_resp_err_t unsalt_last_error(void) {
    return last_error;
}

void us_set_last_error(rd_kafka_resp_err_t err) {
    last_error = err;
}

char *us_text_dup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = us_alloc(&us_mem_default, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

bool us_enter_to_look(struct unsalt *u) {
    bool free = false;
    if (us_pipeline_inside(u->pipeline) || !atomic_compare_exchange_strong(&u->busy, &free, true)) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CONFLICT);
        return false;
    }
    if (u->closed) {
        atomic_store(&u->busy, false);
        us_set_last_error(RD_KAFKA_RESP_ERR__STATE);
        return false;
    }
    us_set_last_error(RD_KAFKA_RESP_ERR_NO_ERROR);
    return true;
}

bool us_enter(struct unsalt *u) {
    if (!us_enter_to_look(u)) {
        return false;
    }
    us_loop_back(u);
    return true;
}

bool us_enter_to_poll(struct unsalt *u) {
    if (u->pipeline) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CONFLICT);
        return false;
    }
    return us_enter(u);
}

void us_leave(struct unsalt *u) {
    atomic_store_explicit(&u->busy, false, memory_order_release);
}

static bool make_core(struct unsalt *u, char *errstr, size_t size) {
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    us_conf_core_params(u->conf, &params);
    params.mem = us_mem_default;
    params.hash_seed = us_chance();
    u->core = unsalt_core_new(&params, errstr, size);
    return u->core != NULL;
}

/* Only in layout hash can lanes of a session meet in a partition. */
static bool make_collisions(struct unsalt *u) {
    u->collisions_seed = us_chance();
    return u->conf->layout != US_LAYOUT_HASH || us_collisions_init(&u->collisions, &us_mem_default);
}

static bool make_buffers(struct unsalt *u) {
    uint32_t batch = (uint32_t)u->conf->read_batch;
    u->handed_capacity = US_CHUNK;
    u->in = us_calloc(&us_mem_default, US_CHUNK, sizeof(*u->in));
    u->out = us_calloc(&us_mem_default, US_CHUNK, sizeof(*u->out));
    u->faults = us_calloc(&us_mem_default, US_CHUNK, sizeof(*u->faults));
    u->ids = us_alloc(&us_mem_default, US_IDS_BYTES);
    u->handed = us_calloc(&us_mem_default, u->handed_capacity, sizeof(*u->handed));
    u->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return u->in && u->out && u->faults && u->ids && u->handed && u->wake_fd >= 0 && make_collisions(u) &&
           us_rehearse_init(u) &&
           us_ring_init(&u->ring, 4 * (batch > US_CHUNK ? batch : US_CHUNK)) && us_acks_init(&u->acks) &&
           us_asker_init(&u->asker) && us_watch_init(&u->watch) && us_loop_init(&u->loop) &&
           us_conf_lanes_init(&u->lanes, u->conf);
}

/* Everything that needs no handle of librdkafka. Takes conf whatever the result. */
static struct unsalt *make(struct unsalt_conf *conf, char *errstr, size_t size) {
    struct unsalt *u = us_calloc(&us_mem_default, 1, sizeof(*u));
    if (!u) {
        snprintf(errstr, size, "out of memory");
        return NULL;
    }
    u->wake_fd = -1;
    u->conf = conf;
    u->versions = us_versions(rd_kafka_version());
    us_stats_init(u);
    if (!make_buffers(u)) {
        snprintf(errstr, size, "out of memory, or of file descriptors");
    } else if (us_extractor_init(&u->extractor, conf, errstr, size) &&
               us_extractor_init(&u->info_extractor, conf, errstr, size) && make_core(u, errstr, size)) {
        u->info_extractor.keep_headers = true;
        return u;
    }
    u->conf = NULL;
    us_consumer_free(u);
    return NULL;
}

static uint64_t sweep_interval(const struct us_before *before) {
    uint64_t third = (uint64_t)before->max_poll_ms / 3;
    return (third < 1000 ? third : 1000) * US_MS;
}

/* Makes librdkafka's handle. On failure rk_conf is as it was. */
static bool make_handle(struct unsalt *u, rd_kafka_conf_t *rk_conf, char *errstr, size_t size) {
    u->asker.conf = rd_kafka_conf_dup(rk_conf);
    if (!us_checkpoint_init(u, errstr, size)) {
        return false;
    }
    if (!us_conf_force(u, rk_conf, &u->before, errstr, size)) {
        return false;
    }
    u->rk = rd_kafka_new(RD_KAFKA_CONSUMER, rk_conf, errstr, size);
    if (!u->rk) {
        us_conf_restore(rk_conf, &u->before);
        return false;
    }
    us_registry_add(u);
    rd_kafka_poll_set_consumer(u->rk);
    u->main_queue = rd_kafka_queue_get_consumer(u->rk);
    rd_kafka_queue_cb_event_enable(u->main_queue, us_main_queue_event, u);
    u->sweep_ns = sweep_interval(&u->before);
    u->watch.every_ns = us_watch_interval(&u->before);
    u->commit_at = UNSALT_NEVER;
    us_start_warn(u);
    us_group_conf_warn(u);
    us_rehearse_warn(u);
    return true;
}

unsalt_t *unsalt_new(rd_kafka_conf_t *rk_conf, unsalt_conf_t *conf, char *errstr, size_t errstr_size) {
    char nowhere[1];
    if (!errstr || errstr_size == 0) {
        errstr = nowhere;
        errstr_size = sizeof(nowhere);
    }
    if (!rk_conf) {
        snprintf(errstr, errstr_size, "no rd_kafka_conf_t was given");
        return NULL;
    }
    struct unsalt_conf *mine = conf ? unsalt_conf_dup(conf) : unsalt_conf_new();
    if (!mine) {
        snprintf(errstr, errstr_size, "out of memory");
        return NULL;
    }
    struct unsalt *u = NULL;
    if (!us_conf_check_consumer(mine, errstr, errstr_size) || !(u = make(mine, errstr, errstr_size))) {
        unsalt_conf_destroy(mine);
        return NULL;
    }
    if (!make_handle(u, rk_conf, errstr, errstr_size)) {
        us_consumer_free(u);
        return NULL;
    }
    unsalt_conf_destroy(conf);
    return u;
}

void us_consumer_free(struct unsalt *u) {
    us_partitions_free(u);
    us_ring_destroy(&u->ring);
    us_acks_destroy(&u->acks);
    us_asker_destroy(&u->asker);
    us_checkpoint_free(u);
    us_watch_destroy(&u->watch);
    us_fence_forget(u);
    us_loop_destroy(&u->loop);
    us_conf_lanes_destroy(&u->lanes);
    us_extractor_destroy(&u->extractor);
    us_extractor_destroy(&u->info_extractor);
    unsalt_core_destroy(u->core);
    us_info_forget(u);
    us_free(&us_mem_default, u->in);
    us_free(&us_mem_default, u->out);
    us_free(&us_mem_default, u->faults);
    us_free(&us_mem_default, u->ids);
    us_collisions_destroy(&u->collisions, &us_mem_default);
    us_rehearse_free(u);
    us_free(&us_mem_default, u->handed);
    if (u->sent) {
        rd_kafka_topic_partition_list_destroy(u->sent);
    }
    if (u->wake_fd >= 0) {
        close(u->wake_fd);
    }
    pthread_mutex_destroy(&u->stats_lock);
    unsalt_conf_destroy(u->conf);
    us_free(&us_mem_default, u);
}

void unsalt_destroy(unsalt_t *u) {
    if (!u) {
        return;
    }
    atomic_store(&u->busy, true); /* for ever: a call from a callback gets its error here too */
    us_close(u);
    us_asker_stop(u);
    us_checkpoint_stop(u);
    us_destroy_watched(u);
    us_registry_remove(u);
    us_consumer_free(u);
}

rd_kafka_t *unsalt_handle(const unsalt_t *u) {
    return u->rk;
}

/* ---- subscription */

/* Adds the lane topics of a base topic that are not in the list. False: a name is too long. */
static bool add_lanes(const struct unsalt *u, rd_kafka_topic_partition_list_t *list, const char *topic) {
    char name[512];
    for (uint16_t lane = 0; lane < u->lanes.topics.count; lane++) {
        if (us_lane_topic(&u->lanes.topics, topic, lane, name, sizeof(name)) == 0) {
            return false;
        }
        if (!rd_kafka_topic_partition_list_find(list, name, RD_KAFKA_PARTITION_UA)) {
            rd_kafka_topic_partition_list_add(list, name, RD_KAFKA_PARTITION_UA);
        }
    }
    return true;
}

static bool is_base(const struct unsalt *u, const char *topic) {
    return topic[0] != '^' && us_topic_lane(&u->lanes.topics, topic).lane == 0;
}

rd_kafka_resp_err_t unsalt_subscribe(unsalt_t *u, const rd_kafka_topic_partition_list_t *topics) {
    if (!topics || topics->cnt == 0) {
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_copy(topics);
    for (int i = 0; u->conf->layout == US_LAYOUT_TOPICS && i < topics->cnt && !err; i++) {
        const char *topic = topics->elems[i].topic;
        if (is_base(u, topic) && !add_lanes(u, all, topic)) {
            err = RD_KAFKA_RESP_ERR__INVALID_ARG;
        }
    }
    err = err ? err : us_checkpoint_unread(u, all);
    err = err ? err : us_checkpoint_ready(u);
    err = err ? err : us_dead_ready(u);
    if (!err) {
        err = rd_kafka_subscribe(u->rk, all);
        u->subscribed |= !err;
        u->member |= !err;
        us_fence_forget(u);
    }
    rd_kafka_topic_partition_list_destroy(all);
    us_leave(u);
    return err;
}

rd_kafka_resp_err_t unsalt_unsubscribe(unsalt_t *u) {
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    rd_kafka_resp_err_t err = rd_kafka_unsubscribe(u->rk);
    u->subscribed = false;
    us_fence_forget(u);
    us_leave(u);
    return err;
}
