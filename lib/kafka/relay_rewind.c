/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <kafka/committed.h>
#include <kafka/relay.h>
#include <string.h>

/* ---- noting */

/* A partition of which a batch was given up; `offset` is where to begin if the group has committed nothing of it. */
static void note(rd_kafka_topic_partition_list_t *behind, const char *topic, int32_t partition, int64_t offset) {
    rd_kafka_topic_partition_t *one = rd_kafka_topic_partition_list_find(behind, topic, partition);
    if (!one)
        rd_kafka_topic_partition_list_add(behind, topic, partition)->offset = offset;
}

static bool has(rd_kafka_topic_partition_list_t *list, const char *topic, int32_t partition) {
    return rd_kafka_topic_partition_list_find(list, topic, partition) != NULL;
}

void us_relay_give_up(struct unsalt_relay *r, const struct us_relay_batch *batch) {
    rd_kafka_topic_partition_list_t *assigned = NULL;
    if (rd_kafka_assignment(r->consumer, &assigned))
        assigned = NULL;
    r->behind = r->behind ? r->behind : rd_kafka_topic_partition_list_new(8);
    for (uint32_t i = 0; i < batch->count; i++) {
        const rd_kafka_message_t *message = batch->items[i].message;
        const char *topic = rd_kafka_topic_name(message->rkt);
        if (!assigned || has(assigned, topic, message->partition))
            note(r->behind, topic, message->partition, message->offset);
    }
    if (assigned)
        rd_kafka_topic_partition_list_destroy(assigned);
    atomic_fetch_add(&r->counters.aborts, 1);
}

void us_relay_forget(struct unsalt_relay *r, const rd_kafka_topic_partition_list_t *gone) {
    if (r->behind && gone) {
        for (int i = 0; i < gone->cnt; i++)
            rd_kafka_topic_partition_list_del(r->behind, gone->elems[i].topic, gone->elems[i].partition);
    } else if (r->behind) {
        rd_kafka_topic_partition_list_destroy(r->behind);
        r->behind = NULL;
    }
}

/* ---- going back */

/* Puts what the group has committed into the list. A transaction of ours that is open still is waited for. */
static rd_kafka_resp_err_t ask(struct unsalt_relay *r, rd_kafka_topic_partition_list_t *list, uint64_t until) {
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(list);
    rd_kafka_resp_err_t err = us_committed(r->consumer, committed, until);
    for (int i = 0; i < committed->cnt && !err; i++) {
        const rd_kafka_topic_partition_t *one = &committed->elems[i];
        err = one->err;
        if (!err && one->offset >= 0)
            list->elems[i].offset = one->offset;
    }
    rd_kafka_topic_partition_list_destroy(committed);
    return err;
}

/* Before 2.1.0 a seek waits for a thousandth of its time (#4230). To seek once more to the same place does no harm. */
static rd_kafka_error_t *seek(struct unsalt_relay *r, rd_kafka_topic_partition_list_t *list, uint64_t until) {
    rd_kafka_error_t *error = rd_kafka_seek_partitions(r->consumer, list, us_clock_rest_ms(until, INT32_MAX));
    while (error && rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__TIMED_OUT && us_clock_ms() < until) {
        rd_kafka_error_destroy(error);
        error = rd_kafka_seek_partitions(r->consumer, list, us_clock_rest_ms(until, INT32_MAX));
    }
    return error;
}

/* A transaction of a member that died is over after its time limit, and what the coordinator needs to see that. */
#define ASSIGN_MS 10000

void us_relay_place(struct unsalt_relay *r, rd_kafka_topic_partition_list_t *list) {
    uint64_t until = us_clock_ms() + us_relay_limited(r, 2 * (uint64_t)r->input->relay_timeout_ms + ASSIGN_MS);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
    if (r->ending || list->cnt == 0 || ask(r, list, until) == RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    r->behind = r->behind ? r->behind : rd_kafka_topic_partition_list_new(8);
    for (int i = 0; i < list->cnt; i++) {
        list->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
        note(r->behind, list->elems[i].topic, list->elems[i].partition, RD_KAFKA_OFFSET_BEGINNING);
    }
}

static rd_kafka_error_t *go_back(struct unsalt_relay *r) {
    uint64_t until = us_clock_ms() + us_relay_limited(r, (uint64_t)r->input->relay_timeout_ms);
    rd_kafka_resp_err_t err = ask(r, r->behind, until);
    if (err)
        return rd_kafka_error_new(err, "Committed offsets are not known: %s", rd_kafka_err2str(err));
    rd_kafka_error_t *error = seek(r, r->behind, until);
    for (int i = 0; i < r->behind->cnt && !error; i++) {
        const rd_kafka_topic_partition_t *one = &r->behind->elems[i];
        if (one->err)
            error = rd_kafka_error_new(one->err, "%s [%d] can't be read again: %s", one->topic, (int)one->partition,
                                       rd_kafka_err2str(one->err));
    }
    return error;
}

bool us_relay_is_behind(const struct unsalt_relay *r) {
    return r->behind && r->behind->cnt > 0;
}

rd_kafka_error_t *us_relay_rewind(struct unsalt_relay *r) {
    rd_kafka_error_t *error = us_relay_is_behind(r) ? go_back(r) : NULL;
    if (!error)
        us_relay_forget(r, NULL);
    return error;
}
