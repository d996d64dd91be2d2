/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs by the wall clock: ms since 1970 times 2^20, plus a part that grows from a random start. Within a process no
 * two are the same, and each is higher than those before it, whichever producer asks and whatever the clock does.
 * Those of two processes differ by the random part, even if both start within the same ms, but for one chance in 2^20.
 *
 * A later run must be higher than all that an earlier one took, so they may not run ahead of the clock: as long as a
 * process takes fewer than 2^20 in a ms on average, none is more than 1 ms ahead of it. One is taken for a producer, or
 * for a session that was evicted for the sake of a record, and there is no machine that sends so many.
 */
#ifndef US_KAFKA_PRODUCER_EPOCH_H
#define US_KAFKA_PRODUCER_EPOCH_H
#include <stdint.h>

/* How far the ms are shifted: the value fits into 63 bits until the year 2248. */
#define US_EPOCH_BITS 20

/* The epoch of a new producer. Any thread. */
uint64_t us_epoch_draw(void);
/* The next one after all that this process has taken, by one step. Any thread. */
uint64_t us_epoch_next(void);
#endif
