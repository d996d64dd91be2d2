/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a handle that the library made for itself beside the application's: for the ends of logs, for checkpoints,
 * for dead letters. librdkafka joins the threads of its brokers, which end when nothing refers to their broker any
 * more; where it has lost count, which happened when brokers went down and came back (librdkafka#4131, #4674, #4724),
 * that is never. Nobody's message is in such a handle, so it isn't waited for without end.
 */
#ifndef US_KAFKA_HANDLE_END_H
#define US_KAFKA_HANDLE_END_H
#include <librdkafka/rdkafka.h>
#include <stdbool.h>

/* Ending takes milliseconds. What isn't gone after this, in ms, hardly ever goes. */
#define US_HANDLE_END_MS 5000

/*
 * Destroys a handle. All of its queues and topics must be gone, and no callback may be called any more that needs the
 * caller's data. Any thread but librdkafka's own.
 *
 * @param rk          NULL: nothing is done. Not to be used any more, whatever is returned.
 * @param timeout_ms  how long to wait for it, >= 0
 * @return false: it isn't gone; a thread of its own goes on destroying it, and frees it if it ever can. Where there is
 *   no memory or no thread to wait with, the wait is librdkafka's own.
 */
bool us_handle_end(rd_kafka_t *rk, int timeout_ms);
#endif
