/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/copy_out.h>
#include <base/mem.h>
#include <kafka/chance.h>
#include <kafka/pipeline.h>
#include <string.h>

/* The core knows the same lists; it may not include what includes librdkafka. */
_Static_assert((int)UNSALT_PIPELINE_IN__CNT == (int)US_PIPE_STATES, "states");
_Static_assert((int)UNSALT_PIPELINE_IN_QUEUED == (int)US_PIPE_QUEUED, "queued");
_Static_assert((int)UNSALT_PIPELINE_IN_PREPARED == (int)US_PIPE_PREPARED, "prepared");
_Static_assert((int)UNSALT_PIPELINE_IN_HALTED == (int)US_PIPE_HALTED, "halted");
_Static_assert((int)UNSALT_PIPELINE_IN_REBURYING == (int)US_PIPE_REBURYING, "reburying");
_Static_assert((int)UNSALT_PIPELINE_WAS__CNT == (int)US_PIPE_OUTCOMES, "outcomes");
_Static_assert((int)UNSALT_PIPELINE_WAS_CANCELLED == (int)US_PIPE_CANCELLED, "cancelled");
_Static_assert((int)UNSALT_PIPELINE_PHASE__CNT == (int)US_PIPE_PHASES, "phases");
_Static_assert((int)UNSALT_PIPELINE_BY_RESOLVED == (int)US_PIPE_RESOLVED, "reasons");
_Static_assert((int)UNSALT_PIPELINE_DEAD_LETTER == (int)US_PIPE_BURY_IT, "actions");

/* ---- making */

static uint64_t limit(int64_t ms) {
    return ms == INT64_MAX ? UNSALT_NEVER : (uint64_t)ms * US_MS;
}

static bool init_pipe(struct unsalt_pipeline *pl, const struct unsalt_conf *conf) {
    struct us_pipe_params params = {
        .mem = us_mem_default,
        .seed = us_chance(),
        .id_max = (uint32_t)conf->session_id_max,
        .prepares = pl->callbacks.prepare,
        .records = (uint64_t)conf->pipeline_records,
        .bytes = (uint64_t)conf->pipeline_bytes,
        .halted_records = (uint64_t)conf->pipeline_halted_records,
        .halted_bytes = (uint64_t)conf->pipeline_halted_bytes,
        .limit_ns = {limit(conf->pipeline_prepare_timeout_ms), limit(conf->pipeline_deliver_timeout_ms)},
        .retries = {(uint32_t)conf->pipeline_prepare_retries, (uint32_t)conf->pipeline_deliver_retries},
        .policy = {(enum us_pipe_policy)conf->pipeline_prepare_failure,
                   (enum us_pipe_policy)conf->pipeline_deliver_failure},
        .backoff_ns = (uint64_t)conf->pipeline_backoff_ms * US_MS,
        .backoff_max_ns = (uint64_t)conf->pipeline_backoff_max_ms * US_MS,
    };
    uint64_t most = params.records / 8 + 1;
    pl->done_wakes = most < 64 ? (uint32_t)most : 64;
    pl->in = us_calloc(&us_mem_default, US_PIPELINE_CHUNK, sizeof(*pl->in));
    pl->ids = us_alloc(&us_mem_default, US_PIPELINE_CHUNK * (size_t)params.id_max);
    return us_pipe_init(&pl->pipe, &params) && pl->in && pl->ids;
}

static bool check(const struct unsalt_conf *conf, const unsalt_pipeline_callbacks_t *callbacks, char *errstr,
                  size_t size) {
    if (!callbacks->deliver) {
        snprintf(errstr, size, "a pipeline needs a callback: deliver");
        return false;
    }
    const char *key = conf->pipeline_prepare_failure == US_PIPE_DEAD_LETTER   ? "pipeline.prepare.failure"
                      : conf->pipeline_deliver_failure == US_PIPE_DEAD_LETTER ? "pipeline.deliver.failure"
                                                                              : NULL;
    if (key && !callbacks->dead_letter && !*conf->pipeline_dead_letter_topic) {
        snprintf(errstr, size, "%s=dead-letter needs pipeline.dead.letter.topic or a dead_letter callback", key);
        return false;
    }
    if (conf->pipeline_prepare_timeout_ms == 0) {
        snprintf(errstr, size, "pipeline.prepare.timeout.ms=0 leaves no time: every call would fail; off: no limit");
        return false;
    }
    if (conf->pipeline_backoff_max_ms < conf->pipeline_backoff_ms) {
        snprintf(errstr, size, "pipeline.retry.backoff.max.ms=%lld is below pipeline.retry.backoff.ms=%lld",
                 (long long)conf->pipeline_backoff_max_ms, (long long)conf->pipeline_backoff_ms);
        return false;
    }
    return true;
}

/* Tolerates what was never made. */
static void destroy(struct unsalt_pipeline *pl) {
    us_dead_stop(pl);
    us_done_settle(pl);
    us_jobs_free(pl);
    us_early_free(&pl->early);
    us_pipe_destroy(&pl->pipe);
    us_free(&us_mem_default, pl->in);
    us_free(&us_mem_default, pl->ids);
    us_free(&us_mem_default, pl->group_text);
    pthread_mutex_destroy(&pl->dead_lock);
    pthread_cond_destroy(&pl->work);
    pthread_cond_destroy(&pl->deliver);
    us_clock_wait_destroy(&pl->lock, &pl->quiet);
    us_free(&us_mem_default, pl);
}

static struct unsalt_pipeline *make(const struct unsalt_conf *conf, const unsalt_pipeline_callbacks_t *callbacks,
                                    char *errstr, size_t size) {
    struct unsalt_pipeline *pl = us_calloc(&us_mem_default, 1, sizeof(*pl));
    if (!pl || !us_clock_wait_init(&pl->lock, &pl->quiet)) {
        us_free(&us_mem_default, pl);
        snprintf(errstr, size, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&pl->dead_lock, NULL);
    pthread_cond_init(&pl->work, NULL);
    pthread_cond_init(&pl->deliver, NULL);
    pl->callbacks = *callbacks;
    pl->workers = callbacks->prepare ? (uint32_t)conf->pipeline_workers : 0;
    pl->delivery_threads = (uint32_t)conf->pipeline_delivery_threads;
    pl->wakes_at = UNSALT_NEVER;
    if (!init_pipe(pl, conf)) {
        snprintf(errstr, size, "out of memory");
        destroy(pl);
        return NULL;
    }
    return pl;
}

/* Everything that can fail is made before the consumer, which takes rk_conf: nothing can fail behind it. */
static struct unsalt_pipeline *open_all(rd_kafka_conf_t *rk_conf, struct unsalt_conf *conf,
                                        const unsalt_pipeline_callbacks_t *callbacks, char *errstr, size_t size) {
    if (!check(conf, callbacks, errstr, size)) {
        return NULL;
    }
    struct unsalt_pipeline *pl = make(conf, callbacks, errstr, size);
    if (!pl) {
        return NULL;
    }
    conf->ack = US_ACK_MANUAL;
    if (us_dead_init(pl, rk_conf, conf, errstr, size) && us_threads_start(pl, errstr, size)) {
        pl->u = unsalt_new(rk_conf, conf, errstr, size);
        if (pl->u) {
            pl->u->pipeline = pl;
            pl->u->ring.pipeline = pl;
            us_dead_watch(pl);
            return pl;
        }
        us_threads_stop(pl);
    }
    destroy(pl);
    return NULL;
}

unsalt_pipeline_t *unsalt_pipeline_new(rd_kafka_conf_t *rk_conf, unsalt_conf_t *conf,
                                       const unsalt_pipeline_callbacks_t *callbacks, char *errstr,
                                       size_t errstr_size) {
    char nowhere[1];
    unsalt_pipeline_callbacks_t mine = {0};
    if (!errstr || errstr_size == 0) {
        errstr = nowhere;
        errstr_size = sizeof(nowhere);
    }
    if (!rk_conf || !callbacks || callbacks->size == 0) {
        snprintf(errstr, errstr_size, "no rd_kafka_conf_t, or no callbacks with their size, were given");
        return NULL;
    }
    memcpy(&mine, callbacks, callbacks->size < sizeof(mine) ? callbacks->size : sizeof(mine));
    struct unsalt_conf *own = conf ? unsalt_conf_dup(conf) : unsalt_conf_new();
    if (!own) {
        snprintf(errstr, errstr_size, "out of memory");
        return NULL;
    }
    struct unsalt_pipeline *pl = open_all(rk_conf, own, &mine, errstr, errstr_size);
    unsalt_conf_destroy(pl ? conf : own);
    return pl;
}

unsalt_t *unsalt_pipeline_consumer(const unsalt_pipeline_t *p) {
    return p->u;
}

/* ---- ending */

/* Callbacks that run, of generations that are over. What goes to the dead-letter topic is no callback. */
static bool is_quiet(const struct unsalt_pipeline *pl) {
    const struct us_pipe_counters *counters = &pl->pipe.counters;
    uint64_t buries = pl->callbacks.dead_letter ? counters->state[US_PIPE_BURYING] : 0;
    return counters->strays == 0 && counters->state[US_PIPE_DELIVERING] == 0 && buries == 0;
}

static void wait_for_quiet(struct unsalt_pipeline *pl) {
    uint64_t until = us_clock_now() + (uint64_t)pl->u->conf->revoke_timeout_ms * US_MS;
    pthread_mutex_lock(&pl->lock);
    while (!is_quiet(pl) && us_clock_wait(&pl->quiet, &pl->lock, until)) {
    }
    pthread_mutex_unlock(&pl->lock);
}

rd_kafka_resp_err_t unsalt_pipeline_close(unsalt_pipeline_t *p) {
    struct unsalt *u = p->u;
    bool free = false;
    if (us_pipeline_inside(p) || !atomic_compare_exchange_strong(&u->busy, &free, true)) {
        us_set_last_error(RD_KAFKA_RESP_ERR__CONFLICT);
        return RD_KAFKA_RESP_ERR__CONFLICT;
    }
    bool first = !u->closed;
    rd_kafka_resp_err_t err = us_close(u);
    if (first) {
        wait_for_quiet(p);
        us_done_settle(p);
        us_done_notices(p);
        us_stats_refresh(u);
    }
    us_leave(u);
    return err;
}

void unsalt_pipeline_destroy(unsalt_pipeline_t *p) {
    if (!p) {
        return;
    }
    struct unsalt *u = p->u;
    unsalt_pipeline_close(p);
    us_threads_stop(p);
    us_done_settle(p);
    us_dead_stop(p);
    us_done_settle(p);
    u->pipeline = NULL;
    u->ring.pipeline = NULL;
    unsalt_destroy(u);
    p->u = NULL;
    destroy(p);
}

/* ---- names */

#define NAMES(list)                                                                                                   \
    static const char *const names[] = {list(NAME)};                                                                  \
    return (unsigned)value < sizeof(names) / sizeof(*names) ? names[value] : "?"
#define NAME(C, name, text) #name,

const char *unsalt_pipeline_phase_name(unsalt_pipeline_phase_t value) {
    NAMES(UNSALT_PIPELINE_PHASES);
}

const char *unsalt_pipeline_reason_name(unsalt_pipeline_reason_t value) {
    NAMES(UNSALT_PIPELINE_REASONS);
}

const char *unsalt_pipeline_state_name(unsalt_pipeline_state_t value) {
    NAMES(UNSALT_PIPELINE_STATES);
}

const char *unsalt_pipeline_outcome_name(unsalt_pipeline_outcome_t value) {
    NAMES(UNSALT_PIPELINE_OUTCOMES);
}
