/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hot key with work in each record, 100 workers, on a real broker: unsalt's pipeline, which delivers in the order of
 * the key, against the same number of threads fed by a raw consumer without any order; and, if UNSALT_BENCH_PEER is
 * the command of bench/peers/Peer.java, against Confluent Parallel Consumer in its three orders. Same records, same
 * broker, same machine, in turns; from the start of the first record's work to the end of the last one's.
 *
 *   hot_key [-r ROUNDS] [-m MOST_SECONDS] [CASE...]      cases by their number, see below; without: all
 *
 * A run takes as many records from the beginning of the topic as keep it busy for about MOST_SECONDS (default 2), so
 * the slow ones take fewer; what is compared is the time per record. UNSALT_TEST_BOOTSTRAP names the cluster.
 */
#include "readers.h"
#include "work.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 300000, SMALL = 10000, WORKERS = 100 };

/* Who does the work. */
enum side { PIPELINE, POOL, PEER_UNORDERED, PEER_PARTITION, PEER_KEY, SIDES };

static const struct {
    const char *word, *text, *peer_order; /* NULL: no peer */
} sides[SIDES] = {
    [PIPELINE] = {"pipeline", "unsalt_pipeline", NULL},
    [POOL] = {"pool", "100 threads, raw consumer, no order", NULL},
    [PEER_UNORDERED] = {"unordered", "Parallel Consumer UNORDERED", "UNORDERED"},
    [PEER_PARTITION] = {"partition", "Parallel Consumer PARTITION", "PARTITION"},
    [PEER_KEY] = {"key", "Parallel Consumer KEY", "KEY"},
};

#define ALL (1 << PIPELINE | 1 << POOL | 1 << PEER_UNORDERED | 1 << PEER_PARTITION | 1 << PEER_KEY)

static const struct hot_case {
    const char *name;
    enum traffic traffic; /* RAW_KEYS: in one partition, under the raw key; ALL_HOT: salted over four partitions */
    long keys, records;
    struct work work;
    unsigned sides;
    bool reduced; /* part of the reduced matrix */
} cases[] = {
    {"1 key, 1 ms", TRAFFIC_RAW_KEYS, 1, RECORDS, {WORK_SLEEP, 1000}, ALL & ~(1 << PEER_PARTITION), true},
    {"1 key salted, 1 ms", TRAFFIC_ALL_HOT, 1, RECORDS, {WORK_SLEEP, 1000}, ALL, true},
    {"1 key, no work", TRAFFIC_RAW_KEYS, 1, RECORDS, {WORK_SLEEP, 0}, ALL & ~(1 << PEER_PARTITION), true},
    {"1 key, 100 us", TRAFFIC_RAW_KEYS, 1, RECORDS, {WORK_SLEEP, 100}, ALL & ~(1 << PEER_PARTITION), true},
    {"1 key, 5 ms", TRAFFIC_RAW_KEYS, 1, RECORDS, {WORK_SLEEP, 5000}, ALL & ~(1 << PEER_PARTITION), true},
    {"1 key, 100 us CPU", TRAFFIC_RAW_KEYS, 1, RECORDS, {WORK_BURN, 100}, ALL & ~(1 << PEER_PARTITION), true},
    {"1 key salted, no work", TRAFFIC_ALL_HOT, 1, RECORDS, {WORK_SLEEP, 0}, ALL, false},
    {"1 key salted, 100 us", TRAFFIC_ALL_HOT, 1, RECORDS, {WORK_SLEEP, 100}, ALL, false},
    {"1 key salted, 5 ms", TRAFFIC_ALL_HOT, 1, RECORDS, {WORK_SLEEP, 5000}, ALL, false},
    {"1 key salted, 100 us CPU", TRAFFIC_ALL_HOT, 1, RECORDS, {WORK_BURN, 100}, ALL, false},
    {"1 key, 0-5 ms", TRAFFIC_RAW_KEYS, 1, SMALL, {WORK_RANDOM, 5000}, ALL, false},
    {"2 keys, 0-5 ms", TRAFFIC_RAW_KEYS, 2, SMALL, {WORK_RANDOM, 5000}, ALL & ~(1 << PEER_PARTITION), false},
    {"5 keys, 0-5 ms", TRAFFIC_RAW_KEYS, 5, SMALL, {WORK_RANDOM, 5000}, ALL & ~(1 << PEER_PARTITION), false},
    {"10 keys, 0-5 ms", TRAFFIC_RAW_KEYS, 10, SMALL, {WORK_RANDOM, 5000}, ALL, true},
    {"20 keys, 0-5 ms", TRAFFIC_RAW_KEYS, 20, SMALL, {WORK_RANDOM, 5000}, ALL & ~(1 << PEER_PARTITION), false},
    {"50 keys, 0-5 ms", TRAFFIC_RAW_KEYS, 50, SMALL, {WORK_RANDOM, 5000}, ALL & ~(1 << PEER_PARTITION), false},
    {"100 keys, 0-5 ms", TRAFFIC_RAW_KEYS, 100, SMALL, {WORK_RANDOM, 5000}, ALL, true},
};
/* The first cases are those that have a target: in the whole matrix they get more rounds. */
enum { CASES = sizeof cases / sizeof *cases, TARGETS = 2 };

/* How many records keep a side busy for so long, about. */
static long records_for(const struct hot_case *c, enum side side, double most) {
    double seconds = (double)bench_size((size_t)(most * 100)) / 100;
    double work = (c->work.kind == WORK_RANDOM ? c->work.us / 2.0 : c->work.us) * 1e-6;
    double least = side >= PEER_UNORDERED ? 30e-6 : 4e-6, wide = WORKERS;
    if (c->work.kind == WORK_BURN)
        wide = 2;
    else if (side == PEER_KEY || side == PEER_PARTITION)
        wide = c->traffic == TRAFFIC_ALL_HOT ? TOPIC_LANES : c->keys < 8 || side == PEER_KEY ? (double)c->keys : 8;
    double each = (work + (wide < WORKERS ? 0.2e-3 : 0)) / wide;
    long n = (long)(seconds / (each > least ? each : least));
    return n < c->records ? n : c->records;
}

/* The peer prints seconds, seconds of processor time, and records. */
static void run_peer(const struct hot_case *c, enum side side, long records, struct bench_runs *runs) {
    char command[4096];
    double seconds, cpu;
    long done;
    snprintf(command, sizeof command, "%s %s %s %ld %s %d %s %u", getenv("UNSALT_BENCH_PEER"),
             getenv("UNSALT_TEST_BOOTSTRAP"), topic_name(), records, sides[side].peer_order, WORKERS,
             work_word(c->work.kind), c->work.us);
    FILE *pipe = popen(command, "r");
    if (!pipe || fscanf(pipe, "%lf %lf %ld", &seconds, &cpu, &done) != 3 || done < records || pclose(pipe) != 0)
        topic_fail("the peer has failed: UNSALT_BENCH_PEER_LOG names a file for what it says");
    bench_add(runs, seconds * 1e6 / (double)done, cpu * 1e6 / (double)done);
}

static void run(const struct hot_case *c, enum side side, double seconds, struct bench_runs *runs) {
    long records = records_for(c, side, seconds);
    if (sides[side].peer_order)
        run_peer(c, side, records, runs);
    else if (side == PIPELINE)
        work_pipeline(&c->work, WORKERS, records, c->keys, runs);
    else
        work_pool(&c->work, WORKERS, records, runs);
}

static bool takes_part(const struct hot_case *c, enum side side) {
    if (side == PIPELINE && !work_has_pipeline())
        return false;
    return c->sides & 1u << side && (!sides[side].peer_order || getenv("UNSALT_BENCH_PEER"));
}

static void compare(const struct hot_case *c, size_t rounds, double seconds) {
    static struct bench_runs runs[SIDES];
    struct topic_load load = {c->traffic, FORM_HEADER, "none", 100, 1, c->records, c->keys};
    char name[96];
    memset(runs, 0, sizeof runs);
    topic_open(NULL, &load);
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < SIDES; i++) {
            enum side side = (enum side)((i + round) % SIDES);
            if (takes_part(c, side))
                run(c, side, seconds, &runs[side]);
        }
    snprintf(name, sizeof name, "hot key, %s", c->name);
    for (enum side side = POOL; side < SIDES; side++)
        if (takes_part(c, side) && takes_part(c, PIPELINE))
            bench_compare(name, "time_per_record", "us", &runs[PIPELINE], sides[side].text, &runs[side]);
        else if (takes_part(c, side))
            bench_compare(name, "time_per_record", "us", &runs[side], NULL, NULL);
    topic_close();
}

int main(int argc, char **argv) {
    size_t rounds = 0;
    double seconds = 2;
    bool wanted[CASES] = {false}, some = false;
    for (int option; (option = getopt(argc, argv, "r:m:")) != -1;) {
        if (option == 'r')
            rounds = (size_t)atol(optarg);
        else if (option == 'm')
            seconds = atof(optarg);
        else
            topic_fail("the head of bench/hot_key.c has the usage");
    }
    if (rounds > BENCH_RUNS_MAX || seconds <= 0)
        topic_fail("1 to 64 rounds, and some time");
    for (; optind < argc; optind++) {
        int c = atoi(argv[optind]);
        if (c < 0 || c >= CASES)
            topic_fail("there is no such case");
        some = wanted[c] = true;
    }
    for (int c = 0; c < CASES; c++)
        if (some ? wanted[c] : cases[c].reduced || bench_full())
            compare(&cases[c], rounds ? rounds : bench_full() && c < TARGETS ? 7 : 3, seconds);
    return 0;
}
