/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/bounded_call.h>
#include <kafka/clock.h>
#include <kafka/offsets_send.h>

struct sending {
    struct us_offsets what;
    int timeout_ms;
    rd_kafka_error_t *error;
};

static void send_them(void *opaque) {
    struct sending *s = opaque;
    s->error = rd_kafka_send_offsets_to_transaction(s->what.rk, s->what.offsets, s->what.metadata, s->timeout_ms);
}

/* What its log callback works with may be gone soon. */
static void leave(void *opaque) {
    rd_kafka_set_log_level(((struct sending *)opaque)->what.rk, -1);
}

static void drop(void *opaque) {
    struct sending *s = opaque;
    rd_kafka_error_destroy(s->error);
    us_offsets_drop(&s->what);
    if (s->what.rkt)
        rd_kafka_topic_destroy(s->what.rkt);
    rd_kafka_destroy(s->what.rk);
    us_free(&us_mem_default, s);
}

/* Without memory or thread it isn't bounded: that is better than an open transaction of which nothing more is known. */
static bool send_here(const struct us_offsets *what, int timeout_ms, rd_kafka_error_t **error) {
    *error = rd_kafka_send_offsets_to_transaction(what->rk, what->offsets, what->metadata, timeout_ms);
    return true;
}

bool us_offsets_send(struct us_offsets *what, uint64_t until_ms, rd_kafka_error_t **error) {
    int timeout_ms = us_clock_rest_ms(until_ms, INT32_MAX - US_OFFSETS_LEAVE_MS);
    struct sending *s = us_calloc(&us_mem_default, 1, sizeof *s);
    if (!s)
        return send_here(what, timeout_ms, error);
    s->what = *what;
    s->timeout_ms = timeout_ms;
    const struct us_bounded_call call = {.call = send_them, .leave = leave, .drop = drop, .arg = s};
    enum us_bounded how = us_bounded_call(&call, timeout_ms + US_OFFSETS_LEAVE_MS);
    if (how == US_BOUNDED_LEFT) {
        *what = (struct us_offsets){NULL, NULL, NULL, NULL};
        *error = rd_kafka_error_new(RD_KAFKA_RESP_ERR__TIMED_OUT,
                                    "librdkafka does not come back from sending offsets: its producer is left behind");
        return false;
    }
    *error = s->error;
    us_free(&us_mem_default, s);
    return how == US_BOUNDED_BACK || send_here(what, timeout_ms, error);
}

void us_offsets_drop(struct us_offsets *what) {
    if (what->offsets)
        rd_kafka_topic_partition_list_destroy(what->offsets);
    if (what->metadata)
        rd_kafka_consumer_group_metadata_destroy(what->metadata);
    what->offsets = NULL;
    what->metadata = NULL;
}
