/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a record takes, on a real broker, at a given rate: from the moment when it was meant to be sent until the
 * application has it; and how much of that is unsalt's: from the moment when the last record that it had to wait for
 * was read until the application has it. Against rd_kafka_consumer_poll() on the same course, in turns.
 *
 * Coordinated omission: the sender is an open loop. Record i is due at start + i / rate whatever happened before, and
 * its time counts from then, so a sender or a broker that stands still for a moment delays all that was due meanwhile,
 * and nothing is left out. When a record is read is known from an interceptor, which librdkafka calls with each.
 *
 *   latency [-r ROUNDS] [-s SECONDS] [CASE...]     cases by their number, see below; without: all
 *
 * The first second of a course isn't counted. UNSALT_TEST_BOOTSTRAP names the cluster; the topic is made here.
 */
#include "report.h"
#include "topic.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SESSIONS = 10, SLOW_MS = 30000, BATCH = 1000, ROUNDS_MAX = 15 };

/* A course of the load. delay: by which each lane is sent later, in ms; its records are stamped in time. */
struct course {
    const char *name;
    double rate; /* records/s */
    int delay[TOPIC_LANES];
    double loss; /* share of the records that are stamped and never sent */
    bool proof;  /* the header's `una` says so */
    bool reduced; /* part of the reduced matrix */
};

static const struct course courses[] = {
    {"1,000/s", 1000, {0}, 0, true, true},
    {"20,000/s", 20000, {0}, 0, true, true},
    {"100,000/s", 100000, {0}, 0, true, false},
    {"20,000/s, lanes 0-20 ms late", 20000, {0, 5, 10, 20}, 0, true, true},
    {"20,000/s, lanes 0-150 ms late", 20000, {0, 20, 60, 150}, 0, true, false},
    {"20,000/s, 0.1 % lost, proof", 20000, {0}, 0.001, true, true},
    {"20,000/s, 0.1 % lost, no proof", 20000, {0}, 0.001, false, true},
    {"20,000/s, 0.001 % lost, no proof", 20000, {0}, 0.00001, false, false},
    {"20,000/s, 0.1 % lost, lanes 0-20 ms late, proof", 20000, {0, 5, 10, 20}, 0.001, true, false},
};
enum { COURSES = sizeof courses / sizeof *courses };

static const double shares[] = {0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999};
enum { SHARES = sizeof shares / sizeof *shares };

/* One run of a course. Record i is number i / SESSIONS + 1 of session i % SESSIONS. */
struct run {
    const struct course *course;
    unsigned number;    /* of the run: part of the session ids, and the seed of what is lost */
    long records, counted_from;
    double start;       /* when record 0 is due; 0: not yet */
    double *read, *had; /* per record: when it was read, when the application had it; 0: not yet */
    unsigned char *resolved;
    long lowest[SESSIONS]; /* the lowest number that is neither acknowledged nor abandoned */
    atomic_long sent;      /* records that were not lost, at the end of the sender; -1 before */
};

struct body {
    unsigned run;
    long record;
};

/* ---- the sender */

static bool is_lost(const struct run *run, long i) {
    uint32_t h = (uint32_t)i * 2654435761u ^ run->number * 2246822519u;
    h = (h ^ h >> 15) * 2246822519u;
    h = (h ^ h >> 13) * 3266489917u;
    return (double)(h ^ h >> 16) / 4294967296.0 < run->course->loss;
}

static void resolve(struct run *run, long i) {
    long session = i % SESSIONS, *lowest = &run->lowest[session];
    run->resolved[i] = 1;
    while ((*lowest - 1) * SESSIONS + session < run->records && run->resolved[(*lowest - 1) * SESSIONS + session])
        ++*lowest;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    if (message->err)
        topic_fail(rd_kafka_message_errstr(message));
    resolve(opaque, (long)(intptr_t)message->_private);
}

static void send_one(struct run *run, rd_kafka_t *rk, rd_kafka_topic_t *topic, long i) {
    struct body body = {run->number, i};
    uint64_t seq = (uint64_t)(i / SESSIONS) + 1, una = (uint64_t)run->lowest[i % SESSIONS];
    uint16_t lane = (uint16_t)(seq % TOPIC_LANES);
    unsigned char bytes[UNSALT_HEADER_SIZE];
    char key[48];
    unsalt_header_t header = {.lane = lane, .lanes = TOPIC_LANES, .epoch = 1, .seq = seq, .since = 1,
                              .una = una < seq ? una : seq};
    rd_kafka_resp_err_t err;
    if (is_lost(run, i)) {
        resolve(run, i);
        return;
    }
    /* The sessions' lanes are side by side in the partitions: no hash is needed to find them. */
    int n = snprintf(key, sizeof key, "session-%u-%ld#%u", run->number, i % SESSIONS, lane);
    unsalt_header_write(&header, bytes);
    while ((err = rd_kafka_producev(
                rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION((int32_t)(i % 2 * TOPIC_LANES + lane)),
                RD_KAFKA_V_KEY(key, (size_t)n), RD_KAFKA_V_VALUE(&body, sizeof body),
                RD_KAFKA_V_HEADER(UNSALT_HEADER_NAME, bytes, sizeof bytes), RD_KAFKA_V_OPAQUE((void *)(intptr_t)i),
                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        rd_kafka_poll(rk, 1);
    if (err)
        topic_fail(rd_kafka_err2str(err));
}

/* Reports are served while it waits; the last millisecond is slept through exactly. */
static void wait_until(rd_kafka_t *rk, double when) {
    double left;
    while ((left = when - bench_wall()) > 0.0015)
        rd_kafka_poll(rk, (int)(left * 1000 - 0.5));
    rd_kafka_poll(rk, 0);
    left = when - bench_wall();
    if (left > 0) {
        struct timespec pause = {.tv_nsec = (long)(left * 1e9)};
        nanosleep(&pause, NULL);
    }
}

static long next_of_lane(long i, uint16_t lane) {
    while ((uint16_t)((i / SESSIONS + 1) % TOPIC_LANES) != lane)
        i = (i / SESSIONS + 1) * SESSIONS;
    return i;
}

static double due(const struct run *run, long i) {
    return run->start + (double)i / run->course->rate;
}

static void *sender(void *opaque) {
    struct run *run = opaque;
    rd_kafka_conf_t *conf = topic_client_conf();
    long next[TOPIC_LANES], sent = 0;
    rd_kafka_conf_set(conf, "linger.ms", "1", NULL, 0);
    rd_kafka_conf_set(conf, "enable.idempotence", "true", NULL, 0);
    rd_kafka_conf_set_opaque(conf, run);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, topic_name(), NULL);
    for (uint16_t lane = 0; lane < TOPIC_LANES; lane++)
        next[lane] = next_of_lane(0, lane);
    run->start = bench_wall() + 0.5;
    for (;;) {
        int best = -1;
        double when = 0;
        for (int lane = 0; lane < TOPIC_LANES; lane++) {
            double at = due(run, next[lane]) + run->course->delay[lane] * 1e-3;
            if (next[lane] < run->records && (best < 0 || at < when)) {
                best = lane;
                when = at;
            }
        }
        if (best < 0)
            break;
        if (when > bench_wall())
            wait_until(rk, when);
        else if (next[best] % 64 == 0)
            rd_kafka_poll(rk, 0);
        send_one(run, rk, topic, next[best]);
        sent += !is_lost(run, next[best]);
        next[best] = next_of_lane(next[best] + 1, (uint16_t)best);
    }
    if (rd_kafka_flush(rk, SLOW_MS))
        topic_fail("not all records were accepted");
    atomic_store(&run->sent, sent);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
    return NULL;
}

/* ---- the readers */

/* The record that a message is, -1: none of this run. */
static long record_of(const struct run *run, const rd_kafka_message_t *message) {
    struct body body;
    if (message->err || message->len != sizeof body)
        return -1;
    memcpy(&body, message->payload, sizeof body);
    return body.run == run->number ? body.record : -1;
}

static rd_kafka_resp_err_t on_consume(rd_kafka_t *rk, rd_kafka_message_t *message, void *opaque) {
    struct run *run = opaque;
    long i = record_of(run, message);
    (void)rk;
    if (i >= 0 && run->read[i] == 0)
        run->read[i] = bench_wall();
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr,
                                  size_t size) {
    (void)conf;
    (void)errstr;
    (void)size;
    return rd_kafka_interceptor_add_on_consume(rk, "bench", on_consume, opaque);
}

static rd_kafka_conf_t *consumer_conf(struct run *run) {
    rd_kafka_conf_t *conf = topic_consumer_conf();
    rd_kafka_conf_interceptor_add_on_new(conf, "bench", on_new, run);
    rd_kafka_conf_set(conf, "log_level", "3", NULL, 0); /* gaps are what is measured: no log of them */
    return conf;
}

/* From where the partitions end now. */
static rd_kafka_topic_partition_list_t *from_here(rd_kafka_t *rk) {
    rd_kafka_topic_partition_list_t *list = topic_partitions();
    for (int i = 0; i < list->cnt; i++) {
        int64_t low, high;
        double until = bench_wall() + SLOW_MS * 1e-3;
        /* A topic that was just made may be without leaders for a moment. */
        while (rd_kafka_query_watermark_offsets(rk, topic_name(), list->elems[i].partition, &low, &high, SLOW_MS)) {
            if (bench_wall() > until)
                topic_fail("a partition doesn't tell its end");
            usleep(50000);
        }
        list->elems[i].offset = high;
    }
    return list;
}

static void note(struct run *run, rd_kafka_message_t *message, double now, long *got) {
    long i = record_of(run, message);
    if (message->err)
        topic_fail(rd_kafka_message_errstr(message));
    if (i >= 0 && run->had[i] == 0) {
        run->had[i] = now;
        ++*got;
    }
    rd_kafka_message_destroy(message);
}

/* Whether all that was sent has come; fails when nothing comes for long. */
static bool over(struct run *run, long got, double *last, bool came) {
    long sent = atomic_load(&run->sent);
    double now = bench_wall();
    if (came)
        *last = now;
    if (now - *last > SLOW_MS * 1e-3)
        topic_fail("records are missing");
    return sent >= 0 && got >= sent;
}

static void read_ordered(struct run *run, unsalt_t *consumer) {
    static rd_kafka_message_t *messages[BATCH];
    double last = bench_wall();
    for (long got = 0, before = 0; !over(run, got, &last, got > before);) {
        before = got;
        ssize_t n = unsalt_consume_batch(consumer, 100, messages, BATCH);
        double now = bench_wall();
        for (ssize_t i = 0; i < n; i++)
            note(run, messages[i], now, &got);
    }
}

static void read_raw(struct run *run, rd_kafka_t *rk) {
    double last = bench_wall();
    for (long got = 0, before = 0; !over(run, got, &last, got > before);) {
        before = got;
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        if (message)
            note(run, message, bench_wall(), &got);
    }
}

static void run_raw(struct run *run) {
    char errstr[512];
    pthread_t thread;
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, consumer_conf(run), errstr, sizeof errstr);
    if (!rk)
        topic_fail(errstr);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *list = from_here(rk);
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    pthread_create(&thread, NULL, sender, run);
    read_raw(run, rk);
    pthread_join(thread, NULL);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

static void run_ordered(struct run *run) {
    unsalt_conf_t *conf = topic_unsalt_conf();
    char errstr[512];
    pthread_t thread;
    if (unsalt_conf_set(conf, "seq.source", "unsalt", errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "salt.trust", "true", errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "start", "first", errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "gap.proof", run->course->proof ? "auto" : "off", errstr, sizeof errstr))
        topic_fail(errstr);
    unsalt_t *consumer = unsalt_new(consumer_conf(run), conf, errstr, sizeof errstr);
    if (!consumer)
        topic_fail(errstr);
    rd_kafka_topic_partition_list_t *list = from_here(unsalt_handle(consumer));
    if (unsalt_assign(consumer, list))
        topic_fail("the partitions can't be assigned");
    rd_kafka_topic_partition_list_destroy(list);
    pthread_create(&thread, NULL, sender, run);
    read_ordered(run, consumer);
    pthread_join(thread, NULL);
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
}

/* ---- figures */

/* Per round and share: in microseconds. */
struct figures {
    double total[SHARES][ROUNDS_MAX]; /* from when it was due until the application had it */
    double own[SHARES][ROUNDS_MAX];   /* from when all that it waited for was read until the application had it */
    long counted;
};

static void percentiles(double *values, size_t count, double (*shown)[ROUNDS_MAX], size_t round) {
    for (size_t s = 0; s < SHARES; s++)
        shown[s][round] = bench_percentile(values, count, shares[s]) * 1e6;
}

/* Without order a record may well have come before one of its session that was read later. */
static void evaluate(const struct run *run, bool ordered, struct figures *figures, size_t round) {
    double *total = calloc((size_t)run->records, sizeof *total), *own = calloc((size_t)run->records, sizeof *own);
    double ready[SESSIONS] = {0};
    size_t count = 0, own_count = 0;
    if (!total || !own)
        topic_fail("out of memory");
    for (long i = 0; i < run->records; i++) {
        double *all_read = &ready[i % SESSIONS];
        if (is_lost(run, i))
            continue;
        *all_read = run->read[i] > *all_read ? run->read[i] : *all_read;
        if (i < run->counted_from)
            continue;
        total[count++] = run->had[i] - due(run, i);
        if (*all_read <= run->had[i]) /* else one before it came after it was given up */
            own[own_count++] = run->had[i] - *all_read;
    }
    if (ordered && own_count < count)
        fprintf(stderr, "bench: %zu of %zu records were released before one that came late\n", count - own_count,
                count);
    percentiles(total, count, figures->total, round);
    percentiles(own, own_count, figures->own, round);
    figures->counted = (long)count;
    free(total);
    free(own);
}

static void do_run(const struct course *course, double seconds, bool ordered, struct figures *figures, size_t round) {
    static unsigned number;
    struct run run = {.course = course, .number = ++number};
    run.records = (long)(course->rate * (seconds + 1));
    run.counted_from = (long)course->rate;
    run.read = calloc((size_t)run.records, sizeof *run.read);
    run.had = calloc((size_t)run.records, sizeof *run.had);
    run.resolved = calloc((size_t)run.records, 1);
    if (!run.read || !run.had || !run.resolved)
        topic_fail("out of memory");
    for (int i = 0; i < SESSIONS; i++)
        run.lowest[i] = 1;
    atomic_store(&run.sent, -1);
    if (ordered)
        run_ordered(&run);
    else
        run_raw(&run);
    evaluate(&run, ordered, figures, round);
    free(run.read);
    free(run.had);
    free(run.resolved);
}

/* Ten values beyond it, or a percentile says nothing; of ten that are expected, a few may be among what was lost. */
static bool is_shown(double share, long counted) {
    return (1 - share) * (double)counted >= 9.5;
}

static void report(const struct course *course, struct figures *ordered, struct figures *raw, size_t rounds) {
    char name[128], metric[64];
    snprintf(name, sizeof name, "latency %s, %s", course->name, rd_kafka_version_str());
    for (size_t s = 0; s < SHARES; s++) {
        if (!is_shown(shares[s], ordered->counted))
            continue;
        snprintf(metric, sizeof metric, "due_to_released_p%g", shares[s] * 100);
        bench_spread(name, metric, "us", ordered->total[s], "rd_kafka_consumer_poll, no order", raw->total[s], rounds);
    }
    for (size_t s = 0; s < SHARES; s++) {
        if (!is_shown(shares[s], ordered->counted))
            continue;
        snprintf(metric, sizeof metric, "read_to_released_p%g", shares[s] * 100);
        bench_spread(name, metric, "us", ordered->own[s], NULL, NULL, rounds);
    }
}

int main(int argc, char **argv) {
    static struct figures ordered, raw;
    struct topic_load nothing = {TRAFFIC_ALL_HOT, FORM_HEADER, "none", 100, 1, 0, 0};
    size_t rounds = bench_full() ? 5 : 3;
    double seconds = bench_full() ? 5 : 3;
    bool wanted[COURSES] = {false}, some = false;
    for (int option; (option = getopt(argc, argv, "r:s:")) != -1;) {
        if (option == 'r')
            rounds = (size_t)atol(optarg);
        else if (option == 's')
            seconds = atof(optarg);
        else
            topic_fail("the head of bench/latency.c has the usage");
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || seconds <= 0)
        topic_fail("1 to 15 rounds, and some time");
    seconds = (double)bench_size((size_t)(seconds * 100)) / 100;
    for (; optind < argc; optind++) {
        int course = atoi(argv[optind]);
        if (course < 0 || course >= COURSES)
            topic_fail("there is no such case");
        some = wanted[course] = true;
    }
    topic_open(NULL, &nothing);
    for (int c = 0; c < COURSES; c++) {
        if (some ? !wanted[c] : !courses[c].reduced && !bench_full())
            continue;
        for (size_t round = 0; round < rounds; round++) {
            do_run(&courses[c], seconds, round % 2, round % 2 ? &ordered : &raw, round);
            do_run(&courses[c], seconds, !(round % 2), round % 2 ? &raw : &ordered, round);
        }
        report(&courses[c], &ordered, &raw, rounds);
    }
    topic_close();
    return 0;
}
