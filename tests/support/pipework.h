/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application's side of a pipeline under test: callbacks that note what they were called for, check what can be
 * checked at once, and do as the test says. Any thread.
 */
#ifndef TESTS_SUPPORT_PIPEWORK_H
#define TESTS_SUPPORT_PIPEWORK_H
#include <pthread.h>
#include <stdbool.h>
#include <support/mockcluster.h>
#include <unsalt/unsalt.h>

struct pipework_record {
    char session[64]; /* "": without a key */
    uint64_t seq, epoch;
    int64_t offset;
    int32_t partition;
    unsalt_state_t state;
    uint32_t attempt;
    char error[128]; /* of a dead letter */
    unsalt_pipeline_failure_t failure;
};
struct pipework_log {
    struct pipework_record *records; /* owned */
    size_t count, capacity;
};

struct pipework {
    /* the test's, set before */
    unsalt_pipeline_res_t (*prepare)(struct pipework *work, const unsalt_pipeline_job_t *job); /* NULL: OK */
    unsalt_pipeline_res_t (*deliver)(struct pipework *work, const unsalt_pipeline_job_t *job); /* NULL: OK */
    unsalt_pipeline_res_t (*bury)(struct pipework *work, const unsalt_pipeline_job_t *job);    /* NULL: OK */
    void *opaque;
    int prepare_us, deliver_us; /* slept in each call */

    /* under the lock */
    pthread_mutex_t lock;
    struct pipework_log prepared, delivered, buried; /* calls that returned OK */
    uint64_t prepares, delivers;                     /* calls */
    uint64_t results, discards;                      /* results made, and ended */
    uint64_t running, running_most;                  /* calls of prepare side by side */
    uint64_t overlaps;  /* deliveries of one session side by side */
    uint64_t foreign;   /* results that belong to another record */
    uint64_t errors;    /* messages given to the error callback */
    uint64_t done;      /* records that pipework_poll() said are done */
    uint64_t gave_up;   /* waits in callbacks that lasted too long, polls that failed */
    struct pipework_busy {
        char session[64];
        int64_t owner; /* partition of a record without a key, else -1 */
        bool busy;
    } busy[256];
};

void pipework_init(struct pipework *work);
void pipework_free(struct pipework *work);
unsalt_pipeline_callbacks_t pipework_callbacks(struct pipework *work);
/* Without phase 1, or without a dead-letter callback: set the member to NULL. */

size_t pipework_delivered(struct pipework *work);
size_t pipework_prepared(struct pipework *work);
uint64_t pipework_prepares(struct pipework *work);
size_t pipework_buried(struct pipework *work);
/* How many calls of prepare that returned OK were for this record. */
unsigned pipework_prepared_times(struct pipework *work, const char *session, uint64_t seq);
/* The order of deliveries of every session ascends from `first` without a hole or a repetition; for sequences. */
bool pipework_in_order(struct pipework *work, uint64_t first);
/* In each session no number is delivered before a lower one that had not been delivered before; for at-least-once. */
bool pipework_never_overtakes(struct pipework *work);
/* Nothing overlapped, no result went astray, every one was ended, and no callback waited in vain. After destroy. */
bool pipework_clean(struct pipework *work);

/* ---- on the mock cluster; what is not so ends the test */

/* A cluster of one broker with topic "t", empty work, and its pipeline, as pipework_open(). */
unsalt_pipeline_t *pipework_start(struct pipework *work, struct mock *mock, struct heard *heard, const char *settings,
                                  int partitions);
/* A pipeline in group "g" that reads these partitions of topic "t" from the beginning; its events go to `heard`. */
unsalt_pipeline_t *pipework_open(const struct mock *mock, const char *settings,
                                 const unsalt_pipeline_callbacks_t *callbacks, struct heard *heard, int partitions);
/* The statistics; each record is inside or has left. */
unsalt_pipeline_stats_t pipework_stats(const unsalt_pipeline_t *p);
/* Numbers first..last of a session, to partition 0 of topic "t". */
void pipework_send(struct mock *mock, const char *session, uint64_t first, uint64_t last);
/* Closes and destroys all three; nothing was lost, and pipework_clean(). */
void pipework_close(struct pipework *work, unsalt_pipeline_t *p, struct mock *mock);

/* ---- waiting */

/* How long all of these wait: shorter than the time limit of a test, so that what was waited for is said. */
enum { PIPEWORK_PATIENCE_MS = 60000 };

/* unsalt_pipeline_poll(); counts what it returns. */
int pipework_poll(struct pipework *work, unsalt_pipeline_t *p, int timeout_ms);
/* Polls until so many were delivered. False: the time is over. */
bool pipework_until(struct pipework *work, unsalt_pipeline_t *p, size_t delivered);
/*
 * Polls, by pipework_poll() as the test always did, until so many records are done: with delivery threads that is a bit
 * later than their delivery, and what a commit now covers. False: the time is over.
 */
bool pipework_until_done(struct pipework *work, unsalt_pipeline_t *p, uint64_t done);
/* Polls until the condition holds, or fails the test (support/check.h). */
#define PIPEWORK_UNTIL(work, p, condition)                                                                            \
    do {                                                                                                              \
        uint64_t until_ = now_ms() + PIPEWORK_PATIENCE_MS;                                                            \
        while (!(condition) && now_ms() < until_) {                                                                   \
            pipework_poll(work, p, 20);                                                                               \
        }                                                                                                             \
        CHECK_THAT((condition), "%s:%d: not in time: %s", __FILE__, __LINE__, #condition);                            \
    } while (0)

/* In a callback: waits until the condition holds. It is called without a lock, again and again. */
void pipework_hold(struct pipework *work, const unsalt_pipeline_job_t *job,
                   bool (*go)(struct pipework *work, const unsalt_pipeline_job_t *job));
/* A `prepare` that waits until two of them have run side by side. */
unsalt_pipeline_res_t pipework_meet(struct pipework *work, const unsalt_pipeline_job_t *job);
#endif
