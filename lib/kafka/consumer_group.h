/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a group of several members needs: an assignor that keeps lane sets together, partitions that aren't read as
 * long as their lane set is incomplete here, and a look now and then at how many partitions the topics have. The
 * look blocks in librdkafka, so a thread of its own takes it; the thread that polls hears of the result.
 *
 *   consumer_group_conf.c   which assignor, and what of the application's choice is refused
 *   consumer_group_watch.c  the thread
 *   consumer_group.c        what its answers mean; which partitions wait for their set
 *   consumer_rebalance.c, consumer_fence.c, consumer_hook.c   what comes and goes
 */
#ifndef US_KAFKA_CONSUMER_GROUP_H
#define US_KAFKA_CONSUMER_GROUP_H
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unsalt/conf.h>

struct unsalt;
struct us_before;
struct us_partition;

/* Partitions of a topic when the cluster is still to be asked: no set is as large, so it stays incomplete. */
#define US_LIVE_UNKNOWN UINT32_MAX

/* How many partitions a topic had when it was last heard of. */
struct us_heard_topic {
    const char *topic; /* borrowed from a partition */
    int32_t partitions;
};

struct us_watch {
    pthread_t thread;
    bool made;    /* the lock and the condition */
    bool started; /* if not: it is tried again at ask_at */
    uint64_t every_ns; /* between two looks */
    pthread_mutex_t lock; /* guards what follows, to the empty line */
    pthread_cond_t wake;
    bool stop;
    uint64_t asked, answered;            /* numbers of questions */
    const struct rd_kafka_metadata *seen; /* owned: the newest answer that nobody took yet */
    rd_kafka_resp_err_t err;             /* of the newest question */
    atomic_bool fresh;                   /* an answer or an error is there */

    /* Of the thread that polls. */
    struct us_heard_topic *heard; /* owned */
    uint32_t heard_count;
    bool unknown;        /* some assigned partition has US_LIVE_UNKNOWN */
    uint64_t unknown_at; /* since when; UNSALT_NEVER: it has been told */
    uint64_t ask_at;     /* the answer left it open; 0: nothing is to be asked again */
    uint64_t gated_at;   /* since when partitions wait for their sets; UNSALT_NEVER: none does, or it has been told */
};

/* ---- consumer_group_conf.c */

/*
 * Chooses an assignor that keeps lane sets together unless the application chose one. False with errstr: its choice
 * can't, and colocation=refuse. Changes rk_conf only if true. us_group_conf_restore() puts back what was there.
 */
bool us_group_conf(const struct unsalt *u, rd_kafka_conf_t *rk_conf, struct us_before *before, char *errstr,
                   size_t size);
void us_group_conf_restore(rd_kafka_conf_t *rk_conf, const struct us_before *before);
/* Logs what is risky in the application's choice. After the handle was made. */
void us_group_conf_warn(const struct unsalt *u);

/* ---- consumer_group_watch.c */

bool us_watch_init(struct us_watch *watch);
/* How often to look: as often as librdkafka does, and every 30 s at least. */
uint64_t us_watch_interval(const struct us_before *before);
/* Asks for a look now; starts the thread at the first one. */
void us_watch_ask(struct unsalt *u);
/* Joins the thread: before the handle is destroyed. May be called again, and if it never ran. */
void us_watch_stop(struct unsalt *u);
void us_watch_destroy(struct us_watch *watch);
/* The newest look, to be destroyed by the caller; NULL: none. *newest: nothing was asked since it began. */
const struct rd_kafka_metadata *us_watch_take(struct us_watch *watch, bool *newest);
rd_kafka_resp_err_t us_watch_error(struct us_watch *watch); /* of the newest look */

/* ---- consumer_group.c */

/* Partitions were opened or closed: which ones wait for their lane set is found anew. */
void us_group_changed(struct unsalt *u);
/* The same after an assignment; the cluster is asked how many partitions there are. */
void us_group_opened(struct unsalt *u);
/* How many partitions the topic has, as far as was heard; else the configured number. */
int32_t us_group_partitions(const struct unsalt *u, const char *topic);
bool us_group_incremental(const struct unsalt *u);  /* the group's protocol gives and takes single partitions */
bool us_group_new_protocol(const struct unsalt *u); /* group.protocol=consumer */
/* Once a round: what the cluster said, and what has been incomplete for long. */
void us_group_round(struct unsalt *u, uint64_t now);

/* ---- consumer_rebalance.c */

void us_rebalance_cb(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque);
void us_revoke_continue(struct unsalt *u, uint64_t now); /* finishes a waiting revoke if it may */
void us_revoke_forget(struct unsalt *u);                 /* ends the wait; the caller gives the partitions up */
void us_revoke_lost(struct unsalt *u);                   /* gives up everything, which is lost */
/* A revoke of everything waits: nothing at all is read and handed out. */
bool us_revoke_blocks(const struct unsalt *u);

/* ---- consumer_fence.c */

void us_fence_round(struct unsalt *u, uint64_t now); /* the main queue is about to be served */
void us_fence_settled(struct unsalt *u);             /* partitions were given up: no doubt is left about them */
void us_fence_heard(struct unsalt *u, rd_kafka_resp_err_t err); /* a broker's answer to a commit, of any kind */
void us_fence_refused(struct unsalt *u); /* a transaction was refused: the group may say why by its next answer */
void us_fence_join_anew(struct unsalt *u);           /* an assignment can't be taken: the group is joined anew in 1 s */
void us_fence_forget(struct unsalt *u);              /* nothing is to be joined anew: the application has subscribed */
bool us_fenced(const struct unsalt *u);              /* nothing may be read or handed out */
/* The same for one more message that is ready: librdkafka is asked once in a `tick` of us_clock_coarse(). */
bool us_fenced_since(struct unsalt *u, uint64_t tick);
bool us_assignment_lost(const struct unsalt *u);     /* others may own the partitions: librdkafka's word, or ours */
/*
 * Before a commit of any kind: *metadata is what it is made with, the caller's to destroy; NULL: there is none. In this
 * order: whoever is thrown out in between has the metadata of the old generation. False: others may own the partitions,
 * or the group gave them and librdkafka has forgotten generation or name of this member, so that no broker could tell
 * that the commit is of an old one: none may be made.
 */
bool us_fence_metadata(struct unsalt *u, rd_kafka_consumer_group_metadata_t **metadata);

/* ---- consumer_hook.c */

/*
 * The partitions of the list that are assigned, that the group gave, and that are revoking or not. NULL list: of all.
 * NULL: none, or nobody wants to know. The caller's.
 */
rd_kafka_topic_partition_list_t *us_hook_list(const struct unsalt *u, const rd_kafka_topic_partition_list_t *list,
                                              bool revoking);
/* Calls the application's assignment callback; not without partitions. Takes the list, NULL is allowed. */
void us_hook_call(struct unsalt *u, unsalt_assignment_t what, rd_kafka_topic_partition_list_t *list);
/* Any thread: whether it is in the assignment callback of this consumer. */
bool us_hook_inside(const struct unsalt *u);
#endif
