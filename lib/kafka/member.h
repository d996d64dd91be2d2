/* SPDX-License-Identifier: BSD-2-Clause */
/* What every member of a group has to know of it, whether it is a consumer or a relay. */
#ifndef US_KAFKA_MEMBER_H
#define US_KAFKA_MEMBER_H
#include <librdkafka/rdkafka.h>
#include <stdbool.h>

/* The group's protocol gives and takes single partitions. */
bool us_member_incremental(rd_kafka_t *rk);

/*
 * Answers what a rebalance has asked, so that rd_kafka_consumer_close() finds nothing unanswered. To be called before
 * it, on the thread that polls: the rebalance callback is called here. A member that a subscription made one leaves the
 * group, unless it has an instance id. Records that come meanwhile are destroyed: they will be read again.
 */
void us_member_answer_all(rd_kafka_t *rk, bool subscribed);

/*
 * Leaves the group's topics and subscribes to them anew, which takes all partitions away; the same subscription once
 * more would take none. *topics NULL: to what is subscribed now. On success it is NULL again; on an error it may hold,
 * for the caller, what was left already: to be given to the next attempt, or destroyed. The thread that polls.
 */
rd_kafka_resp_err_t us_member_join_anew(rd_kafka_t *rk, rd_kafka_topic_partition_list_t **topics);

/*
 * Does this tell of a member of some generation? librdkafka forgets its generation, or the member's name, when it hears
 * that it was thrown out. By such metadata a broker can't tell that it is outdated, and lets offsets pass that are sent
 * with it (KIP-447). False then; true also if the form of the metadata is an unknown one. Any thread.
 */
bool us_member_is_of_generation(const rd_kafka_consumer_group_metadata_t *metadata);
#endif
