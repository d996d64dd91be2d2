/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <kafka/committed.h>
#include <limits.h>
#include <stdbool.h>
#include <time.h>

#define PAUSE_MS 50

static bool passes(rd_kafka_resp_err_t err) {
    return err == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
           err == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE || err == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

rd_kafka_resp_err_t us_committed(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list, uint64_t until_ms) {
    for (;;) {
        rd_kafka_resp_err_t err = rd_kafka_committed(rk, list, us_clock_rest_ms(until_ms, INT_MAX));
        if (!passes(err) || us_clock_ms() + PAUSE_MS >= until_ms) {
            return err;
        }
        struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
}
