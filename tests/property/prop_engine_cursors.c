/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One owner after the other reads the same logs, each from what the last kept checkpoint says: cursors, positions, and
 * what is done beyond them. The oracle is a bit for each number:
 *
 *   acknowledged before a kept checkpoint   it never comes out again;
 *   any other                               exactly once in the last owner's time, at most once in another's;
 *   within an owner's time                  in ascending order; only what was lost is given up, nothing is late.
 *
 * And whether cursors are kept, and how records are cut into batches, makes no difference to what comes out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/drive.h>
#include <support/failmem.h>
#include <support/prng.h>

#define MS UINT64_C(1000000)

enum { PARTS = 4, SESSIONS = 4, NUMBERS = 60, LOG = 2 * SESSIONS * NUMBERS, BATCH = 12, RANGES = 512 };
enum { HANDED = LOG * PARTS };

struct rec {
    unsalt_core_in_t in;
    unsigned session;
    char id[2];
};

struct number {
    bool lost, settled, acked; /* settled: a kept checkpoint covers it */
    unsigned released_in;      /* the last owner that released it; 0 = none */
};

struct saved {
    bool there;
    unsalt_core_cursor_t cursor;
    unsalt_core_range_t done[RANGES], skipped[RANGES];
};

struct world {
    struct prng prng;
    struct failmem mem;
    unsalt_core_params_t params;
    unsigned parts, sessions, loss, copies, case_number;
    bool salted, una, single;
    struct rec logs[PARTS][LOG];
    unsigned log_n[PARTS];
    struct number numbers[SESSIONS][NUMBERS];
    /* the checkpoint */
    struct saved saved[SESSIONS];
    int64_t positions[PARTS];
    unsalt_core_range_t done[PARTS][RANGES];
    size_t done_n[PARTS];
    /* the owner */
    unsalt_core_t *core;
    uint64_t now;
    unsigned owner, next[PARTS];
    uint64_t last[SESSIONS];
    unsalt_core_out_t handed[HANDED];
    unsigned handed_n, restarts, commits;
    uint64_t heard[SESSIONS], heard_all[SESSIONS]; /* hashes: of what was released, of what came out */
};

/* ---- logs */

static void append(struct world *w, unsigned part, const struct rec *rec) {
    unsigned n = w->log_n[part]++;
    CHECK(n < LOG);
    w->logs[part][n] = *rec;
    w->logs[part][n].in.part = part;
    w->logs[part][n].in.offset = n ? w->logs[part][n - 1].in.offset + 1 + (prng_chance(&w->prng, 10) ? 2 : 0) : 0;
}

static void produce(struct world *w, unsigned session, uint64_t seq) {
    struct prng *prng = &w->prng;
    struct rec rec = {.session = session, .id = {'s', (char)('0' + session)}};
    unsigned part = (unsigned)(w->salted ? seq % w->parts : prng_below(prng, w->parts));
    if ((w->numbers[session][seq - 1].lost = seq < NUMBERS && prng_chance(prng, w->loss)))
        return;
    rec.in = (unsalt_core_in_t){
        .seq = seq, .session_len = 2, .since = UNSALT_NO_SEQ, .una = UNSALT_NO_SEQ, .bytes = 10};
    rec.in.epoch = w->copies > 0; /* where copies come behind a restart, only epochs tell them from a new run */
    rec.in.timestamp = (int64_t)(seq * 10);
    if (w->salted) {
        rec.in.lanes = (uint16_t)w->parts;
        rec.in.lane = (uint16_t)part;
        rec.in.since = 1;
    }
    if (w->una)
        rec.in.una = seq;
    append(w, part, &rec);
    if (prng_chance(prng, w->copies))
        append(w, part, &rec);
}

static void write_logs(struct world *w) {
    unsigned next[SESSIONS] = {0}, left = w->sessions;
    while (left) {
        unsigned session = (unsigned)prng_below(&w->prng, w->sessions);
        if (next[session] == NUMBERS)
            continue;
        for (uint64_t n = prng_between(&w->prng, 1, 6); n && next[session] < NUMBERS; n--)
            produce(w, session, ++next[session]);
        left -= next[session] == NUMBERS;
    }
}

/* ---- what comes out */

#define HERE(w) (w)->case_number, prng_seed()
#define WHERE " (case %u, UNSALT_SEED=%" PRIu64 ")"

static void hear(struct world *w, unsigned session, uint64_t what, uint64_t seq) {
    w->heard_all[session] = (w->heard_all[session] * 31 + what) * 1000003 + seq;
    if (what == UNSALT_STATE_RELEASED)
        w->heard[session] = w->heard[session] * 1000003 + seq;
}

static void took(struct world *w, const unsalt_core_out_t *out) {
    const struct rec *rec = out->msg;
    uint64_t seq = rec->in.seq;
    struct number *number = &w->numbers[rec->session][seq - 1];
    hear(w, rec->session, out->state, seq);
    if (!unsalt_state_handed_out((unsalt_state_t)out->state))
        return;
    CHECK_THAT(out->state == UNSALT_STATE_RELEASED, "s%u:%" PRIu64 " comes out as %s" WHERE, rec->session, seq,
               unsalt_state_name((unsalt_state_t)out->state), HERE(w));
    CHECK_THAT(!number->settled, "s%u:%" PRIu64 " was acknowledged and kept, and comes again" WHERE, rec->session, seq,
               HERE(w));
    CHECK_THAT(number->released_in != w->owner, "s%u:%" PRIu64 " comes twice" WHERE, rec->session, seq, HERE(w));
    CHECK_THAT(seq > w->last[rec->session], "s%u:%" PRIu64 " comes after %" PRIu64 WHERE, rec->session, seq,
               w->last[rec->session], HERE(w));
    number->released_in = w->owner;
    w->last[rec->session] = seq;
    CHECK(w->handed_n < HANDED);
    w->handed[w->handed_n++] = *out;
}

static void said(struct world *w, const unsalt_core_event_t *event) {
    if (event->type != UNSALT_CORE_EV_GAP && event->type != UNSALT_CORE_EV_START)
        return;
    unsigned session = (unsigned)(((const char *)event->session)[1] - '0');
    bool gap = event->type == UNSALT_CORE_EV_GAP;
    uint64_t first = gap ? event->first : 1, last = gap ? event->last : event->first - 1;
    hear(w, session, 100 + event->type, first * 1000 + last);
    for (uint64_t seq = first; seq <= last && seq <= NUMBERS; seq++) {
        const struct number *number = &w->numbers[session][seq - 1];
        CHECK_THAT(number->lost || (!gap && number->settled),
                   "s%u:%" PRIu64 " is passed over by %s, and is there" WHERE, session, seq,
                   unsalt_core_event_name(event->type), HERE(w));
    }
}

static void take_all(struct world *w) {
    unsalt_core_event_t events[32];
    unsalt_core_out_t out[32];
    size_t n;
    do {
        while ((n = unsalt_core_events(w->core, events, 32)) > 0)
            for (size_t i = 0; i < n; i++)
                said(w, &events[i]);
        n = unsalt_core_pull(w->core, w->now, out, 32);
        for (size_t i = 0; i < n; i++)
            took(w, &out[i]);
    } while (n > 0);
}

static void expire(struct world *w) {
    take_all(w);
    for (int i = 0; i < 1000 && unsalt_core_deadline(w->core) <= w->now; i++) {
        unsalt_core_expire(w->core, w->now);
        take_all(w);
    }
    CHECK_THAT(unsalt_core_deadline(w->core) > w->now, "no rest" WHERE, HERE(w));
    CHECK(unsalt_core_conserved(w->core));
}

/* ---- owners */

static void own(struct world *w) {
    char errstr[128] = "";
    w->owner++;
    w->handed_n = 0;
    w->core = unsalt_core_new(&w->params, errstr, sizeof(errstr));
    CHECK_THAT(w->core, "%s", errstr);
    unsalt_core_reading(w->core, true, w->now);
    for (unsigned p = 0; p < w->parts; p++) {
        const unsalt_core_partition_t partition = {
            .set_size = w->parts, .lane = w->salted ? (int32_t)p : -1, .start_offset = w->positions[p]};
        CHECK_I64(unsalt_core_assign(w->core, &partition), p);
        CHECK_I64(unsalt_core_done_before(w->core, p, w->done[p], w->done_n[p]), UNSALT_CORE_OK);
        for (w->next[p] = 0; w->next[p] < w->log_n[p] && w->logs[p][w->next[p]].in.offset < w->positions[p];)
            w->next[p]++;
    }
    for (unsigned s = 0; s < w->sessions; s++) {
        w->last[s] = 0;
        for (unsigned i = 0; i < NUMBERS; i++)
            w->numbers[s][i].acked = false;
        if (w->saved[s].there)
            CHECK_I64(unsalt_core_restore(w->core, &w->saved[s].cursor, w->now), UNSALT_CORE_OK);
    }
}

static void save(struct world *w, const unsalt_core_cursor_t *cursor) {
    struct saved *saved = &w->saved[((const char *)cursor->session)[1] - '0'];
    static const char ids[SESSIONS][2] = {"s0", "s1", "s2", "s3"};
    CHECK(cursor->done_count <= RANGES && cursor->skipped_count <= RANGES);
    saved->there = true;
    saved->cursor = *cursor;
    saved->cursor.session = ids[saved - w->saved];
    for (uint32_t i = 0; i < cursor->done_count; i++)
        saved->done[i] = cursor->done[i];
    for (uint32_t i = 0; i < cursor->skipped_count; i++)
        saved->skipped[i] = cursor->skipped[i];
    saved->cursor.done = saved->done;
    saved->cursor.skipped = saved->skipped;
}

/* stored: the checkpoint has it. The owner hears of that, or doesn't. */
static void commit(struct world *w, bool stored, bool heard) {
    unsalt_core_cursor_t cursor;
    if (!w->params.cursors)
        return;
    CHECK_I64(unsalt_core_cursors_begin(w->core), UNSALT_CORE_OK);
    while (unsalt_core_cursors_next(w->core, &cursor) == 1)
        if (stored)
            save(w, &cursor);
    for (unsigned p = 0; p < w->parts && stored; p++) {
        w->positions[p] = unsalt_core_position(w->core, p);
        w->done_n[p] = unsalt_core_done(w->core, p, 0, w->done[p], RANGES);
        CHECK(w->done_n[p] < RANGES);
    }
    unsalt_core_cursors_end(w->core, stored && heard);
    w->commits += stored;
    for (unsigned i = 0; i < SESSIONS * NUMBERS && stored; i++)
        w->numbers[i / NUMBERS][i % NUMBERS].settled |= w->numbers[i / NUMBERS][i % NUMBERS].acked;
}

static void ack(struct world *w, unsigned share) {
    for (unsigned i = w->handed_n; i-- > 0;) {
        const unsalt_core_out_t out = w->handed[i];
        const struct rec *rec = out.msg;
        if (!prng_chance(&w->prng, share))
            continue;
        w->handed[i] = w->handed[--w->handed_n];
        CHECK_I64(unsalt_core_ack(w->core, out.part, out.generation, out.ticket), UNSALT_CORE_OK);
        w->numbers[rec->session][rec->in.seq - 1].acked = true;
    }
}

static void read_some(struct world *w, unsigned part, unsigned n) {
    unsalt_core_in_t in[BATCH];
    unsalt_core_out_t out[BATCH];
    size_t n_out;
    int status;
    unsigned used = 0, most = w->single ? 1 : n;
    for (unsigned done = 0; done < n && w->next[part] < w->log_n[part]; done += used) {
        for (used = 0; used < most && done + used < n && w->next[part] + used < w->log_n[part]; used++) {
            struct rec *rec = &w->logs[part][w->next[part] + used];
            in[used] = rec->in;
            in[used].session = rec->id;
            in[used].msg = rec;
        }
        CHECK_U64(unsalt_core_push(w->core, in, used, w->now, out, &n_out, &status), used);
        w->next[part] += used;
        for (size_t i = 0; i < n_out; i++)
            took(w, &out[i]);
        take_all(w);
    }
    if (w->next[part] == w->log_n[part])
        unsalt_core_horizon(w->core, part, w->now, w->now); /* all there is was read */
}

static void step(struct world *w, unsigned restarts) {
    struct prng *prng = &w->prng;
    unsigned part = (unsigned)prng_below(prng, w->parts), n = (unsigned)prng_between(prng, 1, BATCH);
    uint64_t what = prng_below(prng, 100), more = prng_next(prng);
    if (what < 60)
        read_some(w, part, n);
    else if (what < 80)
        ack(w, (unsigned)(more % 90));
    else if (what < 90)
        commit(w, more % 4 > 0, more / 4 % 4 > 0);
    else if (what < 95)
        w->now += more % (400 * MS);
    else if (more % 100 < restarts) {
        unsalt_core_destroy(w->core);
        w->restarts++;
        own(w);
    }
    expire(w);
}

static void finish(struct world *w) {
    for (int round = 0; round < 40; round++) {
        for (unsigned p = 0; p < w->parts; p++)
            while (w->next[p] < w->log_n[p])
                read_some(w, p, BATCH);
        for (unsigned p = 0; p < w->parts; p++)
            unsalt_core_horizon(w->core, p, w->now, w->now);
        expire(w);
        ack(w, 100);
        w->now += 600 * MS;
    }
    for (unsigned i = 0; i < w->sessions * NUMBERS; i++) {
        const struct number *number = &w->numbers[i / NUMBERS][i % NUMBERS];
        CHECK_THAT(number->lost || number->settled || number->released_in == w->owner,
                   "s%u:%u never came out" WHERE, i / NUMBERS, i % NUMBERS + 1, HERE(w));
    }
    commit(w, true, true);
    for (unsigned p = 0; p < w->parts && w->params.cursors; p++)
        CHECK_U64(w->done_n[p], 0);
    unsalt_core_destroy(w->core);
    CHECK(failmem_is_balanced(&w->mem));
}

static void draw(struct world *w, uint64_t stream) {
    memset(w, 0, sizeof(*w));
    w->prng = prng_start(stream);
    failmem_init(&w->mem);
    w->now = 1000 * MS;
    w->case_number = (unsigned)stream;
    w->parts = (unsigned)prng_between(&w->prng, 1, PARTS);
    w->sessions = (unsigned)prng_between(&w->prng, 1, SESSIONS);
    w->loss = prng_chance(&w->prng, 50) ? 0 : 5;
    w->copies = prng_chance(&w->prng, 50) ? 0 : 15;
    w->salted = prng_chance(&w->prng, 70);
    w->una = prng_chance(&w->prng, 50);
    unsalt_core_params_init(&w->params);
    w->params.mem = w->mem.mem;
    w->params.cursors = true;
    w->params.skips_max = 100;
    w->params.release_max = (uint32_t)prng_between(&w->prng, 1, 20);
    w->params.session_ttl_ns = prng_chance(&w->prng, 20) ? 500 * MS : UNSALT_NEVER;
    write_logs(w);
}

static void play(struct world *w, unsigned restarts) {
    own(w);
    for (unsigned i = 0; i < 120; i++)
        step(w, restarts);
    finish(w);
}

TEST(engine_cursors, nothing_comes_again_and_nothing_is_missing) {
    static struct world w;
    unsigned restarts = 0, commits = 0, lost = 0;
    for (unsigned i = drive_cases(400); i > 0; i--) {
        draw(&w, i);
        play(&w, 60);
        restarts += w.restarts;
        commits += w.commits;
        lost += w.loss;
    }
    CHECK_THAT(restarts > 0 && commits > restarts && lost > 0, "%u restarts, %u commits", restarts, commits);
}

/* One without cursors, one that pushes record by record, both with the same draws. */
TEST(engine_cursors, keeping_them_changes_nothing_that_comes_out) {
    static struct world with, without, single;
    for (unsigned i = drive_cases(150); i > 0; i--) {
        draw(&with, 1000000 + i);
        with.params.session_ttl_ns = UNSALT_NEVER; /* sessions stay longer if cursors are kept */
        memcpy(&without, &with, sizeof(with));
        memcpy(&single, &with, sizeof(with));
        failmem_init(&without.mem);
        failmem_init(&single.mem);
        without.params.mem = without.mem.mem;
        single.params.mem = single.mem.mem;
        without.params.cursors = false;
        single.single = true;
        play(&with, 0);
        play(&without, 0);
        play(&single, 0);
        /* Each session for itself: those whose gaps fall due in the same nanosecond come in no promised order. */
        for (unsigned s = 0; s < SESSIONS; s++) {
            CHECK_THAT(with.heard_all[s] == without.heard_all[s], "cursors make a difference to s%u" WHERE, s,
                       HERE(&with));
            CHECK_THAT(with.heard[s] == single.heard[s], "batches make a difference to s%u" WHERE, s, HERE(&with));
        }
    }
}
