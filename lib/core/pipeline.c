/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash.h>
#include <base/mem.h>
#include <base/waits.h>
#include <core/pipeline.h>
#include <string.h>

bool us_pipe_init(struct us_pipe *pipe, const struct us_pipe_params *params) {
    memset(pipe, 0, sizeof(*pipe));
    pipe->params = *params;
    pipe->random = params->seed;
    us_links_init(&pipe->all);
    us_links_init(&pipe->urgent);
    us_links_init(&pipe->early);
    us_links_init(&pipe->running);
    us_links_init(&pipe->delivering);
    us_links_init(&pipe->ready);
    us_links_init(&pipe->standing);
    us_links_init(&pipe->done);
    us_links_init(&pipe->notices);
    return us_pipe_reserve(pipe, 1);
}

void us_pipe_destroy(struct us_pipe *pipe) {
    while (pipe->pool) {
        struct us_pipe_session *session = pipe->pool;
        pipe->pool = session->chain;
        us_free(&pipe->params.mem, session);
    }
    us_free(&pipe->params.mem, pipe->buckets);
    us_heap_destroy(&pipe->timers, &pipe->params.mem);
}

static uint64_t inside(const struct us_pipe *pipe) {
    return pipe->waits.records + pipe->turned.records + pipe->halted.records;
}

bool us_pipe_reserve(struct us_pipe *pipe, uint32_t more) {
    uint64_t timers = inside(pipe) + more - pipe->timers.count; /* each record may wait for a retry */
    return timers <= UINT32_MAX && us_heap_reserve(&pipe->timers, &pipe->params.mem, (uint32_t)timers) &&
           us_pipe_sessions_reserve(pipe, more);
}

void us_pipe_count(struct us_pipe_times *times, uint64_t ns) {
    times->count[us_wait_bucket(ns)]++;
    times->sum_ns += ns;
}

/* ---- room */

bool us_pipe_fits_early(const struct us_pipe *pipe, uint64_t bytes) {
    return bytes <= pipe->params.bytes / 2 && pipe->params.records >= 2;
}

bool us_pipe_room_early(const struct us_pipe *pipe, uint64_t bytes) {
    uint64_t most = pipe->params.bytes;
    return pipe->waits.records < pipe->params.records / 2 &&
           pipe->waits.records + pipe->turned.records < pipe->params.records && bytes <= most / 2 &&
           pipe->waits.bytes <= most / 2 - bytes && pipe->waits.bytes + pipe->turned.bytes < most;
}

uint64_t us_pipe_room(const struct us_pipe *pipe, uint64_t *bytes, bool *full_halted) {
    uint64_t records = pipe->waits.records + pipe->turned.records, used = pipe->waits.bytes + pipe->turned.bytes;
    *full_halted = pipe->halted.records >= pipe->params.halted_records ||
                   pipe->halted.bytes >= pipe->params.halted_bytes;
    *bytes = used < pipe->params.bytes ? pipe->params.bytes - used : 0;
    return *full_halted || *bytes == 0 || records >= pipe->params.records ? 0 : pipe->params.records - records;
}

static void load(struct us_pipe_load *load, const struct us_pipe_job *job) {
    load->records++;
    load->bytes += job->bytes;
}

static void unload(struct us_pipe_load *load, const struct us_pipe_job *job) {
    load->records--;
    load->bytes -= job->bytes;
}

static struct us_pipe_load *load_of(struct us_pipe *pipe, const struct us_pipe_job *job) {
    if (!job->turned) {
        return &pipe->waits;
    }
    return job->session->stand == US_PIPE_STANDS ? &pipe->halted : &pipe->turned;
}

/* ---- states */

void us_pipe_set_state(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_state state) {
    pipe->counters.state[job->state]--;
    job->state = (uint8_t)state;
    pipe->counters.state[state]++;
}

/* Nothing refers to it any more but lists of its session. What is untold goes with it. */
static void let_go(struct us_pipe *pipe, struct us_pipe_job *job) {
    if (job->state == US_PIPE_QUEUED && !job->parked) {
        us_pipe_unqueue(pipe, job);
    }
    us_links_remove(&job->queue);
    us_pipe_tell_not(job, US_PIPE_TELL_HALTED);
    us_links_remove(&job->notice);
    if (job->timer.index != US_HEAP_OUT) {
        us_heap_remove(&pipe->timers, &job->timer);
    }
}

void us_pipe_put_off(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_state state, uint32_t failures,
                     uint64_t now) {
    uint64_t random = us_mix(pipe->random += US_MIX_STEP);
    uint64_t delay = us_pipe_backoff(pipe->params.backoff_ns, pipe->params.backoff_max_ns, failures, random);
    us_pipe_set_state(pipe, job, state);
    us_heap_push(&pipe->timers, now + delay, &job->timer);
}

void us_pipe_tell(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_notice what) {
    job->untold |= (uint8_t)(1u << what);
    if (!us_link_in(&job->notice)) {
        us_links_add(&pipe->notices, &job->notice);
    }
}

void us_pipe_tell_not(struct us_pipe_job *job, enum us_pipe_notice what) {
    job->untold &= (uint8_t)~(1u << what);
    if (job->untold == 0) {
        us_links_remove(&job->notice);
    }
}

enum us_pipe_notice us_pipe_take_untold(struct us_pipe_job *job) {
    for (enum us_pipe_notice what = US_PIPE_TELL_SLOW; what <= US_PIPE_TELL_HALTED; what++) {
        if (job->untold & 1u << what) {
            us_pipe_tell_not(job, what);
            return what;
        }
    }
    return US_PIPE_TELL_NOTHING;
}

void us_pipe_tell_slow(struct us_pipe *pipe, struct us_pipe_job *job) {
    us_links_remove(&job->queue);
    job->slow = true;
    pipe->counters.timeouts[US_PIPE_DELIVER]++;
    us_pipe_tell(pipe, job, US_PIPE_TELL_SLOW);
}

struct us_pipe_job *us_pipe_take_notice(struct us_pipe *pipe, enum us_pipe_notice *what) {
    struct us_link *link = us_links_first(&pipe->notices);
    if (!link) {
        return NULL;
    }
    struct us_pipe_job *job = US_LINKED(link, struct us_pipe_job, notice);
    *what = us_pipe_take_untold(job);
    return job;
}

/* ---- coming in */

void us_pipe_enter(struct us_pipe *pipe, struct us_pipe_job *job, const struct us_pipe_record *record, uint64_t now) {
    memset(job, 0, sizeof(*job));
    job->session = us_pipe_session_get(pipe, record->space, record->id, record->id_len);
    if (us_links_empty(&job->session->turn) && us_links_empty(&job->session->early)) {
        job->session->stopping = false; /* what stopped has gone, but for runs that nobody waits for */
    }
    job->seq = record->seq;
    job->epoch = record->epoch;
    job->set = record->set;
    job->bytes = record->bytes;
    job->part = record->part;
    job->generation = record->generation;
    job->timer.index = US_HEAP_OUT;
    load(&pipe->waits, job);
    us_links_add(&pipe->all, &job->all);
    us_links_add(&job->session->early, &job->of);
    pipe->counters.entered++;
    pipe->counters.state[US_PIPE_QUEUED]++;
    if (pipe->params.prepares) {
        us_pipe_queue(pipe, job, now);
    } else {
        us_pipe_set_state(pipe, job, US_PIPE_PREPARED);
        job->turn_at = now;
    }
}

void us_pipe_turn(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now) {
    struct us_pipe_session *session = job->session;
    pipe->now = now;
    unload(&pipe->waits, job);
    us_links_remove(&job->of);
    us_links_add(&session->turn, &job->of);
    job->turned = true;
    load(load_of(pipe, job), job);
    session->records++;
    session->bytes += job->bytes;
    bool higher = session->cursor == UNSALT_NO_SEQ || session->epoch != job->epoch || session->cursor <= job->seq;
    if (job->seq != UNSALT_NO_SEQ && !job->behind && higher) {
        session->cursor = job->seq + 1;
        session->epoch = job->epoch;
    }
    if (job->state == US_PIPE_QUEUED && !job->parked) {
        us_links_remove(&job->queue);
        us_links_add(&pipe->urgent, &job->queue);
    }
    if (us_pipe_first(session) == job) {
        us_pipe_settle(pipe, session);
    }
}

/* ---- going out */

void us_pipe_finish(struct us_pipe *pipe, struct us_pipe_job *job, enum us_pipe_outcome outcome) {
    struct us_pipe_session *session = job->session;
    unload(load_of(pipe, job), job);
    if (job->turned) {
        session->records--;
        session->bytes -= job->bytes;
    }
    us_links_remove(&job->of);
    let_go(pipe, job);
    if (job->state == US_PIPE_RUNNING) {
        job->strays++;
        pipe->counters.strays++;
    }
    if (job->state == US_PIPE_HALTED) {
        us_pipe_halt_end(pipe, session);
    }
    pipe->counters.state[job->state]--;
    pipe->counters.outcome[outcome]++;
    job->outcome = (uint8_t)outcome;
    job->left = true;
    us_links_add(&pipe->done, &job->queue);
    pipe->done_count++;
}

struct us_pipe_job *us_pipe_take_done(struct us_pipe *pipe) {
    struct us_link *link = us_links_first(&pipe->done);
    if (!link) {
        return NULL;
    }
    us_links_remove(link);
    pipe->done_count--;
    return US_LINKED(link, struct us_pipe_job, queue);
}

void us_pipe_forget(struct us_pipe *pipe, struct us_pipe_job *job) {
    us_links_remove(&job->all);
    us_pipe_session_drop(pipe, job->session);
}

/* ---- time */

static uint64_t due(const struct us_links *list, uint64_t limit) {
    const struct us_link *link = us_links_first(list);
    uint64_t since = link ? US_LINKED(link, struct us_pipe_job, queue)->since : UNSALT_NEVER;
    return link && limit < UNSALT_NEVER - since ? since + limit : UNSALT_NEVER;
}

uint64_t us_pipe_deadline(const struct us_pipe *pipe) {
    uint64_t prepare = due(&pipe->running, pipe->params.limit_ns[US_PIPE_PREPARE]);
    uint64_t deliver = due(&pipe->delivering, pipe->params.limit_ns[US_PIPE_DELIVER]);
    uint64_t timer = us_heap_key(&pipe->timers);
    uint64_t first = prepare < deliver ? prepare : deliver;
    return timer < first ? timer : first;
}

bool us_pipe_is_overdue(const struct us_pipe *pipe, const struct us_pipe_job *job, uint64_t now) {
    if (job->left || (job->state != US_PIPE_RUNNING && job->state != US_PIPE_DELIVERING)) {
        return false;
    }
    uint64_t limit = pipe->params.limit_ns[job->state == US_PIPE_RUNNING ? US_PIPE_PREPARE : US_PIPE_DELIVER];
    return limit != UNSALT_NEVER && now >= job->since && now - job->since >= limit;
}

/* The run goes on, but nobody waits for it. */
static void abandon(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now) {
    job->strays++;
    pipe->counters.strays++;
    us_pipe_failed_late(pipe, job, now);
}

static void again(struct us_pipe *pipe, struct us_pipe_job *job, uint64_t now) {
    us_heap_remove(&pipe->timers, &job->timer);
    if (job->state == US_PIPE_RETRYING) {
        us_pipe_queue(pipe, job, now);
        return;
    }
    us_pipe_set_state(pipe, job, job->state == US_PIPE_REDELIVERING ? US_PIPE_PREPARED : US_PIPE_FAILED);
    us_pipe_settle(pipe, job->session);
}

void us_pipe_expire(struct us_pipe *pipe, uint64_t now) {
    pipe->now = now;
    while (due(&pipe->running, pipe->params.limit_ns[US_PIPE_PREPARE]) <= now) {
        abandon(pipe, US_LINKED(us_links_first(&pipe->running), struct us_pipe_job, queue), now);
    }
    while (due(&pipe->delivering, pipe->params.limit_ns[US_PIPE_DELIVER]) <= now) {
        us_pipe_tell_slow(pipe, US_LINKED(us_links_first(&pipe->delivering), struct us_pipe_job, queue));
    }
    while (us_heap_key(&pipe->timers) <= now && !us_heap_empty(&pipe->timers)) {
        again(pipe, US_LINKED(us_heap_top(&pipe->timers), struct us_pipe_job, timer), now);
    }
}
