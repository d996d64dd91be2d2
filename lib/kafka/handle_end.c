/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/bounded_call.h>
#include <kafka/handle_end.h>

static void destroy(void *rk) {
    rd_kafka_destroy(rk);
}

bool us_handle_end(rd_kafka_t *rk, int timeout_ms) {
    const struct us_bounded_call end = {.call = destroy, .arg = rk};
    enum us_bounded how = rk ? us_bounded_call(&end, timeout_ms) : US_BOUNDED_BACK;
    if (how == US_BOUNDED_NOT_MADE)
        rd_kafka_destroy(rk);
    return how != US_BOUNDED_LEFT;
}
