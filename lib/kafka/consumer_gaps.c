/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/consumer.h>

rd_kafka_resp_err_t unsalt_flush_gaps(unsalt_t *u) {
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    /* Each call is bounded by the room for events: as long as there were some, there may be more gaps. */
    do {
        unsalt_core_flush(u->core, us_clock_now());
    } while (us_core_events(u) > 0);
    u->full = false; /* it may be read on; if there is still no room, it is said again */
    us_stats_refresh(u);
    us_signal(u);
    us_leave(u);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}
