/* SPDX-License-Identifier: BSD-2-Clause */
/* A relay as a member of its group: partitions come and go, and offsets are its own to commit, or no more. */
#include <kafka/clock.h>
#include <kafka/member.h>
#include <kafka/relay.h>
#include <stdlib.h>

#define LOG_ERROR 3 /* as syslog(3) */
#define LOG_WARNING 4
#define NOBODY_MS 1000 /* after which librdkafka would have taken the partitions away if it meant to */

/* Rebalances come to it, with the application's opaque. */
static _Thread_local struct unsalt_relay *polling;

struct unsalt_relay *us_relay_polls(struct unsalt_relay *r) {
    struct unsalt_relay *outer = polling;
    polling = r;
    return outer;
}

uint64_t us_relay_limited(const struct unsalt_relay *r, uint64_t ms) {
    char text[32] = "";
    size_t size = sizeof text;
    rd_kafka_conf_get(rd_kafka_conf(r->consumer), "max.poll.interval.ms", text, &size);
    uint64_t third = strtoull(text, NULL, 10) / 3;
    return third > 0 && third < ms ? third : ms;
}

/* It may have left the group and still believe in its partitions: it has no member id then. */
static bool is_nobody(const struct unsalt_relay *r) {
    char *id = rd_kafka_memberid(r->consumer);
    bool nobody = !id || id[0] == '\0';
    if (id)
        rd_kafka_mem_free(r->consumer, id);
    return nobody;
}

static bool is_lost(const struct unsalt_relay *r) {
    return rd_kafka_assignment_lost(r->consumer) || is_nobody(r);
}

/* ---- nobody */

static void note_nobody(struct unsalt_relay *r, bool nobody) {
    if (!nobody)
        r->nobody_at = 0;
    else if (r->nobody_at == 0)
        r->nobody_at = us_clock_ms();
}

/* A member that has no partitions is about to join by itself. */
static bool has_partitions(const struct unsalt_relay *r) {
    rd_kafka_topic_partition_list_t *assigned = NULL;
    if (rd_kafka_assignment(r->consumer, &assigned) || !assigned)
        return false;
    bool any = assigned->cnt > 0;
    rd_kafka_topic_partition_list_destroy(assigned);
    return any;
}

/*
 * If max.poll.interval.ms is over amid a rebalance, librdkafka leaves the group, forgets its member id, and takes no
 * partitions away. Such a member sends no heartbeat, and no commit of a relay asks a broker in its name: it would give
 * up whatever it reads until its session is over (session.timeout.ms). To subscribe anew takes its partitions away.
 */
void us_relay_join_anew(struct unsalt_relay *r) {
    if (r->nobody_at == 0 || us_clock_ms() < r->nobody_at + NOBODY_MS)
        return;
    if (!r->rejoin && (rd_kafka_assignment_lost(r->consumer) || !is_nobody(r) || !has_partitions(r))) {
        r->nobody_at = 0;
        return;
    }
    rd_kafka_resp_err_t err = us_member_join_anew(r->consumer, &r->rejoin);
    us_relay_log(r, err ? LOG_ERROR : LOG_WARNING, "the group has this member no more: it joins anew%s%s",
                 err ? ", tried again: " : "", err ? rd_kafka_err2str(err) : "");
    r->nobody_at = err ? us_clock_ms() : 0;
}

void us_relay_forget_join(struct unsalt_relay *r) {
    if (r->rejoin)
        rd_kafka_topic_partition_list_destroy(r->rejoin);
    r->rejoin = NULL;
    r->nobody_at = 0;
}

/* ---- commits */

/*
 * The metadata first: whoever is thrown out in between has that of the old generation. librdkafka forgets its
 * generation, or its name, when it hears that it was thrown out, and brokers take offsets of nobody in particular: such
 * metadata isn't used, though the member may have got another name before it is looked at.
 */
rd_kafka_consumer_group_metadata_t *us_relay_metadata(struct unsalt_relay *r) {
    rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(r->consumer);
    if (metadata && (!us_member_is_of_generation(metadata) || is_lost(r))) {
        rd_kafka_consumer_group_metadata_destroy(metadata);
        metadata = NULL;
    }
    note_nobody(r, r->subscribed && !metadata && !rd_kafka_assignment_lost(r->consumer) && is_nobody(r));
    return metadata;
}

/* ---- rebalances */

static rd_kafka_resp_err_t change(rd_kafka_t *rk, bool gives, rd_kafka_topic_partition_list_t *list) {
    rd_kafka_error_t *error = NULL;
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (us_member_incremental(rk))
        error = gives ? rd_kafka_incremental_assign(rk, list) : rd_kafka_incremental_unassign(rk, list);
    else
        err = rd_kafka_assign(rk, gives ? list : NULL);
    if (error) {
        err = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
    }
    return err;
}

void us_relay_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t why, rd_kafka_topic_partition_list_t *list, void *opaque) {
    bool gives = why == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    (void)opaque;
    if (polling && !gives) {
        us_relay_part(polling, is_lost(polling));
        us_relay_forget(polling, us_member_incremental(rk) ? list : NULL);
    }
    if (polling && gives)
        us_relay_place(polling, list);
    rd_kafka_resp_err_t err = change(rk, gives, list);
    if (err && polling)
        us_relay_log(polling, LOG_ERROR, "%d partitions can't be %s: %s", list->cnt, gives ? "assigned" : "given up",
                     rd_kafka_err2str(err));
}
