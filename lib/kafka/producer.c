/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation and end of the stamping producer. */
#include <base/copy_out.h>
#include <base/mem.h>
#include <kafka/producer.h>
#include <stdio.h>
#include <string.h>

/* How long destroy waits for a report of a purged record; they are there at once. */
#define PURGE_TIMEOUT_MS 5000

static bool make_senders(struct unsalt_producer *p, const struct unsalt_conf *conf, char *errstr, size_t size) {
    struct us_lane_map map = {
        .layout = (enum us_layout)conf->layout,
        .lanes = p->lane_topics.topics.count,
        .partitions = (int32_t)conf->partitions,
    };
    if (!us_salt_pattern_parse(conf->salt_pattern, &map.pattern)) {
        snprintf(errstr, size, "salt.pattern=\"%s\" is not a text followed by <k>", conf->salt_pattern);
        return false;
    }
    if (!us_senders_init(&p->senders, &us_mem_default, &map, (uint64_t)conf->seq_first,
                         (uint64_t)conf->producer_epoch, (uint32_t)conf->producer_sessions_max)) {
        snprintf(errstr, size, "out of memory");
        return false;
    }
    p->senders.producer = p;
    us_topics_init(&p->topics, &us_mem_default, US_TOPICS_MAX);
    us_agains_init(&p->agains);
    return true;
}

/* Everything but librdkafka's handle. Returns NULL with errstr. */
static struct unsalt_producer *make(const struct unsalt_conf *conf, char *errstr, size_t size) {
    struct unsalt_producer *p;
    if (!us_conf_check_producer(conf, errstr, size))
        return NULL;
    p = us_calloc(&us_mem_default, 1, sizeof *p);
    if (!p || !us_conf_lanes_init(&p->lane_topics, conf)) {
        snprintf(errstr, size, "out of memory");
        us_free(&us_mem_default, p);
        return NULL;
    }
    if (!make_senders(p, conf, errstr, size)) {
        us_conf_lanes_destroy(&p->lane_topics);
        us_free(&us_mem_default, p);
        return NULL;
    }
    return p;
}

static void unmake(struct unsalt_producer *p) {
    us_agains_destroy(&p->agains);
    us_topics_destroy(&p->topics);
    us_senders_destroy(&p->senders);
    us_conf_lanes_destroy(&p->lane_topics);
    unsalt_conf_destroy(p->conf);
    us_free(&us_mem_default, p);
}

unsalt_producer_t *unsalt_producer_new(rd_kafka_conf_t *rk_conf, unsalt_conf_t *conf, char *errstr,
                                       size_t errstr_size) {
    if (!rk_conf || !conf) {
        snprintf(errstr, errstr_size, "a producer needs both configurations");
        return NULL;
    }
    struct unsalt_producer *p = make(conf, errstr, errstr_size);
    if (!p)
        return NULL;
    if (!us_wishes_install(rk_conf, &p->wishes, errstr, errstr_size)) {
        unmake(p);
        return NULL;
    }
    p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rk_conf, errstr, errstr_size);
    if (!p->rk) {
        us_wishes_restore(rk_conf, &p->wishes);
        unmake(p);
        return NULL;
    }
    p->conf = conf;
    us_producers_add(p);
    return p;
}

rd_kafka_t *unsalt_producer_handle(const unsalt_producer_t *p) {
    return p->rk;
}

int unsalt_producer_stats(unsalt_producer_t *p, unsalt_producer_stats_t *stats, size_t size) {
    unsalt_producer_stats_t all = {
        .stamped = atomic_load(&p->stamped),
        .unstamped = atomic_load(&p->unstamped),
        .acked = atomic_load(&p->acked),
        .abandoned = atomic_load(&p->abandoned),
        .uncertain = atomic_load(&p->uncertain),
        .resent = atomic_load(&p->resent),
        .waiting = atomic_load(&p->agains.waiting),
        .markers = atomic_load(&p->markers),
        .marked = atomic_load(&p->marked),
        .sessions = us_senders_count(&p->senders),
        .evicted = atomic_load(&p->senders.evicted),
        .epoch = atomic_load(&p->senders.epoch),
    };
    if (size == 0)
        return -1;
    us_copy_out(stats, size, &all, sizeof all);
    return 0;
}

/* However long the application takes for its reports: as long as there come more. */
static void serve_reports(struct unsalt_producer *p) {
    uint64_t before;
    do {
        before = atomic_load(&p->open);
    } while (rd_kafka_flush(p->rk, PURGE_TIMEOUT_MS) && atomic_load(&p->open) < before);
}

/* From `closing` on nothing is sent again, whatever a report's callback does: what waits stays here to be reported. */
void unsalt_producer_destroy(unsalt_producer_t *p) {
    if (!p)
        return;
    atomic_store(&p->closing, true);
    rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    serve_reports(p);
    us_again_abandon(p);
    us_producers_remove(p);
    rd_kafka_destroy(p->rk);
    unmake(p);
}
