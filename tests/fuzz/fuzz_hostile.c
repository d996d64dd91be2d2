/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core under records and calls that keep no rule: numbers near, far and at the ends of their range, lanes that
 * change at every record, `since` and `una` that lie, markers that overlap and contradict, epochs that flap, equal
 * numbers with other payloads, ids that are too long, offsets that go back, clocks that jump, budgets of a few records,
 * memory that runs out; partitions that come and go meanwhile, and every call in any order, with arguments out of range
 * too. What must hold whatever happens stands in <support/ledger.h>.
 */
#include <fuzz/fuzz.h>
#include <support/carry.h>
#include <support/ledger.h>

enum { SESSIONS = 6, PARTS = 5, SETS = 2, PAD_MAX = 40 };

struct bytes {
    const uint8_t *at;
    size_t left;
};

struct play {
    struct ledger ledger;
    struct bytes bytes;
    uint64_t top[SESSIONS], epoch[SESSIONS];
    unsigned assigned;
    bool lazy, pressed; /* pressed: memory runs out now and then */
};

static unsigned byte(struct bytes *b) {
    if (!b->left)
        return 0;
    b->left--;
    return *b->at++;
}

static unsigned below(struct bytes *b, unsigned limit) {
    return byte(b) % limit;
}

static uint64_t wide(struct bytes *b) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | byte(b);
    return value;
}

static uint64_t pick(struct bytes *b, const uint64_t *values, unsigned n) {
    return values[byte(b) % n];
}
#define PICK(b, ...)                                                                                                  \
    pick(b, (const uint64_t[]){__VA_ARGS__}, (unsigned)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

/* ---- parameters */

static void set_params(struct bytes *b, unsalt_core_params_t *p) {
    const uint64_t ms = 1000000;
    p->seq_first = PICK(b, 1, 0, 5, UINT64_C(1) << 63, UINT64_MAX - 30);
    p->start = (unsalt_start_t)below(b, 3);
    p->late = (unsalt_late_t)below(b, 3);
    p->lanes = (uint16_t)PICK(b, 0, 1, 3, 7, 65535);
    p->gap_clock = (unsalt_gap_clock_t)below(b, 2);
    p->gap_proof = (unsalt_gap_proof_t)below(b, 3);
    p->gap_timeout_ns = PICK(b, 100 * ms, 0, 1, UNSALT_NEVER, UNSALT_NEVER - 1);
    p->gap_stall_max_ns = PICK(b, 300 * ms, 0, UNSALT_NEVER, 1);
    p->gap_wait_max_ns = PICK(b, UNSALT_NEVER, 1000 * ms, UNSALT_NEVER - 1);
    p->question_min_ns = PICK(b, 0, 10 * ms);
    p->budget_records = PICK(b, 1000, 1, 2, 7, 30);
    p->budget_bytes = PICK(b, UINT64_C(1) << 30, 1, 100, 2000);
    p->session_budget_records = PICK(b, 1000, 1, 3, 10);
    p->session_budget_bytes = PICK(b, UINT64_C(1) << 30, 1, 600);
    p->budget_policy = (unsalt_budget_policy_t)below(b, 4);
    p->budget_window = PICK(b, 1 << 24, 1, 3, 64);
    p->block_max_ns = PICK(b, 50 * ms, 0, UNSALT_NEVER);
    p->release_max = (uint32_t)PICK(b, 1024, 1, 3);
    p->session_ttl_ns = PICK(b, UNSALT_NEVER, 200 * ms, 1, 0);
    p->sessions_max = (uint32_t)PICK(b, 100, 1, 2);
    p->remembered_max = (uint32_t)PICK(b, 100, 0, 1, 2);
    p->skips_max = (uint32_t)PICK(b, 32, 1, 2, 3);
    p->session_id_max = (uint32_t)PICK(b, 256, 1, 2, 4096);
    p->restart_k = (uint32_t)PICK(b, 5, 2, 3);
    p->restart_quiet_ns = PICK(b, 100 * ms, 1, 0);
}

/* ---- records */

static uint64_t number(struct play *play, unsigned session) {
    struct bytes *b = &play->bytes;
    uint64_t *top = &play->top[session];
    unsigned how = byte(b);
    if (how < 128) /* near */
        return *top + (how % 16) - 4;
    if (how < 200) { /* the next one, and on from there */
        *top += how % 4;
        return *top;
    }
    if (how < 216)
        return play->ledger.params.seq_first + how % 16;
    if (how < 232)
        return UINT64_MAX - how % 16;
    if (how < 240)
        return *top = *top + (UINT64_C(1) << (8 * (how % 8)));
    if (how < 248)
        return (UINT64_C(1) << 63) + how % 8 - 4;
    return wide(b);
}

/* A number that a field of the record may hold: about its own, or nonsense. */
static uint64_t beside(struct bytes *b, uint64_t seq) {
    unsigned how = byte(b);
    if (how < 100)
        return UNSALT_NO_SEQ;
    if (how < 180)
        return seq - how % 16;
    if (how < 240)
        return seq + how % 16;
    return PICK(b, 0, 1, UINT64_C(1) << 63, UINT64_MAX - 1);
}

static uint64_t epoch_of(struct play *play, unsigned session) {
    unsigned how = byte(&play->bytes);
    uint64_t *epoch = &play->epoch[session];
    if (how < 160)
        return *epoch;
    if (how < 200)
        return *epoch += how % 3;
    if (how < 250)
        return *epoch - how % 4;
    return PICK(&play->bytes, UINT64_MAX, UINT64_C(1) << 63, 0);
}

static void lanes_of(struct play *play, unsalt_core_in_t *in) {
    struct bytes *b = &play->bytes;
    unsigned how = byte(b);
    in->lanes = (uint16_t)PICK(b, 0, 0, 1, 2, 3, 4, 64, 65, 65535);
    in->since = beside(b, in->seq);
    if (!in->lanes)
        return;
    in->lane = (uint16_t)(how < 200 ? in->seq % in->lanes : how % in->lanes);
    if (how % 2)
        in->since = 0;
}

static int64_t offset_of(struct play *play, uint32_t part) {
    const struct ledger_part *p = &play->ledger.parts[part];
    unsigned how = byte(&play->bytes);
    int64_t next = p->next < 0 ? 0 : p->next;
    if (how < 220)
        return next;
    if (how < 240)
        return next + (int64_t)how % 16;
    if (how < 246)
        return p->last >= 0 ? p->last - (p->last > 3 ? how % 4 : 0) : next;
    return next < INT64_MAX / 2 ? next + (INT64_C(1) << (how % 8 * 7)) : next;
}

/* One record, into a batch; its partition isn't assigned, perhaps. */
static void record(struct play *play, uint32_t *session, unsalt_core_in_t *in, char *id) {
    struct bytes *b = &play->bytes;
    unsigned who = byte(b);
    *session = who % SESSIONS + (who >= 250 ? SESSIONS : 0); /* the upper ones have long ids */
    *in = (unsalt_core_in_t){.part = who / SESSIONS % PARTS, .session = id, .una = UNSALT_NO_SEQ, .timestamp = -1};
    in->session_len = ledger_id(*session, *session < SESSIONS ? 0 : PAD_MAX, id);
    in->seq = number(play, *session % SESSIONS);
    in->epoch = epoch_of(play, *session % SESSIONS);
    lanes_of(play, in);
    in->offset = offset_of(play, in->part);
    in->bytes = (uint32_t)PICK(b, 1, 0, 30, 600, UINT32_MAX);
    unsigned how = byte(b);
    if (how & 1)
        in->una = beside(b, in->seq);
    if (how & 2)
        in->timestamp = (int64_t)(how & 4 ? wide(b) >> 1 : play->ledger.now / 1000000 - how % 32);
    if (how >= 250)
        in->flags = (uint16_t)byte(b);
    else if (how >= 238)
        in->flags = how % 2 ? UNSALT_F_FIRST : UNSALT_F_LAST;
    else if (how >= 236)
        in->flags = UNSALT_IN_FULL;
    else if (how >= 200) {
        in->kind = UNSALT_KIND_CONTROL;
        in->flags = UNSALT_F_MARKER;
        in->since = how % 3 ? in->seq - byte(b) % 16 : beside(b, in->seq);
    } else if (how >= 196)
        in->kind = UNSALT_KIND_UNSEQUENCED;
    else if (how >= 192)
        in->kind = UNSALT_KIND_CONTROL;
}

/* Some records in one batch; offsets go on within it. */
static void push(struct play *play, unsigned n) {
    static char ids[LEDGER_BATCH][64];
    unsalt_core_in_t in[LEDGER_BATCH];
    uint32_t sessions[LEDGER_BATCH];
    struct ledger *l = &play->ledger;
    int64_t next[PARTS] = {0};
    size_t used = 0;
    int status;
    for (unsigned i = 0; i < n && play->bytes.left; i++) {
        record(play, &sessions[used], &in[used], ids[used]);
        unsalt_core_in_t *r = &in[used];
        if (!l->parts[r->part].assigned)
            continue;
        r->offset += next[r->part];
        if (r->offset >= INT64_MAX - 1)
            continue;
        next[r->part] += 1;
        used++;
    }
    if (play->pressed && byte(&play->bytes) % 4 == 0)
        failmem_arm(&l->mem, 1 + byte(&play->bytes) % 8, false);
    for (size_t i = 0; l->trace && i < used; i++)
        fprintf(stderr, "p%u s%u %" PRIu64 " lane %u/%u since %" PRIu64 " una %" PRIu64 " flags %x time %" PRId64 "\n",
                in[i].part, sessions[i], in[i].seq, in[i].lane, in[i].lanes, in[i].since, in[i].una, in[i].flags,
                in[i].timestamp);
    size_t took = ledger_push(l, sessions, in, used, NULL, &status);
    bool excused = status == UNSALT_CORE_BLOCKED || (status == UNSALT_CORE_NOMEM && l->mem.failed) ||
                   status == UNSALT_CORE_FULL;
    failmem_arm(&l->mem, 0, false);
    if (took < used && !excused)
        ledger_fail(l, "push took %zu of %zu and says %d", took, used, status);
    bool window = l->params.budget_window < 1 << 24; /* it blocks whatever the policy is */
    if (status == UNSALT_CORE_BLOCKED && l->params.budget_policy != UNSALT_BUDGET_BLOCK && !window)
        ledger_fail(l, "blocked under another policy than block");
    if (status == UNSALT_CORE_FULL && l->params.budget_policy != UNSALT_BUDGET_FAIL)
        ledger_fail(l, "full under another policy than fail");
}

/* What is out of range must be refused, and change nothing. */
static void push_nonsense(struct play *play) {
    struct ledger *l = &play->ledger;
    unsalt_core_in_t in = {.session = "s0", .session_len = 2, .seq = 1, .una = UNSALT_NO_SEQ, .bytes = 1};
    unsalt_core_out_t out;
    size_t n_out = 7;
    int status = 7;
    switch (below(&play->bytes, 5)) {
    case 0: in.part = UINT32_MAX; break;
    case 1: in.offset = -1; break;
    case 2: in.offset = INT64_MAX; break;
    case 3: in.kind = UNSALT_KIND_MALFORMED + 1; break;
    default: in.lanes = in.lane = 2; break;
    }
    size_t took = unsalt_core_push(l->core, &in, 1, l->now, &out, &n_out, &status);
    bool full = status == UNSALT_CORE_PULL; /* of events: nothing is looked at then */
    if (took || n_out || (status != UNSALT_CORE_INVAL && !full))
        ledger_fail(l, "nonsense: took %zu, gave %zu, status %d", took, n_out, status);
    ledger_check(l, false);
}

/* ---- everything else */

static void assign(struct play *play) {
    struct bytes *b = &play->bytes;
    struct ledger *l = &play->ledger;
    unsalt_core_partition_t spec = {.set = below(b, SETS), .set_size = (uint32_t)PICK(b, 0, 1, 2, 3)};
    spec.lane = (int32_t)PICK(b, (uint64_t)-1, 0, 1, 2);
    spec.start_offset = (int64_t)PICK(b, 0, 5, 1000, (uint64_t)-1);
    spec.log_start = (int64_t)PICK(b, 0, 5, 1000, (uint64_t)-1);
    if (play->assigned == PARTS)
        return;
    if (play->pressed && byte(b) % 2)
        failmem_arm(&l->mem, 1 + byte(b) % 4, false);
    play->assigned += ledger_assign(l, &spec) >= 0;
    failmem_arm(&l->mem, 0, false);
}

static void revoke(struct play *play, uint32_t part) {
    struct ledger *l = &play->ledger;
    if (play->pressed && byte(&play->bytes) % 2)
        failmem_arm(&l->mem, 1 + byte(&play->bytes) % 4, false);
    play->assigned -= ledger_revoke(l, part);
    failmem_arm(&l->mem, 0, false);
}

static void look(struct play *play, uint32_t part) {
    struct ledger *l = &play->ledger;
    unsalt_core_horizon_info_t horizon;
    unsalt_core_session_info_t session;
    unsalt_read_t advice[PARTS + 2];
    char id[64];
    uint32_t len = ledger_id(below(&play->bytes, SESSIONS), 0, id);
    int known = unsalt_core_horizon_info(l->core, part, &horizon);
    if ((known == UNSALT_CORE_OK) != l->parts[part].assigned)
        ledger_fail(l, "horizon_info says %d", known);
    if (unsalt_core_session_info(l->core, below(&play->bytes, SETS), id, len, &session) == UNSALT_CORE_OK &&
        session.held > l->params.budget_records)
        ledger_fail(l, "session_info: %" PRIu64 " held", session.held);
    unsalt_core_read_advice(l->core, advice, PARTS + 2);
    unsalt_core_horizon_info(l->core, UINT32_MAX, &horizon);
}

static void advance(struct play *play) {
    struct bytes *b = &play->bytes;
    uint64_t ns = PICK(b, 1, 20000000, 90000000, 1000000000, 0, UINT64_C(3600000000000));
    play->ledger.now += ns * (1 + byte(b) % 4);
}

/* Cursors are taken, and a new core is asked whether they are right. kept: this one hears that they were stored. */
static void checkpoint(struct play *play, bool kept) {
    struct ledger *l = &play->ledger;
    if (play->pressed && byte(&play->bytes) % 4 == 0)
        failmem_arm(&l->mem, 1 + byte(&play->bytes) % 4, false);
    const char *why = l->params.cursors ? carry_cursors(l->core, &l->params, SETS, kept) : NULL;
    failmem_arm(&l->mem, 0, false);
    if (why)
        ledger_fail(l, "%s", why);
}

/* What an earlier owner is said to have done: it needn't be true. */
static void state_done(struct play *play, uint32_t part) {
    struct bytes *b = &play->bytes;
    struct ledger *l = &play->ledger;
    unsalt_core_range_t ranges[4], told[8];
    uint64_t from = l->parts[part].next > 0 ? (uint64_t)l->parts[part].next : 0;
    size_t n = below(b, 5);
    for (size_t i = 0; i < n; i++) {
        ranges[i].first = from + byte(b) % 8;
        ranges[i].last = ranges[i].first + byte(b) % 8;
        from = ranges[i].last + byte(b) % 16;
    }
    ledger_done_before(l, part, ranges, n);
    n = unsalt_core_done(l->core, part, (int64_t)byte(b), told, 8);
    for (size_t i = 1; i < n; i++)
        if (told[i].first <= told[i - 1].last)
            ledger_fail(l, "what is done is not in order: %" PRIu64 " after %" PRIu64, told[i].first, told[i - 1].last);
}

static void step(struct play *play, unsigned what) {
    struct ledger *l = &play->ledger;
    if (l->trace)
        fprintf(stderr, "-- step %u of partition %u\n", what % 32, what / 32 % PARTS);
    struct bytes *b = &play->bytes;
    uint32_t part = what / 32 % PARTS;
    size_t n = 0;
    uint64_t t;
    switch (what % 32) {
    default: push(play, 1); return;
    case 10: state_done(play, part); return;
    case 11: checkpoint(play, byte(b) & 1); return;
    case 12: push(play, 1 + byte(b) % 8); return;
    case 13: push(play, 1 + byte(b) % LEDGER_BATCH); return;
    case 14: push_nonsense(play); return;
    case 15:
    case 16: advance(play); return;
    case 17: ledger_pull(l, below(b, 5), &n); return;
    case 18: ledger_rest(l); return;
    case 19: assign(play); return;
    case 20: revoke(play, part); return;
    case 21: ledger_ack(l, part, byte(b)); return;
    case 22: ledger_ack_all(l); return;
    case 23: ledger_eof(l, part, below(b, 4)); return;
    case 24: ledger_questions(l); return;
    case 25: ledger_answer(l, part, (int64_t)below(b, 6) - 1); return;
    case 26: ledger_horizons(l); return;
    case 27:
        t = PICK(b, 0, 1000000, 500000000, UINT64_MAX);
        unsalt_core_horizon(l->core, part, t == UINT64_MAX ? t : l->now - t, l->now);
        return;
    case 28: unsalt_core_flush(l->core, l->now); return;
    case 29: unsalt_core_pause(l->core, part, byte(b) & 1, l->now); return;
    case 30: unsalt_core_reading(l->core, byte(b) & 1, l->now); return;
    case 31: look(play, part); return;
    }
}

FUZZ(hostile) {
    struct play *play = calloc(1, sizeof *play);
    FUZZ_CHECK(play, "out of memory");
    struct ledger *l = &play->ledger;
    play->bytes = (struct bytes){data, size};
    ledger_init(l, 2 * SESSIONS);
    unsigned mode = byte(&play->bytes);
    play->lazy = mode & 1;
    play->pressed = mode & 2;
    set_params(&play->bytes, &l->params);
    l->params.cursors = mode & 64;
    for (unsigned i = 0; i < SESSIONS; i++)
        play->top[i] = l->params.seq_first;
    l->trace = getenv("UNSALT_FUZZ_TRACE") != NULL;
    ledger_open(l);
    for (unsigned i = 0; i <= mode / 4 % 3; i++)
        assign(play);
    while (play->bytes.left && !l->failed) {
        step(play, byte(&play->bytes));
        if (!play->lazy)
            ledger_rest(l);
        else
            ledger_check(l, false);
    }
    bool ok = ledger_close(l);
    FUZZ_CHECK(ok, "%s", l->why);
    free(play);
    return 0;
}
