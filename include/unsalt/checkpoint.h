/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_CHECKPOINT_H
#define UNSALT_CHECKPOINT_H
/**
 * @file checkpoint.h
 * @brief Commits that carry the cursors of sessions beside the offsets, so that nothing that a returned commit covers
 *        is handed out again, after a crash, a move to another member or an abort.
 *
 * A commit covers what was acknowledged (ack=auto: what was handed out before the last call). Of a session whose
 * producer has restarted while the last records of its earlier run are not acknowledged it covers what the commit
 * before did, until they are: after a crash the session goes on in the earlier run, and numbers of the later one that
 * were acknowledged are passed over as gaps. The key `checkpoint` says where cursors are kept:
 *
 *   none      nowhere. After a crash everything above the committed frontier comes again
 *   topic     in a compacted topic; each commit is one transaction of entries and offsets, fenced by the group
 *   callback  wherever the application likes, beside its effects: unsalt_conf_set_checkpoint_cb()
 *
 * An application that produces takes part by unsalt_send_offsets_to_transaction(). What entries look like as bytes:
 * docs/checkpoint-format.md. What each choice guarantees: docs/guarantees.md.
 */
#include <librdkafka/rdkafka.h>
#include <unsalt/conf.h>
#include <unsalt/consumer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- checkpoint=callback */

/** An entry: bytes that mean something to the library only. It replaces an earlier one with the same key. */
typedef struct unsalt_checkpoint_entry {
    int32_t set;       /**< number of the lane set: entries are asked for by this number. 0..partitions-1 */
    const void *key;   /**< at most 4,347 bytes; the same in every run */
    size_t key_len;    /**< in bytes */
    const void *value; /**< the number of bytes grows with what is done out of order; seldom above 64 */
    size_t value_len;  /**< in bytes */
} unsalt_checkpoint_entry_t;

/**
 * Stores what a commit carries: called once for each entry, then once with NULL, which ends the commit. Called on the
 * thread that is in unsalt_commit(), poll (automatic commits, unless enable.auto.commit=false), close, or a revoke.
 * What was stored must become durable together: with the application's own effects in one transaction, if it begins
 * one, calls unsalt_commit() and ends it. If that transaction is rolled back after all: unsalt_rewind().
 * It may call what an event callback may (event.h).
 *
 * Kafka doesn't fence a database: a member that was thrown out and doesn't know it yet may store, too. Let load note
 * who has a set, and store refuse for anybody else, in the same transaction. The group's offsets follow one commit
 * later, for whoever looks at its lag.
 * @param entry borrowed for the call; NULL: the end.
 * @returns 0; anything else: not stored. The commit fails with __APPLICATION, and is made again in whole.
 */
typedef int(unsalt_checkpoint_store_cb)(void *opaque, const unsalt_checkpoint_entry_t *entry);

/** Where unsalt_checkpoint_restore() puts what a load callback gives. Valid during the callback. */
typedef struct unsalt_checkpoint_load unsalt_checkpoint_load_t;

/**
 * Gives back what was stored of a lane set, in any order, by unsalt_checkpoint_restore(). Called on the polling thread
 * when a lane set has come here whole, before the first record of it is read: reading begins where the entries
 * say, and where they say nothing at the committed offsets, as without a checkpoint. It may take its time, but not
 * max.poll.interval.ms. It may call what an event callback may.
 * @param set number of the lane set.
 * @returns 0; anything else: it couldn't be read: it is asked again a second later, and the set waits.
 */
typedef int(unsalt_checkpoint_load_cb)(void *opaque, unsalt_checkpoint_load_t *load, int32_t set);

/**
 * Takes an entry during a load callback. Everything is borrowed for the call.
 * @returns 0; __INVALID_ARG: it can't be read: an event CHECKPOINT_REFUSED was raised, its session starts like an
 *          unknown one; __CRIT_SYS_RESOURCE: out of memory: the callback should return an error.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_checkpoint_restore(unsalt_checkpoint_load_t *load, const void *key,
                                                            size_t key_len, const void *value, size_t value_len);

/** Sets both, for checkpoint=callback; `opaque` is passed to them and is the caller's. */
UNSALT_EXPORT void unsalt_conf_set_checkpoint_cb(unsalt_conf_t *conf, unsalt_checkpoint_load_cb *load,
                                                 unsalt_checkpoint_store_cb *store, void *opaque);

/* ---- the application's own transactions */

/**
 * Brings what a commit would carry into the open transaction of the application's producer: the offsets, and with
 * checkpoint=topic the cursors of sessions, so that outputs, offsets and cursors become visible together (KIP-447: a
 * member of an old generation is refused). With ack=auto everything that was handed out counts as processed. Of lane
 * sets whose cursors are still being read, it carries nothing: nothing of them was handed out.
 *
 * Then rd_kafka_commit_transaction() and unsalt_transaction_committed(); or, if the transaction was aborted,
 * unsalt_rewind(). Called again in the same transaction, it carries what has changed since, too.
 *
 * A transaction may span several polls. If partitions go meanwhile, or are sought or assigned anew, of which something
 * was acknowledged (ack=auto: handed out) and not sent yet, the call makes the transaction one that can't be committed
 * (txn_requires_abort): outputs without their offsets would come twice. So call it after each poll, or end the
 * transaction before the next one, or in the assignment callback at UNSALT_REVOKING (conf.h).
 *
 * With checkpoint=none it carries offsets only. Sessions that are ahead of a held record in their partition are handed
 * out again after a crash then, and their outputs come twice; records without a number are exactly once.
 *
 * @param producer transactional, its transaction begun; it has initialised transactions. With checkpoint=topic it is
 *        flushed, and its delivery reports tell of entries, too, with the checkpoint topic's name and no opaque. If it
 *        takes reports as events, another thread must do so meanwhile.
 * @param timeout_ms bound of the whole, >= 1; but while the group's coordinator is away, librdkafka heeds no time in
 *        rd_kafka_send_offsets_to_transaction() (librdkafka#5511, also 2.0.2), and the call waits until it is back.
 * @returns NULL; or an error like that of rd_kafka_send_offsets_to_transaction(), to be treated like it and destroyed:
 *          fatal, retriable (call again), txn_requires_abort; without a flag: abort, or end. __STATE: closed,
 *          enable.auto.commit isn't false, the consumer's isolation.level isn't read_committed (its default: a new
 *          owner must wait for offsets in open transactions), checkpoint=callback, or the consumer of a pipeline with
 *          delivery threads (pipeline.h); __CONFLICT: another thread is in a call; __INVALID_ARG.
 * Thread of the consumer.
 */
UNSALT_EXPORT rd_kafka_error_t *unsalt_send_offsets_to_transaction(unsalt_t *u, rd_kafka_t *producer, int timeout_ms);

/** The transaction was committed: its cursors are not sent again. @returns 0; __CONFLICT; __STATE: closed, or none. */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_transaction_committed(unsalt_t *u);

/**
 * Goes back to the last commit, offsets and cursors together: everything that came since is read and handed out again.
 * Where the group has no commit yet, that is where reading began: at the assignment, or where unsalt_seek() went last,
 * whatever auto.offset.reset says; what the log has deleted meanwhile is gone. A commit of this consumer that is under
 * way is waited for, since it may become the last one. What the application still holds belongs to nobody any more: its
 * tokens are void, the messages are to be destroyed.
 * Partitions that are about to go are given up at once.
 * @param timeout_ms bound of seeking, and of the wait for a commit that is under way, >= 1. The committed offsets are
 *        asked for, for some seconds at most, before.
 * @returns 0; __CONFLICT, __STATE, __INVALID_ARG; with checkpoint=none also librdkafka's word: partitions whose offset
 *          isn't known now are not read before the call has succeeded. Else they wait, and are asked for again; so they
 *          do while a commit is still under way.
 */
UNSALT_EXPORT rd_kafka_resp_err_t unsalt_rewind(unsalt_t *u, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
