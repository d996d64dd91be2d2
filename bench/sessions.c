/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many sessions: push, pull, commit frontier and acknowledgement of every record against nothing but the look-up of the
 * same ids, in the same order, in a uthash table with the same hash. In batches of 256 and one by one; the core's
 * records are filled in batch by batch, as a reader does, and that is part of its time. 1 % of the records change
 * places with the next one of their session. Beside it the floor, a row found and touched in a window. Also what an
 * idle session takes, and what it costs to let it go. FULL=1: more records and rounds, also with 10,000 sessions.
 */
#include "arrivals.h"
#include "engine.h"
#include "report.h"
#include <core/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#define uthash_fatal(text) engine_failed(text)
#include <uthash.h>

enum { ID = 24, PARTITIONS = 8 };
#define SEED UINT64_C(88172645463325252)
enum profile { UNIFORM, ZIPF, AGENT_LOG };
static const char *const profile_names[] = {"uniform", "zipf", "agent-log"};

struct record {
    char id[ID]; /* each record has its own copy, as messages do */
    uint64_t seq;
};
struct load {
    struct record *records;
    uint32_t *of;     /* session of each record */
    uint64_t *total;  /* records of each session */
    size_t count, sessions;
};

static double share(uint64_t *seed) {
    return (double)(bench_random(seed) >> 11) * 0x1p-53;
}

/* Which session each record is of. */
static uint32_t *uniform(size_t sessions, size_t records, uint64_t *seed) {
    uint32_t *of = engine_alloc(records, sizeof *of);
    for (size_t i = 0; i < records; i++)
        of[i] = (uint32_t)(bench_random(seed) % sessions);
    return of;
}

static void shuffle(uint32_t *values, size_t count, uint64_t *seed) {
    for (size_t i = count - 1; i > 0; i--) {
        size_t j = bench_random(seed) % (i + 1);
        uint32_t value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}

/* Exponent 1; which session is how frequent has nothing to do with where it stands. */
static uint32_t *zipf(size_t sessions, size_t records, uint64_t *seed) {
    uint32_t *of = engine_alloc(records, sizeof *of), *rank = engine_alloc(sessions, sizeof *rank);
    double *sum = engine_alloc(sessions, sizeof *sum), total = 0;
    for (size_t i = 0; i < sessions; i++) {
        rank[i] = (uint32_t)i;
        sum[i] = total += 1 / (double)(i + 1);
    }
    shuffle(rank, sessions, seed);
    for (size_t i = 0; i < records; i++) {
        double at = share(seed) * total;
        size_t low = 0, high = sessions - 1;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (sum[middle] < at)
                low = middle + 1;
            else
                high = middle;
        }
        of[i] = rank[low];
    }
    free(sum);
    free(rank);
    return of;
}

/*
 * Sessions that begin and end: 200 at a time; 95 of a hundred have 20 to 30 records, the others thousands. The number
 * of sessions follows from the number of records.
 */
static uint32_t *agent_log(size_t sessions, size_t records, uint64_t *seed) {
    enum { OPEN = 200 };
    uint32_t *of = engine_alloc(records, sizeof *of), open[OPEN], left[OPEN] = {0}, next = 0;
    for (size_t i = 0; i < records; i++) {
        size_t k = bench_random(seed) % OPEN;
        if (left[k] == 0) {
            bool small = bench_random(seed) % 100 < 95;
            open[k] = next++ % (uint32_t)sessions;
            left[k] = (uint32_t)(small ? 20 + bench_random(seed) % 11 : 1000 + bench_random(seed) % 4000);
        }
        left[k]--;
        of[i] = open[k];
    }
    return of;
}

static void id_of(char id[ID], uint32_t session) {
    char text[32];
    snprintf(text, sizeof text, "session-%08x-%07x", session * 2654435761u, session & 0xfffffff);
    memcpy(id, text, ID);
}

static struct load make(enum profile profile, size_t sessions, size_t records) {
    uint64_t seed = SEED;
    uint32_t *of = profile == UNIFORM ? uniform(sessions, records, &seed)
                   : profile == ZIPF  ? zipf(sessions, records, &seed)
                                      : agent_log(sessions, records, &seed);
    uint64_t *next = engine_alloc(sessions, sizeof *next), *put_off = engine_alloc(sessions, sizeof *put_off);
    struct load load = {engine_alloc(records, sizeof *load.records), of, next, records, sessions};
    uint32_t *last = engine_alloc(sessions, sizeof *last);
    for (size_t i = 0; i < records; i++) {
        uint32_t session = of[i];
        uint64_t seq = put_off[session];
        put_off[session] = 0;
        if (seq == 0) {
            seq = ++next[session];
            if (bench_random(&seed) % 100 == 0) { /* the next record of the session comes first */
                put_off[session] = seq;
                seq = ++next[session];
            }
        }
        id_of(load.records[i].id, session);
        load.records[i].seq = seq;
        last[session] = (uint32_t)i;
    }
    for (size_t i = 0; i < sessions; i++)
        if (put_off[i]) /* it never came: then the one after it is that number */
            load.records[last[i]].seq = next[i] = put_off[i];
    free(last);
    free(put_off);
    return load;
}

static void load_free(struct load *load) {
    free(load->records);
    free(load->of);
    free(load->total);
}

/* ---- the peer: a table that knows the ids */

struct known {
    UT_hash_handle hh;
    char id[ID];
};

static struct known *known_of(size_t sessions) {
    struct known *table = NULL, *all = engine_alloc(sessions, sizeof *all);
    uint32_t *order = engine_alloc(sessions, sizeof *order);
    uint64_t seed = SEED;
    for (size_t i = 0; i < sessions; i++)
        order[i] = (uint32_t)i;
    shuffle(order, sessions, &seed); /* in memory they stand in the order in which they came, not by number */
    for (size_t i = 0; i < sessions; i++) {
        struct known *entry = &all[i];
        id_of(entry->id, order[i]);
        unsigned hash = (unsigned)XXH3_64bits(entry->id, ID);
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, table, entry->id, ID, hash, entry);
    }
    free(order);
    return table;
}

static void known_free(struct known *table) {
    struct known *all = table; /* the first that came stands at the beginning of the block */
    HASH_CLEAR(hh, table);
    free(all);
}

static volatile uintptr_t sink;

static void look_up(struct known *table, const struct load *load, struct bench_runs *runs) {
    uintptr_t sum = 0;
    struct bench_clock began = bench_start();
    for (size_t i = 0; i < load->count; i++) {
        struct known *entry;
        unsigned hash = (unsigned)XXH3_64bits(load->records[i].id, ID);
        HASH_FIND_BYHASHVALUE(hh, table, load->records[i].id, ID, hash, entry);
        sum += (uintptr_t)entry;
    }
    bench_stop(began, 1e9 / (double)load->count, runs);
    sink = sum;
}

/* ---- the core */

static unsalt_core_t *core_of(const unsalt_mem_t *mem) {
    unsalt_core_params_t params;
    engine_params(&params);
    if (mem)
        params.mem = *mem;
    params.session_ttl_ns = UINT64_C(3600000000000);
    return engine_new(&params, PARTITIONS);
}

/* Every session has been met, as in the table of the peer. Returns the core, and the time in it. */
static unsalt_core_t *core_knowing(size_t sessions, const unsalt_mem_t *mem, uint64_t *now, int64_t *offset) {
    unsalt_core_t *core = core_of(mem);
    uint32_t *order = engine_alloc(sessions, sizeof *order);
    uint64_t seed = SEED;
    for (size_t i = 0; i < sessions; i++)
        order[i] = (uint32_t)i;
    shuffle(order, sessions, &seed);
    for (size_t i = 0; i < sessions;) {
        unsalt_core_in_t in[ENGINE_BATCH];
        char id[ENGINE_BATCH][ID];
        size_t n = 0;
        for (; n < ENGINE_BATCH && i < sessions; n++, i++) {
            id_of(id[n], order[i]);
            in[n] = engine_record(id[n], ID, 1, 1, (*offset)++);
            in[n].una = UNSALT_NO_SEQ;
        }
        if (engine_drive(core, in, n, n, now) != n)
            engine_failed("sessions: a first record was not released");
    }
    free(order);
    return core;
}

/* Numbers go on where the round before has ended; before the first one, each session has had one record. */
static void go_on(struct load *load, bool first) {
    for (size_t i = 0; i < load->count; i++)
        load->records[i].seq += first ? 1 : load->total[load->of[i]];
}

static size_t done_with(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    engine_ack(core, out, n);
    return n;
}

/* Push, pull until nothing is ready, and the acknowledgement of every record; nothing else. */
static inline size_t drive(unsalt_core_t *core, const unsalt_core_in_t *in, size_t n, uint64_t now) {
    static unsalt_core_out_t out[ENGINE_BATCH];
    size_t n_out, got;
    int status;
    if (unsalt_core_push(core, in, n, now, out, &n_out, &status) != n)
        engine_failed("sessions: a record was refused");
    got = done_with(core, out, n_out);
    while ((n_out = unsalt_core_pull(core, now, out, ENGINE_BATCH)) > 0)
        got += done_with(core, out, n_out);
    return got;
}

static void run_core(unsalt_core_t *core, const struct load *load, size_t batch, uint64_t *now, int64_t *offset,
                     struct bench_runs *runs) {
    static unsalt_core_in_t in[ENGINE_BATCH];
    size_t got = 0;
    for (int i = 0; i < ENGINE_BATCH; i++) {
        in[i] = engine_record(NULL, ID, 1, 1, 0);
        in[i].una = UNSALT_NO_SEQ;
    }
    struct bench_clock began = bench_start();
    for (size_t at = 0; at < load->count;) {
        size_t n = 0;
        uint32_t part = (uint32_t)(at / ENGINE_BATCH % PARTITIONS); /* as a reader goes from queue to queue */
        for (; n < batch && at < load->count; n++, at++) {
            in[n].session = load->records[at].id;
            in[n].seq = load->records[at].seq;
            in[n].part = part;
            in[n].offset = (*offset)++;
        }
        got += drive(core, in, n, *now += 1000);
    }
    bench_stop(began, 1e9 / (double)load->count, runs);
    unsalt_core_counters_t counters;
    unsalt_core_counters(core, &counters);
    if (got != load->count || counters.unacked || counters.state[UNSALT_STATE_HELD] || !unsalt_core_conserved(core))
        engine_failed("sessions: records are missing");
}

/*
 * The floor: of every record the hash, the slot, the id compared and the cursor touched, in windows like the core's,
 * and nothing of what a record is there for.
 */
static void touch_rows(const unsalt_core_t *core, const struct load *load, struct bench_runs *runs) {
    enum { WINDOW = 32 };
    const struct us_row_table *table = &core->sets->table;
    uint64_t seed = core->params.hash_seed, sum = 0;
    struct bench_clock began = bench_start();
    for (size_t at = 0; at < load->count; at += WINDOW) {
        const struct record *records = &load->records[at];
        size_t n = load->count - at < WINDOW ? load->count - at : WINDOW;
        uint32_t hash[WINDOW];
        struct us_row *row[WINDOW];
        for (size_t i = 0; i < n; i++) {
            hash[i] = (uint32_t)XXH3_64bits_withSeed(records[i].id, ID, seed);
            us_row_prefetch_slot(table, hash[i]);
        }
        for (size_t i = 0; i < n; i++) {
            uint32_t ref = us_row_likely(table, hash[i]);
            row[i] = ref ? us_row_prefetch(&core->rows, ref, ID) : NULL;
        }
        for (size_t i = 0; i < n; i++)
            if (row[i] && us_same_id(row[i]->id, records[i].id, ID))
                sum += row[i]->is.cursor;
    }
    bench_stop(began, 1e9 / (double)load->count, runs);
    sink = sum;
}

/* Two cores that know every session already, one for batches and one for single records. */
static void compare(enum profile profile, size_t sessions, size_t records, int rounds) {
    struct load load = make(profile, sessions, records);
    struct known *table = known_of(sessions);
    struct bench_runs runs[2] = {{.count = 0}, {.count = 0}}, bare = {.count = 0}, floor = {.count = 0};
    unsalt_core_t *cores[2];
    uint64_t now[2] = {1000, 1000};
    int64_t offset[2] = {0, 0};
    for (int one = 0; one < 2; one++)
        cores[one] = core_knowing(sessions, NULL, &now[one], &offset[one]);
    for (int round = 0; round <= rounds; round++) {
        go_on(&load, round == 0);
        for (int one = 0; one < 2; one++)
            run_core(cores[one], &load, one ? 1 : ENGINE_BATCH, &now[one], &offset[one], &runs[one]);
        look_up(table, &load, &bare);
        touch_rows(cores[0], &load, &floor);
        if (round == 0)
            runs[0].count = runs[1].count = bare.count = floor.count = 0;
    }
    unsalt_core_destroy(cores[0]);
    unsalt_core_destroy(cores[1]);
    char name[48];
    snprintf(name, sizeof name, "sessions %zu %s", sessions, profile_names[profile]);
    bench_compare(name, "record_in_batch", "ns", &runs[0], "bare uthash look-up", &bare);
    bench_compare(name, "record_one_by_one", "ns", &runs[1], "bare uthash look-up", &bare);
    bench_compare(name, "row_touched_in_batch", "ns", &floor, "bare uthash look-up", &bare);
    known_free(table);
    load_free(&load);
}

/* What expiry costs for each session, in one round; all go at once. */
static void expire(unsalt_core_t *core, size_t sessions, uint64_t now, struct bench_runs *runs) {
    unsalt_core_counters_t counters;
    struct bench_clock began = bench_start();
    do {
        unsalt_core_expire(core, now);
        unsalt_core_counters(core, &counters);
    } while (counters.sessions > 0);
    bench_stop(began, 1e9 / (double)sessions, runs);
}

/* What an idle session takes beside its id, and what expiry costs for each. */
static void idle(size_t sessions, int rounds) {
    struct engine_memory memory = {0, 0};
    unsalt_mem_t mem = engine_counted(&memory);
    struct bench_runs runs = {.count = 0};
    double beside = 0;
    unsalt_core_t *empty = core_of(&mem);
    size_t before = memory.bytes;
    unsalt_core_destroy(empty);
    for (int round = 0; round < rounds; round++) {
        uint64_t now = 1000;
        int64_t offset = 0;
        unsalt_core_t *core = core_knowing(sessions, &mem, &now, &offset);
        beside = (double)(memory.bytes - before) / (double)sessions - ID; /* the same in each */
        expire(core, sessions, now + UINT64_C(7200000000000), &runs);
        unsalt_core_destroy(core);
    }
    char name[48];
    snprintf(name, sizeof name, "sessions %zu idle", sessions);
    bench_figure(name, "bytes_beside_id", beside, "bytes", NULL, 0);
    bench_compare(name, "expiry", "ns", &runs, NULL, NULL);
}

int main(void) {
    static const size_t few[] = {1000, 100000, 1000000}, more[] = {1000, 10000, 100000, 1000000};
    bool full = bench_full();
    const size_t *sizes = full ? more : few;
    size_t records = bench_size(full ? 4000000 : 1000000);
    int rounds = full ? 11 : 7;
    for (int i = 0; i < (full ? 4 : 3); i++) {
        for (enum profile profile = UNIFORM; profile <= AGENT_LOG; profile++)
            if (full || profile == ZIPF || sizes[i] == 1000000)
                compare(profile, sizes[i], records, rounds);
        idle(sizes[i], full ? 7 : 3);
    }
    return 0;
}
