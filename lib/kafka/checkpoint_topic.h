/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topic of checkpoints: entries of key and value, whose bytes mean nothing here (lib/codec knows them), in a
 * compacted topic with one partition for each lane set. One file per concern:
 *
 *   checkpoint_topic.c         that the topic is there, with its number of partitions
 *   checkpoint_topic_policy.c  that one which was there is compacted
 *   checkpoint_topic_client.c  handles of librdkafka beside the application's
 *   checkpoint_topic_reader.c  reads partitions to where their logs ended when reading began
 *   checkpoint_topic_ends.c    the thread that asks leaders where their logs end
 *   checkpoint_topic_send.c    entries into an open transaction, whoever's it is
 *   checkpoint_topic_fate.c    what an error of a transaction means
 *   checkpoint_topic_writer.c  the side of the writer that its caller sees
 *   checkpoint_topic_ending.c  the side of its thread: starting a producer, ending a transaction
 *
 * Why a new owner misses nothing. A writer brings its entries into the log, then its offsets to the group's coordinator
 * and then commits, in this order. A new owner asks for the committed offsets (stable ones: librdkafka asks for them
 * under read_committed), then for the end of the log, and reads to that end. The coordinator takes offsets of
 * a transaction only from a member of the present generation. So once the new owner has its answer, an older member's
 * transaction was refused, or its offsets were pending before and the answer waited for its end; in that case its
 * entries stood in the log before the end was asked for. If entries came into the log after the offsets, the end could
 * be asked for between the two.
 */
#ifndef US_KAFKA_CHECKPOINT_TOPIC_H
#define US_KAFKA_CHECKPOINT_TOPIC_H
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- handles beside the application's */

/* Where the cluster is, and how it is entered. What is made with it borrows both for its life. */
struct us_checkpoint_client {
    const rd_kafka_conf_t *conf; /* of the application's consumer */
    const char *bootstrap;       /* instead of bootstrap.servers (a mock cluster inside a handle); NULL: as in conf */
};

enum us_checkpoint_role {
    US_CHECKPOINT_ADMIN, /* a producer that produces nothing */
    US_CHECKPOINT_ENDS,  /* a consumer with read_uncommitted: the high watermark, not the last stable offset */
    US_CHECKPOINT_READER /* a consumer with read_committed, from the earliest offset, for large answers */
};

/*
 * A copy of the application's configuration without what belongs to consumers, groups and callbacks; bootstrap,
 * security, sockets, and the callback for OAUTHBEARER tokens with its opaque stay. Silent: no log, no statistics,
 * no events; errors of brokers are dropped, since the application hears of them from its own handle. Never creates a
 * topic by asking for it. The caller owns it.
 */
rd_kafka_conf_t *us_checkpoint_client_conf(const struct us_checkpoint_client *client);

/* Sets a property of such a copy; a name that this librdkafka doesn't know is passed over. */
void us_checkpoint_client_set(rd_kafka_conf_t *conf, const char *name, const char *value);

/*
 * A handle for a role, without a group. NULL: errstr says why. Talks to nobody yet. Any thread. The caller polls it
 * (tokens are refreshed by rd_kafka_poll()) and destroys it.
 */
rd_kafka_t *us_checkpoint_client_new(const struct us_checkpoint_client *client, enum us_checkpoint_role role,
                                     char *errstr, size_t errstr_size);

/* ---- the topic */

struct us_checkpoint_topic {
    const char *name;
    int32_t partitions;   /* that it must have, >= 1; of letters: of a new one, -1: the brokers' default (KIP-464) */
    bool create;          /* whether it may be made */
    int replication;      /* of a new one; -1: the broker's default, which brokers know from 2.4 on (KIP-464) */
    int64_t retention_ms; /* of a new one: entries that nobody has written again for so long may go; -1: never */
    bool letters;         /* of dead letters: any number of partitions will do, a new one has the brokers' settings */
};

/*
 * Sees to it that the topic is there and has a leader for each partition. A new one gets cleanup.policy=compact,delete,
 * timestamps of the broker's clock, and segments that close within an hour, since an open one isn't compacted. Several
 * members may call at once: one of them makes it, the others find it. An existing topic's settings are left alone, but
 * it must be compacted, if the broker tells.
 *
 * @param timeout_ms  bound of the whole, > 0; blocks for at most about a second longer
 * @return 0, or
 *   __INVALID_ARG            it has another number of partitions: errstr says both; or isn't compacted
 *   UNKNOWN_TOPIC_OR_PART    it isn't there and `create` is false
 *   __TIMED_OUT              not known, or no leaders, within the time: may be tried again
 *   TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, POLICY_VIOLATION, INVALID_REPLICATION_FACTOR, ...
 *                            the broker's word on its creation
 *   __FAIL                   no handle could be made
 * errstr is a sentence for the user in every case of failure; with 0 it is empty, or says what of the topic could not
 * be checked. errstr_size > 0. Any thread.
 */
rd_kafka_resp_err_t us_checkpoint_topic_ensure(const struct us_checkpoint_client *client,
                                               const struct us_checkpoint_topic *topic, int timeout_ms, char *errstr,
                                               size_t errstr_size);

/* ---- checkpoint_topic_policy.c */

/* Is compact among the values of a cleanup.policy, such as "compact,delete"? */
bool us_checkpoint_topic_compacts(const char *policy);

/*
 * Asks for the cleanup.policy of an existing topic (DescribeConfigs), and judges it.
 *
 * @param timeout_ms  bound, > 0; never more than 5 s
 * @return 0: it has compact, then errstr is empty; or nobody tells (no leave by ACL, an old broker, no answer), then
 *   errstr says so. __INVALID_ARG: it hasn't; errstr names key, value and what is allowed. Any thread.
 */
rd_kafka_resp_err_t us_checkpoint_topic_policy(rd_kafka_t *rk, const char *topic, int timeout_ms, char *errstr,
                                               size_t errstr_size);
#endif
