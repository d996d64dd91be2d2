/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/checkpoint_topic_send.h>
#include <kafka/clock.h>

#define POLL_MS 20
#define FLUSH_MS 1000

rd_kafka_resp_err_t us_checkpoint_put(rd_kafka_t *rk, rd_kafka_topic_t *rkt, const struct us_checkpoint_record *entry,
                                      uint64_t until) {
    for (;;) {
        if (!rd_kafka_produce(rkt, entry->partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)entry->value,
                              entry->value_len, entry->key, entry->key_len, NULL)) {
            return RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        rd_kafka_resp_err_t err = rd_kafka_last_error();
        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL || us_clock_ms() >= until) {
            return err;
        }
        rd_kafka_poll(rk, us_clock_rest_ms(until, POLL_MS));
    }
}

rd_kafka_resp_err_t us_checkpoint_flush(rd_kafka_t *rk, uint64_t until) {
    rd_kafka_resp_err_t err;
    do {
        err = rd_kafka_flush(rk, us_clock_rest_ms(until, FLUSH_MS));
    } while (err == RD_KAFKA_RESP_ERR__TIMED_OUT && us_clock_ms() < until);
    return err;
}
