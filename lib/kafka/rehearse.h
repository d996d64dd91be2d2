/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rehearsal of faults (keys rehearse.*): of what is read, chosen records vanish, come twice, come late, or find a
 * budget full, so that users can see their alerts fire. Which ones depends on the seed, and on topic, partition and
 * offset alone: the same again at every run. Only records that carry a sequence are chosen.
 *
 * vanish: the core gets a control record in its place, so that its offset is accounted for. duplicate: a copy without a
 * message follows it. late: a placeholder takes its place and keeps the commit back; the record comes when its number
 * was given up, or after US_REHEARSE_LATE_MS. budget: if the record has to be held, it finds the budget `records` full.
 */
#ifndef US_KAFKA_REHEARSE_H
#define US_KAFKA_REHEARSE_H
#include <kafka/conf.h>
#include <librdkafka/rdkafka.h>
#include <unsalt/stats.h>

#define US_REHEARSE_LATE_MS 30000
#define US_REHEARSE_NONE UNSALT_REHEARSAL__CNT

struct unsalt;
struct us_partition;
struct us_rehearse;

/* What becomes of a record; US_REHEARSE_NONE: nothing. Pure. */
unsalt_rehearsal_t us_rehearse_draw(const struct unsalt_conf *conf, const char *topic, int32_t partition,
                                    int64_t offset);
/* Sets u->rehearse if any rate is above 0. False: out of memory. */
bool us_rehearse_init(struct unsalt *u);
void us_rehearse_warn(const struct unsalt *u); /* says in the log that rehearsal is on, if it is */

/* The calls below need u->rehearse. */

/* u->in[n], made of the message, may be changed. True: it was, and must be the last one of its push. */
bool us_rehearse_record(struct unsalt *u, struct us_partition *p, const rd_kafka_message_t *message, uint32_t n);
/* n records were pushed, the last of them perhaps changed, and `took` taken. Pushes a copy. After us_out_settle(). */
void us_rehearse_pushed(struct unsalt *u, struct us_partition *p, uint32_t n, uint32_t took, uint64_t now);
/* Takes out of what the core gave back what isn't for the application. Returns how many are left. */
size_t us_rehearse_filter(struct unsalt *u, unsalt_core_out_t *out, size_t n);
/* Late records whose time has come are pushed; those whose partition has gone are dropped. */
void us_rehearse_due(struct unsalt *u, uint64_t now);
/* Destroys the records that were not pushed yet: they will be read again. NULL u->rehearse is allowed. */
void us_rehearse_drop(struct unsalt *u);
void us_rehearse_free(struct unsalt *u); /* after us_rehearse_drop(); likewise */
#endif
