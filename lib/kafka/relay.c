/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation and end of a relay, and what the application calls. */
#include <base/copy_out.h>
#include <base/mem.h>
#include <kafka/chance.h>
#include <kafka/clock.h>
#include <kafka/consumer.h>
#include <kafka/handle_end.h>
#include <kafka/member.h>
#include <kafka/relay.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_LEVEL 6 /* as syslog(3) */
#define LOG_WARNING 4

void us_relay_log(const struct unsalt_relay *r, int level, const char *format, ...) {
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (r->input->log_cb)
        r->input->log_cb(r->input->log_opaque, level, "UNSALT", line);
    else if (level <= LOG_LEVEL)
        fprintf(stderr, "%%%d|UNSALT| %s\n", level, line);
}

/* It may be left behind, and what its log callback works with be gone then. */
void us_relay_end_handle(const struct unsalt_relay *r, rd_kafka_t *rk, const char *what) {
    rd_kafka_set_log_level(rk, -1);
    if (!us_handle_end(rk, US_HANDLE_END_MS))
        us_relay_log(r, LOG_WARNING, "a %s is not gone after %d s, and is left behind: librdkafka waits for a broker's "
                                     "thread", what, US_HANDLE_END_MS / 1000);
}

void us_relay_drop_batch(struct us_relay_batch *batch) {
    for (uint32_t i = 0; i < batch->count; i++) {
        struct us_relay_item *item = &batch->items[i];
        if (item->out.release)
            item->out.release((void *)item->out.payload);
        if (item->out.headers)
            rd_kafka_headers_destroy(item->out.headers);
        us_free(&us_mem_default, item->session);
        us_free(&us_mem_default, item->error);
        rd_kafka_message_destroy(item->message);
    }
    batch->count = 0;
    batch->bytes = 0;
}

/* ---- making */

static bool make_map(struct unsalt_relay *r, const struct unsalt_conf *result, char *errstr, size_t size) {
    r->map = (struct us_lane_map){
        .layout = (enum us_layout)result->layout,
        .lanes = r->result_lanes.topics.count,
        .partitions = (int32_t)result->partitions,
    };
    if (!us_salt_pattern_parse(result->salt_pattern, &r->map.pattern)) {
        snprintf(errstr, size, "salt.pattern=\"%s\" is not a text followed by <k>", result->salt_pattern);
        return false;
    }
    return true;
}

/* Of no use before there is a consumer; nothing is at work then. */
static void wake(void *opaque) {
    rd_kafka_queue_yield(((struct unsalt_relay *)opaque)->queue);
}

/* What isn't librdkafka's. On failure the caller unmakes. */
static bool make_inner(struct unsalt_relay *r, const struct unsalt_conf *input, const struct unsalt_conf *result,
                       char *errstr, size_t size) {
    r->input = unsalt_conf_dup(input);
    r->result = unsalt_conf_dup(result);
    if (!r->input || !r->result || !us_conf_lanes_init(&r->input_lanes, r->input) ||
        !us_conf_lanes_init(&r->result_lanes, r->result)) {
        snprintf(errstr, size, "out of memory");
        return false;
    }
    if (!make_map(r, r->result, errstr, size) || !us_extractor_init(&r->extractor, r->input, errstr, size))
        return false;
    r->extractor.keep_headers = true; /* they go on */
    atomic_store(&r->random, us_chance());
    r->committed = &r->batches[0];
    r->worked = &r->batches[1];
    r->read = &r->batches[2];
    r->probed = us_calloc(&us_mem_default, r->map.lanes, sizeof *r->probed);
    if (!r->probed || !us_relay_pool_init(&r->pool, (unsigned)input->relay_threads, us_relay_transform, wake, r)) {
        snprintf(errstr, size, "out of memory, or of threads");
        return false;
    }
    return true;
}

static void unmake(struct unsalt_relay *r) {
    if (r->pool.threads)
        us_relay_pool_destroy(&r->pool);
    us_free(&us_mem_default, r->probed);
    for (int i = 0; i < 3; i++)
        us_free(&us_mem_default, r->batches[i].items);
    us_extractor_destroy(&r->extractor);
    us_conf_lanes_destroy(&r->input_lanes);
    us_conf_lanes_destroy(&r->result_lanes);
    unsalt_conf_destroy(r->input);
    unsalt_conf_destroy(r->result);
    if (r->writes)
        rd_kafka_conf_destroy(r->writes);
    us_free(&us_mem_default, r);
}

/* The consumer, and what producers are made of; both from copies. */
static bool make_handles(struct unsalt_relay *r, const rd_kafka_conf_t *reads, const rd_kafka_conf_t *writes,
                         char *errstr, size_t size) {
    rd_kafka_conf_t *mine = rd_kafka_conf_dup(reads);
    r->writes = rd_kafka_conf_dup(writes);
    if (us_relay_reads(mine, errstr, size) && us_relay_writes(r->writes, reads, r->input, errstr, size)) {
        rd_kafka_conf_set_rebalance_cb(mine, us_relay_rebalance);
        rd_kafka_error_t *error = us_relay_make_producer(r);
        if (!error)
            r->consumer = rd_kafka_new(RD_KAFKA_CONSUMER, mine, errstr, size);
        else
            snprintf(errstr, size, "%s", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
    }
    if (!r->consumer) {
        rd_kafka_conf_destroy(mine);
        us_relay_end_producer(r);
        return false;
    }
    rd_kafka_poll_set_consumer(r->consumer);
    r->queue = rd_kafka_queue_get_consumer(r->consumer);
    return true;
}

unsalt_relay_t *unsalt_relay_new(rd_kafka_conf_t *reads, unsalt_conf_t *input, rd_kafka_conf_t *writes,
                                 unsalt_conf_t *result, char *errstr, size_t errstr_size) {
    if (!reads || !input || !writes || !result) {
        snprintf(errstr, errstr_size, "a relay needs all four configurations");
        return NULL;
    }
    if (!us_relay_check(input, result, errstr, errstr_size))
        return NULL;
    struct unsalt_relay *r = us_calloc(&us_mem_default, 1, sizeof *r);
    if (!r) {
        snprintf(errstr, errstr_size, "out of memory");
        return NULL;
    }
    if (!make_inner(r, input, result, errstr, errstr_size) || !make_handles(r, reads, writes, errstr, errstr_size)) {
        unmake(r);
        return NULL;
    }
    rd_kafka_conf_destroy(reads);
    rd_kafka_conf_destroy(writes);
    unsalt_conf_destroy(input);
    unsalt_conf_destroy(result);
    return r;
}

rd_kafka_t *unsalt_relay_consumer(const unsalt_relay_t *r) {
    return r->consumer;
}

rd_kafka_resp_err_t unsalt_relay_subscribe(unsalt_relay_t *r, const rd_kafka_topic_partition_list_t *topics) {
    rd_kafka_resp_err_t err = us_relay_letters_ready(r);
    if (err)
        return err;
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(topics->cnt);
    const struct us_lane_topics *lanes = &r->input_lanes.topics;
    uint16_t count = r->input->layout == US_LAYOUT_TOPICS ? lanes->count : 1;
    for (int i = 0; i < topics->cnt; i++) {
        for (uint16_t lane = 0; lane < count; lane++) {
            char name[256];
            const char *topic = topics->elems[i].topic;
            if (count > 1)
                topic = us_lane_topic(lanes, topic, lane, name, sizeof name) ? name : topic;
            if (!rd_kafka_topic_partition_list_find(all, topic, RD_KAFKA_PARTITION_UA))
                rd_kafka_topic_partition_list_add(all, topic, RD_KAFKA_PARTITION_UA);
        }
    }
    err = rd_kafka_subscribe(r->consumer, all);
    rd_kafka_topic_partition_list_destroy(all);
    r->subscribed |= !err;
    if (!err)
        us_relay_forget_join(r); /* it is another one now */
    return err;
}

/* ---- working */

/* What a call has to say of an error that came beside records that are relayed, the next one says. */
static rd_kafka_error_t *answer(struct unsalt_relay *r, rd_kafka_error_t *error) {
    if (r->error)
        rd_kafka_error_destroy(error);
    else
        r->error = error;
    error = r->relayed ? NULL : r->error;
    r->error = r->relayed ? r->error : NULL;
    return error;
}

rd_kafka_error_t *unsalt_relay_poll(unsalt_relay_t *r, int timeout_ms, size_t *relayed) {
    if (relayed)
        *relayed = 0;
    if (atomic_exchange(&r->busy, true))
        return rd_kafka_error_new(RD_KAFKA_RESP_ERR__CONFLICT, "Another thread polls this relay");
    struct unsalt_relay *outer = us_relay_polls(r);
    uint64_t until = us_clock_ms() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
    r->relayed = 0;
    rd_kafka_error_t *error = answer(r, r->error ? NULL : us_relay_step(r, until));
    if (relayed)
        *relayed = r->relayed;
    us_relay_polls(outer);
    atomic_store(&r->busy, false);
    return error;
}

int unsalt_relay_stats(const unsalt_relay_t *r, unsalt_relay_stats_t *stats, size_t size) {
    const unsalt_relay_stats_t all = {
#define X(name) .name = atomic_load(&r->counters.name),
        US_RELAY_COUNTERS(X)
#undef X
    };
    if (size == 0)
        return -1;
    us_copy_out(stats, size, &all, sizeof all);
    return 0;
}

/* What is in hand comes again, to whoever has its partitions then. */
void unsalt_relay_destroy(unsalt_relay_t *r) {
    if (!r)
        return;
    struct unsalt_relay *outer = us_relay_polls(r);
    us_relay_abandon(r);
    r->ending = true;
    us_member_answer_all(r->consumer, r->subscribed);
    rd_kafka_consumer_close(r->consumer);
    us_relay_polls(outer);
    us_relay_end_producer(r);
    us_relay_pool_destroy(&r->pool); /* a thread that is done may still be about to wake */
    rd_kafka_queue_destroy(r->queue);
    us_relay_end_handle(r, r->consumer, "consumer");
    us_relay_forget(r, NULL);
    us_relay_forget_join(r);
    rd_kafka_error_destroy(r->error);
    unmake(r);
}
