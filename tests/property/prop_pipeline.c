/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decisions of the pipeline against a naive model: a table of records, each with the state that the rules give it,
 * compared after each step, together with the invariants of core/pipeline.h.
 */
#include <core/pipeline.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

enum { SLOTS = 64, SESSIONS = 5, SETS = 2, LANES = 2, RUNS = 8, STEPS = 6000 };
enum { BASE = 100, MOST = 1000, LIMIT = 300 };

/* What the model knows of a record. */
struct record {
    struct us_pipe_job job; /* the pipe's */
    struct us_pipe_job *at; /* NULL: free */
    enum us_pipe_state state;
    int session;
    uint32_t part, generation;
    uint64_t order;  /* when its turn came; 0: it has not */
    uint32_t tries[US_PIPE_PHASES];
    uint64_t failed, began; /* when it was put off; when its call began */
    uint64_t puts;   /* how often in a row it was put off */
    uint32_t runs[RUNS], run_count; /* of phase 1 that are under way */
    uint32_t run;    /* the one that counts */
    enum us_pipe_phase phase;
    bool gone, told, over, bury, orphan;
    enum us_pipe_outcome outcome;
};

struct world {
    struct us_pipe pipe;
    struct failmem mem;
    struct prng prng;
    struct record records[SLOTS];
    uint64_t now, order, seq[SESSIONS];
    uint32_t generation[SETS * LANES]; /* of partitions: set s has those from s * LANES on */
    bool stopping[SESSIONS];
    uint64_t outcomes[US_PIPE_OUTCOMES];
};

static enum us_pipe_policy policy_of(const struct world *w, const struct record *r) {
    return r->bury ? US_PIPE_DEAD_LETTER : w->pipe.params.policy[r->phase];
}

static struct record *first_of(struct world *w, int session) {
    struct record *first = NULL;
    for (int i = 0; i < SLOTS; i++) {
        struct record *r = &w->records[i];
        if (r->at && !r->gone && r->order && r->session == session && (!first || r->order < first->order))
            first = r;
    }
    return first;
}

static void leave(struct world *w, struct record *r, enum us_pipe_outcome outcome) {
    r->gone = true;
    r->outcome = outcome;
    w->outcomes[outcome]++;
}

/* The record and everything behind it. */
static void cut(struct world *w, struct record *from) {
    w->stopping[from->session] = true;
    for (int i = 0; i < SLOTS; i++) {
        struct record *r = &w->records[i];
        if (r->at && !r->gone && r->order >= from->order && r->order && r->session == from->session && r != from)
            leave(w, r, US_PIPE_CANCELLED);
    }
    leave(w, from, US_PIPE_CANCELLED);
}

/* What policies do to those that are first. */
static void settle(struct world *w) {
    for (int s = 0; s < SESSIONS; s++) {
        struct record *r = first_of(w, s);
        while (r && r->state == US_PIPE_FAILED && policy_of(w, r) == US_PIPE_SKIP) {
            leave(w, r, US_PIPE_SKIPPED);
            r = first_of(w, s);
        }
        if (r && r->state == US_PIPE_FAILED && policy_of(w, r) == US_PIPE_HALT)
            r->state = US_PIPE_HALTED;
    }
}

static void check(struct world *w) {
    settle(w);
    CHECK(us_pipe_conserved(&w->pipe));
    uint64_t inside = 0;
    for (int i = 0; i < SLOTS; i++) {
        const struct record *r = &w->records[i];
        if (!r->at)
            continue;
        inside += !r->gone;
        CHECK_U64(r->job.left, r->gone);
        CHECK_U64(r->job.strays, r->run_count - (!r->gone && r->state == US_PIPE_RUNNING));
        if (r->gone)
            CHECK_U64(r->job.outcome, r->outcome);
        else
            CHECK_U64(r->job.state, r->state);
    }
    CHECK_U64(inside, w->pipe.waits.records + w->pipe.turned.records + w->pipe.halted.records);
    for (int i = 0; i < US_PIPE_OUTCOMES; i++)
        CHECK_U64(w->pipe.counters.outcome[i], w->outcomes[i]);
}

/* ---- steps */

static struct record *record_of(struct world *w, const struct us_pipe_job *job) {
    for (int i = 0; job && i < SLOTS; i++)
        if (w->records[i].at == job)
            return &w->records[i];
    CHECK(!job);
    return NULL;
}

/* One that fits, drawn evenly; NULL: none. */
static struct record *draw(struct world *w, bool (*fits)(const struct record *)) {
    struct record *found[SLOTS];
    size_t n = 0;
    for (int i = 0; i < SLOTS; i++)
        if (w->records[i].at && fits(&w->records[i]))
            found[n++] = &w->records[i];
    return n ? found[prng_below(&w->prng, n)] : NULL;
}

static void arrive(struct world *w) {
    int session = (int)prng_below(&w->prng, SESSIONS);
    uint32_t bytes = (uint32_t)prng_below(&w->prng, 30);
    struct record *free = NULL;
    for (int i = 0; i < SLOTS && !free; i++)
        free = w->records[i].at ? NULL : &w->records[i];
    char name[8];
    snprintf(name, sizeof name, "s%d", session);
    if (!free || w->stopping[session] || !us_pipe_room_early(&w->pipe, bytes))
        return;
    CHECK(us_pipe_reserve(&w->pipe, 1));
    uint32_t set = (uint32_t)session % SETS, part = set * LANES + (uint32_t)prng_below(&w->prng, LANES);
    struct us_pipe_record what = {.space = set, .set = set, .id = name, .id_len = (uint32_t)strlen(name),
                                  .bytes = bytes, .seq = ++w->seq[session], .part = part,
                                  .generation = w->generation[part]};
    *free = (struct record){.session = session, .part = part, .generation = what.generation, .state = US_PIPE_QUEUED};
    free->at = &free->job;
    us_pipe_enter(&w->pipe, &free->job, &what, w->now);
    CHECK(w->pipe.waits.records <= w->pipe.params.records / 2 && w->pipe.waits.bytes <= w->pipe.params.bytes / 2);
    CHECK(w->pipe.waits.records + w->pipe.turned.records <= w->pipe.params.records);
}

static bool is_early(const struct record *r) {
    return !r->gone && !r->order;
}

static void turn(struct world *w) {
    struct record *r = draw(w, is_early);
    uint64_t bytes;
    bool full;
    if (!r || w->stopping[r->session] || us_pipe_room(&w->pipe, &bytes, &full) == 0)
        return;
    r->order = ++w->order;
    us_pipe_turn(&w->pipe, &r->job, w->now);
}

static bool stands(struct world *w, int session) {
    const struct record *first = first_of(w, session);
    return first && first->state == US_PIPE_HALTED;
}

static void start(struct world *w) {
    struct us_pipe_job *job = us_pipe_next_prepare(&w->pipe, w->now);
    struct record *r = record_of(w, job);
    bool urgent = false, any = false;
    for (int i = 0; i < SLOTS; i++) {
        const struct record *other = &w->records[i];
        bool waits = other->at && !other->gone && other->state == US_PIPE_QUEUED && !stands(w, other->session) &&
                     !w->stopping[other->session];
        any |= waits;
        urgent |= waits && other->order;
    }
    CHECK_U64(job != NULL, any);
    if (!r)
        return;
    CHECK(r->state == US_PIPE_QUEUED && !r->gone && !stands(w, r->session) && !w->stopping[r->session]);
    CHECK(r->order || !urgent);
    CHECK(r->run_count < RUNS);
    r->state = US_PIPE_RUNNING;
    r->tries[US_PIPE_PREPARE]++;
    r->began = w->now;
    r->run = job->run;
    for (uint32_t i = 0; i < r->run_count; i++)
        CHECK(r->runs[i] != r->run);
    r->runs[r->run_count++] = r->run;
}

/* Failed once more. */
static void fail(struct world *w, struct record *r, enum us_pipe_phase phase, enum us_pipe_res res) {
    bool again = res != US_PIPE_FAIL && r->tries[phase] <= w->pipe.params.retries[phase];
    r->failed = w->now;
    r->puts = r->tries[phase];
    if (again && !w->stopping[r->session]) {
        r->state = phase == US_PIPE_PREPARE ? US_PIPE_RETRYING : US_PIPE_REDELIVERING;
        return;
    }
    r->state = US_PIPE_FAILED;
    r->phase = phase;
    if (w->stopping[r->session] && r->order)
        cut(w, r);
}

static enum us_pipe_res some_res(struct world *w) {
    uint64_t x = prng_below(&w->prng, 10);
    return x < 7 ? US_PIPE_OK : x < 9 ? US_PIPE_RETRY : US_PIPE_FAIL;
}

static bool is_run(const struct record *r) {
    return r->run_count > 0;
}

static void end_run(struct world *w) {
    struct record *r = draw(w, is_run);
    if (!r)
        return;
    uint32_t i = (uint32_t)prng_below(&w->prng, r->run_count), run = r->runs[i];
    enum us_pipe_res res = some_res(w);
    bool wanted = !r->gone && r->state == US_PIPE_RUNNING && run == r->run;
    r->runs[i] = r->runs[--r->run_count];
    CHECK_U64(us_pipe_wanted(&r->job, run), wanted);
    CHECK_U64(us_pipe_prepared(&w->pipe, &r->job, run, res, w->now), wanted);
    if (wanted && res == US_PIPE_OK)
        r->state = US_PIPE_PREPARED;
    else if (wanted)
        fail(w, r, US_PIPE_PREPARE, res);
}

static void step(struct world *w) {
    bool any = false;
    for (int s = 0; s < SESSIONS; s++) {
        const struct record *first = first_of(w, s);
        any |= first && (first->state == US_PIPE_PREPARED || first->state == US_PIPE_FAILED);
    }
    struct us_pipe_job *job = us_pipe_next_step(&w->pipe, w->now);
    struct record *r = record_of(w, job);
    CHECK_U64(job != NULL, any);
    if (!r)
        return;
    CHECK(first_of(w, r->session) == r);
    if (r->state == US_PIPE_PREPARED) {
        r->state = US_PIPE_DELIVERING;
        r->tries[US_PIPE_DELIVER]++;
    } else {
        CHECK(r->state == US_PIPE_FAILED && policy_of(w, r) == US_PIPE_DEAD_LETTER);
        r->state = US_PIPE_BURYING;
        r->puts++;
    }
}

static bool acts(const struct record *r) {
    return !r->gone && (r->state == US_PIPE_DELIVERING || r->state == US_PIPE_BURYING);
}

static void end_step(struct world *w) {
    struct record *r = draw(w, acts);
    enum us_pipe_res res = some_res(w);
    if (!r)
        return;
    bool buries = r->state == US_PIPE_BURYING;
    if (r->over) {
        leave(w, r, US_PIPE_CANCELLED);
    } else if (res == US_PIPE_OK) {
        leave(w, r, buries ? US_PIPE_BURIED : US_PIPE_DELIVERED);
    } else if (!buries) {
        fail(w, r, US_PIPE_DELIVER, res);
    } else if (w->stopping[r->session]) {
        cut(w, r);
    } else {
        r->state = US_PIPE_REBURYING;
        r->failed = w->now;
    }
    if (buries)
        us_pipe_buried(&w->pipe, &r->job, res == US_PIPE_OK, w->now);
    else
        us_pipe_delivered(&w->pipe, &r->job, res, w->now);
}

/* A delay is between the half and the whole of its bound, so the model takes the pipe's word within that. */
static bool is_due(const struct world *w, const struct record *r, uint64_t puts) {
    uint64_t whole = BASE;
    for (uint64_t i = 1; i < puts && whole < MOST; i++)
        whole = 2 * whole < MOST ? 2 * whole : MOST;
    uint64_t waited = w->now - r->failed;
    bool gone = r->job.timer.index == US_HEAP_OUT;
    CHECK(gone ? waited >= whole / 2 : waited <= whole);
    return gone;
}

static void expire_one(struct world *w, struct record *r) {
    if (r->state == US_PIPE_RUNNING && w->now - r->began >= LIMIT) {
        fail(w, r, US_PIPE_PREPARE, US_PIPE_LATE);
        if (!r->gone && r->state == US_PIPE_RETRYING)
            is_due(w, r, r->puts); /* put off from now on */
    } else if (r->state == US_PIPE_RETRYING && is_due(w, r, r->puts)) {
        r->state = US_PIPE_QUEUED;
    } else if (r->state == US_PIPE_REDELIVERING && is_due(w, r, r->puts)) {
        r->state = US_PIPE_PREPARED;
    } else if (r->state == US_PIPE_REBURYING && is_due(w, r, r->job.burials)) {
        r->state = US_PIPE_FAILED;
    }
}

static void pass(struct world *w) {
    w->now += prng_below(&w->prng, prng_chance(&w->prng, 20) ? 400 : 40);
    us_pipe_expire(&w->pipe, w->now);
    for (int i = 0; i < SLOTS; i++)
        if (w->records[i].at && !w->records[i].gone)
            expire_one(w, &w->records[i]);
    CHECK(us_pipe_deadline(&w->pipe) > w->now);
}

static void resolve(struct world *w) {
    int session = (int)prng_below(&w->prng, SESSIONS);
    enum us_pipe_action action = (enum us_pipe_action)prng_below(&w->prng, 3);
    struct record *r = first_of(w, session);
    char name[8];
    snprintf(name, sizeof name, "s%d", session);
    bool halted = r && r->state == US_PIPE_HALTED;
    CHECK_U64(us_pipe_resolve(&w->pipe, (uint64_t)(session % SETS), name, (uint32_t)strlen(name), action, w->now),
              halted);
    if (!halted)
        return;
    if (action == US_PIPE_SKIP_IT) {
        leave(w, r, US_PIPE_SKIPPED);
    } else if (action == US_PIPE_BURY_IT) {
        r->state = US_PIPE_FAILED;
        r->bury = true;
        r->puts = 0;
    } else {
        r->tries[r->phase] = 0;
        r->state = r->phase == US_PIPE_PREPARE ? US_PIPE_QUEUED : US_PIPE_PREPARED;
    }
}

static void give_up(struct world *w, struct record *r) {
    us_pipe_cancel(&w->pipe, &r->job);
    leave(w, r, US_PIPE_CANCELLED);
}

static void give_up_early(struct world *w) {
    struct record *r = draw(w, is_early);
    if (r)
        give_up(w, r);
}

/* ---- a lane set goes: stopped, and some time later its generations are over; or a partition of it alone */

static bool is_of(const struct world *w, const struct record *r, uint32_t part) {
    return r->at && !r->gone && !r->orphan && r->part == part && r->generation == w->generation[part];
}

static bool has_records(const struct world *w, int session) {
    bool has = false;
    for (int i = 0; i < SLOTS; i++)
        has |= w->records[i].session == session && is_of(w, &w->records[i], w->records[i].part);
    return has;
}

static void stop_session(struct world *w, int session) {
    struct record *lowest = NULL; /* that isn't worked on, and isn't ready */
    w->stopping[session] = true;
    for (int i = 0; i < SLOTS; i++) {
        struct record *r = &w->records[i];
        if (!r->at || r->gone || r->session != session)
            continue;
        if (is_early(r) && r->state == US_PIPE_RETRYING)
            r->state = US_PIPE_QUEUED;
        if (r->order && !acts(r) && r->state != US_PIPE_PREPARED && r->state != US_PIPE_RUNNING &&
            (!lowest || r->order < lowest->order))
            lowest = r;
    }
    if (lowest)
        cut(w, lowest);
}

static void stop(struct world *w, uint32_t set) {
    for (uint32_t part = set * LANES; part < (set + 1) * LANES; part++)
        us_pipe_stop(&w->pipe, part, w->generation[part]);
    for (int s = (int)set; s < SESSIONS; s += SETS)
        if (!w->stopping[s] && has_records(w, s))
            stop_session(w, s);
}

static void end_generations(struct world *w, uint32_t set) {
    for (uint32_t part = set * LANES; part < (set + 1) * LANES; part++)
        us_pipe_leave(&w->pipe, part, w->generation[part]++, set, true);
    for (int i = 0; i < SLOTS; i++) {
        struct record *r = &w->records[i];
        if (!r->at || r->gone || (uint32_t)r->session % SETS != set)
            continue;
        if (!r->order)
            give_up(w, r);
        else if (acts(r))
            r->over = true;
        else
            leave(w, r, US_PIPE_CANCELLED);
    }
    for (int s = (int)set; s < SESSIONS; s += SETS)
        w->stopping[s] = false;
}

/* What was released stays to be delivered. */
static void end_one_generation(struct world *w, uint32_t part) {
    us_pipe_leave(&w->pipe, part, w->generation[part], part / LANES, false);
    for (int i = 0; i < SLOTS; i++) {
        struct record *r = &w->records[i];
        if (is_of(w, r, part) && !r->order)
            give_up(w, r);
        else if (is_of(w, r, part))
            r->orphan = true;
    }
    w->generation[part]++;
}

static void rebalance(struct world *w) {
    uint32_t set = (uint32_t)prng_below(&w->prng, SETS);
    bool stopped = false;
    for (int s = (int)set; s < SESSIONS; s += SETS)
        stopped |= w->stopping[s];
    if (stopped || prng_chance(&w->prng, 20))
        end_generations(w, set);
    else if (prng_chance(&w->prng, 50))
        end_one_generation(w, set * LANES + (uint32_t)prng_below(&w->prng, LANES));
    else
        stop(w, set);
}

/* ---- the end of records */

static void collect(struct world *w) {
    struct us_pipe_job *job;
    enum us_pipe_notice what;
    while ((job = us_pipe_take_notice(&w->pipe, &what)))
        CHECK(!job->left && what != US_PIPE_TELL_NOTHING);
    while ((job = us_pipe_take_done(&w->pipe))) {
        struct record *r = record_of(w, job);
        CHECK(r->gone && !r->told);
        r->told = true;
    }
    for (int i = 0; i < SLOTS; i++) {
        struct record *r = &w->records[i];
        CHECK(!r->at || r->told == r->gone);
        if (r->at && r->told && r->run_count == 0) {
            us_pipe_forget(&w->pipe, &r->job);
            r->at = NULL;
        }
    }
}

static void one(struct world *w) {
    uint64_t x = prng_below(&w->prng, 1000);
    if (x < 180)
        arrive(w);
    else if (x < 330)
        turn(w);
    else if (x < 500)
        start(w);
    else if (x < 650)
        end_run(w);
    else if (x < 760)
        step(w);
    else if (x < 870)
        end_step(w);
    else if (x < 950)
        pass(w);
    else if (x < 985)
        resolve(w);
    else if (x < 990)
        give_up_early(w);
    else if (x < 994)
        rebalance(w);
    else
        collect(w);
}

static void play(uint64_t stream) {
    static struct world w;
    memset(&w, 0, sizeof w);
    w.prng = prng_start(stream);
    failmem_init(&w.mem);
    struct us_pipe_params params = {
        .mem = w.mem.mem, .seed = prng_next(&w.prng), .id_max = 16, .prepares = true,
        .records = prng_between(&w.prng, 2, 40), .bytes = prng_between(&w.prng, 60, 600),
        .halted_records = prng_between(&w.prng, 1, 30), .halted_bytes = prng_between(&w.prng, 20, 1000),
        .limit_ns = {LIMIT, LIMIT},
        .retries = {(uint32_t)prng_below(&w.prng, 3), (uint32_t)prng_below(&w.prng, 3)},
        .policy = {(enum us_pipe_policy)prng_below(&w.prng, 3), (enum us_pipe_policy)prng_below(&w.prng, 3)},
        .backoff_ns = BASE, .backoff_max_ns = MOST,
    };
    for (int i = 0; i < SETS * LANES; i++)
        w.generation[i] = 1;
    CHECK(us_pipe_init(&w.pipe, &params));
    for (int i = 0; i < STEPS; i++) {
        one(&w);
        check(&w);
    }
    /* Everything goes: nothing is left behind. */
    for (uint32_t set = 0; set < SETS; set++)
        end_generations(&w, set);
    for (int i = 0; i < SLOTS * RUNS; i++) {
        end_run(&w);
        end_step(&w);
        check(&w);
        collect(&w);
    }
    CHECK_U64(w.pipe.counters.sessions, 0);
    CHECK_U64(w.pipe.counters.strays, 0);
    CHECK(us_links_empty(&w.pipe.all));
    us_pipe_destroy(&w.pipe);
    CHECK(failmem_is_balanced(&w.mem));
}

TEST(pipeline, behaves_as_the_model) {
    for (uint64_t stream = 0; stream < 60; stream++)
        play(stream);
}
