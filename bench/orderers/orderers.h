/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What puts records in order, each behind the same call: it takes the arrivals, ARRIVALS_BATCH of them at a time, gives
 * out after each batch what is next, checks that nothing is missing or out of place, and adds the nanoseconds per
 * arrival to `runs`. All of them recycle the few buffers that their records come in, as a reader does.
 */
#ifndef BENCH_ORDERERS_H
#define BENCH_ORDERERS_H
#ifdef __cplusplus
extern "C" {
#endif
#include "arrivals.h"
#include "report.h"

/* The core, with everything that it does in a consumer: session, ledger, budgets, commit frontier, acknowledgement. */
void order_by_core(const struct arrivals *arrivals, struct bench_runs *runs);
/* The same without an acknowledgement: push and pull only. rte_reorder knows nothing of commits. */
void order_by_core_unacknowledged(const struct arrivals *arrivals, struct bench_runs *runs);
/* The floor: the records are only copied from where a push takes them to where a pull gives them out. In no order. */
void order_by_nothing(const struct arrivals *arrivals, struct bench_runs *runs);
/* A textbook binary heap of records. No sessions, no partitions, no commit. */
void order_by_heap(const struct arrivals *arrivals, struct bench_runs *runs);
/* std::map from number to record. */
void order_by_map(const struct arrivals *arrivals, struct bench_runs *runs);

/*
 * DPDK's rte_reorder, with the smallest window that fits. NULL, or why it can't be used. It tells no copy from another
 * record, so it is not run on arrivals that have copies.
 */
const char *order_by_reorder_start(void);
void order_by_reorder(const struct arrivals *arrivals, struct bench_runs *runs);
/* The same with 1,024 mbufs, or as many as are needed, which come in a circle as from the ring of a network card. */
void order_by_reorder_circle(const struct arrivals *arrivals, struct bench_runs *runs);

/* Does not return. */
void order_failed(const char *who, const char *what);
#ifdef __cplusplus
}
#endif
#endif
