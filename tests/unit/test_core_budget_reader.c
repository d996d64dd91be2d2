/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Back-pressure with a reader that does what the advice says, on a virtual clock: a lane that is far behind is merged
 * without loss, and sessions that wait for each other's lanes end as the policy says. Partitions are logs that exist
 * as rules only, so a million records cost no memory.
 */
#include <stdio.h>
#include <support/check.h>
#include <unsalt/core.h>

#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

enum { PARTS = 4, BATCH = 64, SESSIONS = 128 };

/* What stands at an offset of a partition. */
struct record {
    uint32_t session; /* 0..127 */
    uint64_t seq;
    uint16_t lanes; /* 0: it doesn't say */
};
typedef struct record rule_t(uint32_t part, uint64_t at);

struct reader {
    unsalt_core_t *core;
    unsalt_core_params_t params;
    rule_t *rule;
    uint64_t length[PARTS], read[PARTS];
    bool at_end[PARTS], refused[PARTS];
    uint64_t now, released, late, dead, blocked, full, most_held;
    size_t taken_max; /* how much the application takes at a time; 0 = all */
    uint64_t changes; /* of advice to read or not to read */
    uint64_t last[SESSIONS];
    unsalt_read_t advice[PARTS];
    char ids[SESSIONS][8];
};

static void open_reader(struct reader *r, rule_t *rule) {
    char errstr[256] = "";
    r->rule = rule;
    r->now = SEC;
    r->core = unsalt_core_new(&r->params, errstr, sizeof(errstr));
    CHECK_THAT(r->core, "no core: %s", errstr);
    for (uint32_t i = 0; i < SESSIONS; i++)
        snprintf(r->ids[i], sizeof(r->ids[i]), "s%u", i);
    for (int32_t i = 0; i < PARTS; i++) {
        unsalt_core_partition_t partition = {.set_size = PARTS, .lane = i};
        CHECK_I64(unsalt_core_assign(r->core, &partition), i);
    }
    unsalt_core_reading(r->core, true, r->now);
}

static void take(struct reader *r, const unsalt_core_out_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t session = (uint32_t)(uintptr_t)out[i].msg;
        if (out[i].state == UNSALT_STATE_RELEASED) {
            CHECK_THAT(out[i].seq > r->last[session], "s%u: %" PRIu64 " after %" PRIu64, session, out[i].seq,
                       r->last[session]);
            r->last[session] = out[i].seq;
            r->released++;
        }
        r->late += out[i].state == UNSALT_STATE_LATE;
        r->dead += out[i].state == UNSALT_STATE_DEAD_LETTERED;
        if (out[i].state == UNSALT_STATE_RELEASED || out[i].state == UNSALT_STATE_LATE)
            CHECK_I64(unsalt_core_ack(r->core, out[i].part, out[i].generation, out[i].ticket), UNSALT_CORE_OK);
    }
}

/* Events and releases until nothing comes. Returns how many came. */
static size_t drain(struct reader *r) {
    static unsalt_core_out_t out[256];
    unsalt_core_event_t events[64];
    size_t all = 0, n;
    do {
        n = unsalt_core_events(r->core, events, 64);
        size_t pulled = unsalt_core_pull(r->core, r->now, out, r->taken_max ? r->taken_max : 256);
        take(r, out, pulled);
        n += pulled;
        all += n;
    } while (n && !r->taken_max);
    return all;
}

static unsalt_core_counters_t counters_of(const struct reader *r) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(r->core, &counters);
    return counters;
}

static unsalt_core_in_t arrival(const struct reader *r, uint32_t part, uint64_t at) {
    struct record record = r->rule(part, at);
    return (unsalt_core_in_t){.msg = (void *)(uintptr_t)record.session,
                              .session = r->ids[record.session],
                              .session_len = (uint32_t)strlen(r->ids[record.session]),
                              .part = part,
                              .seq = record.seq,
                              .since = record.lanes ? 1 : UNSALT_NO_SEQ,
                              .una = UNSALT_NO_SEQ,
                              .offset = (int64_t)at,
                              .timestamp = -1,
                              .bytes = 100,
                              .lane = record.lanes ? (uint16_t)(record.seq % record.lanes) : 0,
                              .lanes = record.lanes};
}

/* Reads a batch of the partition, and pushes as much as is taken. Returns whether anything moved. */
static bool read_batch(struct reader *r, uint32_t part) {
    unsalt_core_in_t in[BATCH];
    unsalt_core_out_t out[BATCH];
    size_t n = 0, n_out = 0;
    int status = 0;
    for (; n < BATCH && r->read[part] + n < r->length[part]; n++)
        in[n] = arrival(r, part, r->read[part] + n);
    size_t took = unsalt_core_push(r->core, in, n, r->now, out, &n_out, &status);
    CHECK_THAT(status >= 0, "push says %d", status);
    r->read[part] += took;
    take(r, out, n_out);
    r->refused[part] = status == UNSALT_CORE_BLOCKED;
    r->blocked += status == UNSALT_CORE_BLOCKED;
    bool moved = took > 0 || drain(r) > 0;
    if (status == UNSALT_CORE_FULL) {
        r->full++;
        unsalt_core_flush(r->core, r->now);
        moved |= drain(r) > 0;
    }
    uint64_t held = counters_of(r).state[UNSALT_STATE_HELD];
    r->most_held = held > r->most_held ? held : r->most_held;
    return moved;
}

/* The next partition to read by the advice: what is owed first. PARTS: none. */
static uint32_t choose(struct reader *r, uint64_t turn) {
    unsalt_read_t before[PARTS];
    memcpy(before, r->advice, sizeof(before));
    unsalt_core_read_advice(r->core, r->advice, PARTS);
    uint32_t best = PARTS;
    for (uint32_t i = 0; i < PARTS; i++) {
        uint32_t part = (uint32_t)((turn + i) % PARTS);
        r->changes += (before[part] == UNSALT_READ_AHEAD) != (r->advice[part] == UNSALT_READ_AHEAD);
        bool readable = r->read[part] < r->length[part] && r->advice[part] != UNSALT_READ_AHEAD && !r->refused[part];
        if (readable && (best == PARTS || r->advice[part] < r->advice[best]))
            best = part;
    }
    return best;
}

/* The time goes on to the next deadline; ends of partitions are shown, questions answered. */
static void idle(struct reader *r) {
    uint32_t asked[PARTS];
    uint64_t deadline = unsalt_core_deadline(r->core);
    r->now = deadline > r->now && deadline < r->now + 100 * MS ? deadline : r->now + 100 * MS;
    for (uint32_t i = 0; i < PARTS; i++) {
        r->refused[i] = false;
        if (r->read[i] == r->length[i] && !r->at_end[i]) {
            r->at_end[i] = true;
            unsalt_core_eof(r->core, i, (int64_t)r->length[i], r->now);
        }
    }
    size_t n = unsalt_core_questions(r->core, r->now, asked, PARTS);
    for (size_t i = 0; i < n; i++)
        unsalt_core_answer(r->core, asked[i], unsalt_core_generation(r->core, asked[i]),
                           (int64_t)r->length[asked[i]], r->now);
    unsalt_core_expire(r->core, r->now);
    drain(r);
}

static bool done(const struct reader *r) {
    for (int i = 0; i < PARTS; i++)
        if (r->read[i] < r->length[i])
            return false;
    return counters_of(r).state[UNSALT_STATE_HELD] == 0;
}

/* Reads everything. Fails if it needs more than `turns` turns: then it hangs. */
static void read_all(struct reader *r, uint64_t turns) {
    for (uint64_t turn = 0; !done(r); turn++) {
        uint32_t part = choose(r, turn);
        CHECK_THAT(turn < turns, "it hangs: read %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ", held %" PRIu64,
                   r->read[0], r->read[1], r->read[2], r->read[3], counters_of(r).state[UNSALT_STATE_HELD]);
        r->now += MS;
        if (part == PARTS || !read_batch(r, part))
            idle(r);
        else if (unsalt_core_deadline(r->core) <= r->now)
            idle(r);
    }
    CHECK(unsalt_core_conserved(r->core));
}

/* ---- a lane far behind */

enum { BEHIND = 1000000, EACH = 50000, SMALL = 10000 };

/*
 * Session 0 is spread over all four partitions, number n in partition n mod 4; in partition 0 a million records of a
 * hundred other sessions stand before its own.
 */
static struct record behind(uint32_t part, uint64_t at) {
    if (part == 0 && at < BEHIND)
        return (struct record){1 + (uint32_t)(at % 100), at / 100 + 1, 1};
    return (struct record){0, (part ? part : PARTS) + PARTS * (part ? at : at - BEHIND), PARTS};
}

static struct record behind_unknown(uint32_t part, uint64_t at) {
    struct record record = behind(part, at);
    record.lanes = 0;
    return record;
}

static void merge_behind(rule_t *rule, unsalt_budget_policy_t policy, size_t taken_max) {
    struct reader r = {.taken_max = taken_max};
    unsalt_core_params_init(&r.params);
    r.params.budget_records = SMALL;
    r.params.budget_policy = policy;
    r.params.gap_timeout_ns = 50 * MS;
    r.params.gap_stall_max_ns = 5 * SEC;
    open_reader(&r, rule);
    for (int i = 0; i < PARTS; i++)
        r.length[i] = EACH + (i ? 0 : BEHIND);
    read_all(&r, 200000);
    unsalt_core_counters_t counters = counters_of(&r);
    CHECK_U64(r.released, BEHIND + PARTS * EACH);
    CHECK_U64(r.last[0], PARTS * EACH);
    CHECK_THAT(r.most_held <= SMALL && r.most_held > SMALL / 4, "%" PRIu64 " were held", r.most_held);
    for (int i = 0; i < UNSALT_GAP__CNT; i++)
        CHECK_THAT(counters.gaps[i] == 0, "%" PRIu64 " gaps were given up (%s)", counters.gaps[i],
                   unsalt_gap_reason_name((unsalt_gap_reason_t)i));
    CHECK_U64(counters.budget_full[UNSALT_BUDGET_RECORDS], 0);
    CHECK_U64(r.blocked + r.full, 0);
    CHECK_THAT(r.now > 3 * r.params.gap_stall_max_ns, "a lane must be left unread for longer than gap.stall.max.ms");
    CHECK_THAT(taken_max || r.changes < 1000, "the advice changed %" PRIu64 " times", r.changes);
    CHECK_THAT(r.most_held <= SMALL / 2 + 3 * BATCH, "%" PRIu64 " were held", r.most_held);
    unsalt_core_destroy(r.core);
}

TEST(core_budget_reader, a_lane_a_million_behind_is_merged) {
    merge_behind(behind, UNSALT_BUDGET_SKIP_GAP, 0);
}

TEST(core_budget_reader, and_if_no_record_tells_its_lane) {
    merge_behind(behind_unknown, UNSALT_BUDGET_FAIL, 0);
}

/* What is ready stays held until it is taken: the lanes must not run ahead again behind a slow application. */
TEST(core_budget_reader, and_if_the_application_is_slow) {
    merge_behind(behind, UNSALT_BUDGET_FAIL, 16);
}

/* ---- sessions that wait for each other's lanes */

enum { CROSS = 2000 };

/*
 * Session 0 has its even numbers at the beginning of partition 0 and its odd ones at the end of partition 1; session 1
 * the other way round. What each waits for stands behind more of the other than the budget holds.
 */
static struct record crosswise(uint32_t part, uint64_t at) {
    bool first = at < CROSS;
    uint32_t session = first == (part == 0) ? 0 : 1;
    uint64_t n = first ? at : at - CROSS;
    return (struct record){session, 2 * (n + 1) - (part == 1), 2};
}

static struct reader cross(unsalt_budget_policy_t policy, uint64_t timeout_ns) {
    struct reader r = {.now = 0};
    unsalt_core_params_init(&r.params);
    r.params.budget_records = 100;
    r.params.budget_policy = policy;
    r.params.gap_timeout_ns = timeout_ns;
    r.params.block_max_ns = 3 * SEC;
    open_reader(&r, crosswise);
    r.length[0] = r.length[1] = 2 * CROSS;
    read_all(&r, 1000000);
    CHECK_U64(r.released + r.late + r.dead, 4 * CROSS);
    CHECK_THAT(r.most_held <= 100, "%" PRIu64 " were held", r.most_held);
    unsalt_core_counters_t counters = counters_of(&r);
    CHECK(counters.budget_full[UNSALT_BUDGET_RECORDS] > 0);
    unsalt_core_destroy(r.core);
    r.core = NULL;
    /* One outcome, that of the policy, and of all other budgets none. */
    static const unsalt_budget_outcome_t outcomes[] = {UNSALT_OUTCOME_GAVE_WAY, UNSALT_OUTCOME_BLOCKED,
                                                       UNSALT_OUTCOME_DEAD_LETTERED, UNSALT_OUTCOME_FAILED};
    for (int which = 0; which < UNSALT_BUDGET__CNT; which++) {
        for (int i = 0; i < UNSALT_OUTCOME__CNT; i++) {
            bool wanted = which == UNSALT_BUDGET_RECORDS && i == (int)outcomes[policy];
            bool may_be = which == UNSALT_BUDGET_RECORDS && i == UNSALT_OUTCOME_GAVE_WAY;
            uint64_t count = counters.budget_outcome[which][i];
            CHECK_THAT(wanted ? count > 0 : may_be || count == 0, "%s, %s: %" PRIu64,
                       unsalt_budget_name((unsalt_budget_t)which),
                       unsalt_budget_outcome_name((unsalt_budget_outcome_t)i), count);
        }
    }
    return r;
}

TEST(core_budget_reader, crosswise_ends_by_skipping) {
    struct reader r = cross(UNSALT_BUDGET_SKIP_GAP, UNSALT_NEVER);
    CHECK(r.late > 0);
    CHECK_U64(r.blocked + r.full + r.dead, 0);
}

TEST(core_budget_reader, crosswise_ends_by_blocking_then_skipping) {
    struct reader r = cross(UNSALT_BUDGET_BLOCK, UNSALT_NEVER);
    CHECK(r.late > 0 && r.blocked > 0);
    CHECK_THAT(r.now > 4 * SEC, "something gave way before block.max.ms was over");
    CHECK_U64(r.full + r.dead, 0);
}

TEST(core_budget_reader, crosswise_ends_by_dead_letters) {
    struct reader r = cross(UNSALT_BUDGET_DEAD_LETTER, UNSALT_NEVER);
    CHECK(r.dead > 0);
    CHECK_U64(r.blocked + r.full + r.late, 0);
}

TEST(core_budget_reader, crosswise_ends_by_failing_and_a_flush) {
    struct reader r = cross(UNSALT_BUDGET_FAIL, UNSALT_NEVER);
    CHECK(r.late > 0 && r.full > 0);
    CHECK_U64(r.blocked + r.dead, 0);
}
