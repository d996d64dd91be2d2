/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Relays in several processes that are killed, stopped until they are thrown out, and joined by others, while one
 * consumer merges their results. It must see each record once (and has no copy to drop that the input had not), in the
 * order of its session, and take for lost only what was never sent.
 */
#include <broker/fixture/copies.h>
#include <broker/fixture/stamper.h>
#include <broker/fixture/workers.h>
#include <signal.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/prng.h>
#include <unistd.h>

enum { HOT = 4000, COLD = 20, EACH = 20, SESSIONS = 3, PATIENCE = 100 /* seconds, of a wait */ };

static int longer(void) {
    return getenv("UNSALT_LONG") ? 10 : 1;
}

/* ---- what feeds */

static void feed_woven(struct workers *workers, checker_log_t *accepted) {
    sender_weave(&workers->in, SENDER_UNSALT, (uint64_t)(HOT * longer()), COLD, EACH, accepted);
}

/* Sessions and numbers in the payload, keys salted, cold ones raw. */
static void feed_json(struct workers *workers, checker_log_t *accepted) {
    sender_weave(&workers->in, SENDER_JSON, (uint64_t)(HOT * longer()), COLD, EACH, accepted);
}

/* Hot sessions whose headers prove as much as is true: all that was sent before is settled. `lost` of 100 never are. */
static void feed_stamped(struct workers *workers, checker_log_t *accepted, unsigned lost) {
    struct prng prng = prng_start(1);
    struct stamper stamper;
    uint64_t last = (uint64_t)(HOT * longer());
    stamper_open(&stamper, &workers->in, NULL, NULL, accepted);
    stamper.una = 0;
    for (uint64_t n = 1; n <= last; n++) {
        for (int i = 0; i < SESSIONS; i++) {
            char session[16];
            snprintf(session, sizeof session, "hot-%d", i);
            bool sure = n == 1 || n + (uint64_t)(4 * workers->in.lanes) > last; /* the last ones prove the others */
            if (sure || !prng_chance(&prng, lost))
                stamper_send(&stamper, session, n);
        }
    }
    stamper_close(&stamper);
}

static void feed_all(struct workers *workers, checker_log_t *accepted) {
    feed_stamped(workers, accepted, 0);
}

static void feed_with_losses(struct workers *workers, checker_log_t *accepted) {
    feed_stamped(workers, accepted, 3);
}

/* Half of them, and the rest when it is told to. */
static void feed_halves(struct workers *workers, checker_log_t *accepted) {
    struct stamper stamper;
    stamper_open(&stamper, &workers->in, NULL, NULL, accepted);
    stamper.una = 0;
    for (uint64_t n = 1; n <= HOT; n++) {
        stamper_send(&stamper, "hot-0", n);
        stamper_send(&stamper, "hot-1", n);
        if (n == HOT / 2)
            stamper_flush(&stamper);
        while (n == HOT / 2 && !workers->shared->go && !workers->shared->finished)
            usleep(5000);
    }
    stamper_close(&stamper);
}

/* Numbers that a producer has given up, marked as it does it. */
static void feed_with_marks(struct workers *workers, checker_log_t *accepted) {
    struct stamper stamper;
    stamper_open(&stamper, &workers->in, NULL, NULL, accepted);
    for (uint64_t n = 1; n <= HOT; n++) {
        if (n % 50 < 3 && n > 3 && n < HOT - 3) {
            if (n % 50 == 2)
                stamper_mark(&stamper, "hot", n - 2, n);
        } else {
            stamper_send(&stamper, "hot", n);
        }
    }
    stamper_close(&stamper);
}

/* ---- what is done to them */

static void wait_owned(const struct workers *workers, int i) {
    for (double until = scene_now() + PATIENCE; workers->shared->owned[i] == 0 && !workers_merged(workers);) {
        CHECK_THAT(scene_now() < until, "worker %d has no partitions", i);
        usleep(5000);
    }
}

/* Each of n workers has some partitions, and all of them have so many. */
static void wait_shares(const struct workers *workers, int n, int partitions) {
    double until = scene_now() + PATIENCE;
    for (int sum = 0, least = 0; sum != partitions || least == 0; usleep(5000)) {
        sum = least = workers->shared->owned[0];
        for (int i = 1; i < n; i++) {
            sum += workers->shared->owned[i];
            least = workers->shared->owned[i] < least ? workers->shared->owned[i] : least;
        }
        CHECK_THAT(scene_now() < until, "%d workers have %d partitions, one has %d", n, sum, least);
    }
}

/* Kills one after the other, wherever it is, and starts it again. */
static void kill_some(struct workers *workers, int n, int kills, struct prng *prng) {
    for (int i = 0; i < n; i++)
        workers_start(workers, i);
    for (int i = 0; i < n; i++)
        wait_owned(workers, i);
    for (int k = 0; k < kills && !workers_merged(workers); k++) {
        int i = (int)prng_below(prng, (uint64_t)n);
        CHECK_THAT(workers_wait(workers, -1, prng_below(prng, 300), PATIENCE), "nothing is relayed any more");
        usleep((useconds_t)prng_below(prng, 40000));
        workers_kill(workers, i);
        if (prng_chance(prng, 50))
            usleep((useconds_t)prng_below(prng, 500000));
        workers_start(workers, i);
    }
}

static void check_clean(struct workers *workers) {
    const struct workers_shared *shared = workers->shared;
    CHECK_THAT(checker_clean(&shared->report), "%s", shared->report.fault);
    CHECK_U64(shared->report.delivered, shared->total);
    if (shared->duplicates > 0) { /* each record of the input has one result: no more than the input has itself */
        uint64_t input = copies_in(&workers->in), result = copies_in(&workers->out);
        CHECK_THAT(result <= input, "%d copies in the input, %d in the result", (int)input, (int)result);
    }
    CHECK_U64(shared->events[UNSALT_EVENT_LATE] + shared->events[UNSALT_EVENT_STALE], 0);
    CHECK_U64(shared->events[UNSALT_EVENT_PROOF_OFF], 0);
}

static uint64_t gaps(const struct workers *workers) {
    uint64_t sum = 0;
    for (int i = 0; i < UNSALT_GAP__CNT; i++)
        sum += workers->shared->gaps[i];
    return sum;
}

static void run(struct workers *workers, const char *word, int n, int kills) {
    struct prng prng = prng_start(0);
    workers_open(workers, word);
    workers_begin(workers);
    kill_some(workers, n, kills * longer(), &prng);
    CHECK(workers_end(workers, PATIENCE));
    check_clean(workers);
}

/* ---- the tests */

Test(workers, killed_and_each_record_once_in_order, .timeout = 300) {
    struct workers workers = {.in = {.layout = "topics", .partitions = 2, .lanes = 4},
                              .out = {.layout = "topics", .partitions = 3, .lanes = 4},
                              .feed = feed_woven, .batch = 50, .sleep_us = 2000};
    run(&workers, "workers", 3, 5);
    CHECK_U64(gaps(&workers), 0);
    workers_close(&workers);
}

/* What a header proves of a lane is true of the result's lane too, whoever relays it, killed or not. */
Test(workers, what_is_proven_was_never_sent, .timeout = 300) {
    struct workers workers = {.in = {.layout = "topics", .partitions = 2, .lanes = 4},
                              .out = {.layout = "topics", .partitions = 3, .lanes = 4},
                              .feed = feed_with_losses, .batch = 40, .sleep_us = 1000};
    run(&workers, "proof", 3, 5);
    CHECK(workers.shared->gaps[UNSALT_GAP_PROVEN] > 0);
    CHECK_U64(workers.shared->gaps[UNSALT_GAP_PROVEN], gaps(&workers));
    workers_close(&workers);
}

/* Fewer lanes in the result: each carries numbers of two lanes of the input, of which one is ahead. */
Test(workers, spread_anew_proves_nothing, .timeout = 300) {
    struct workers workers = {.in = {.layout = "topics", .partitions = 2, .lanes = 4},
                              .out = {.layout = "topics", .partitions = 2, .lanes = 2},
                              .feed = feed_all, .batch = 40, .sleep_us = 1000};
    run(&workers, "anew", 3, 3);
    CHECK_U64(gaps(&workers), 0);
    workers_close(&workers);
}

/* A topic as it is in the field, with 12 consumers: they do the work, and one member merges. */
Test(workers, twelve_on_a_hash_topic, .timeout = 300) {
    struct workers workers = {.in = {.layout = "hash", .partitions = 12, .lanes = 4},
                              .out = {.layout = "hash", .partitions = 12, .lanes = 4},
                              .feed = feed_json, .batch = 50, .sleep_us = 2000};
    run(&workers, "twelve", 12, 3);
    CHECK_U64(gaps(&workers), 0);
    workers_close(&workers);
}

/* The result is lane topics, which scale: the same step makes them of a hash topic. */
Test(workers, a_hash_topic_becomes_lane_topics, .timeout = 300) {
    struct workers workers = {.in = {.layout = "hash", .partitions = 6, .lanes = 3},
                              .out = {.layout = "topics", .partitions = 2, .lanes = 4},
                              .feed = feed_json, .batch = 50, .sleep_us = 1000};
    run(&workers, "become", 3, 3);
    CHECK_U64(gaps(&workers), 0);
    workers_close(&workers);
}

/* Records without numbers: in the order of their partition, once, since a transaction has outputs and offsets. */
Test(workers, without_numbers, .timeout = 300) {
    static const char *const input[] = {"seq.source", "unsalt", NULL};
    struct workers workers = {.in = {.layout = "hash", .partitions = 4, .lanes = 1},
                              .out = {.layout = "hash", .partitions = 3, .lanes = 1},
                              .input = input, .feed = feed_json, .batch = 50, .sleep_us = 1000};
    run(&workers, "plain", 3, 3);
    CHECK_U64(workers.shared->unsequenced, workers.shared->total);
    workers_close(&workers);
}

/*
 * Markers of the producer go on, and a record that has no result leaves one: nobody waits for these numbers. Where
 * nothing is proven besides, the merging consumer needs room for as many as one lane may be ahead of another.
 */
Test(workers, markers, .timeout = 300) {
    static const char *const merging[] = {"session.skips.max", "65535", NULL};
    struct workers workers = {.in = {.layout = "topics", .partitions = 2, .lanes = 4},
                              .out = {.layout = "topics", .partitions = 2, .lanes = 3},
                              .feed = feed_with_marks, .batch = 50, .sleep_us = 500, .drop = 7, .merging = merging};
    run(&workers, "marks", 3, 3);
    CHECK(workers.shared->gaps[UNSALT_GAP_MARKER] > HOT / 50);
    CHECK_U64(workers.shared->gaps[UNSALT_GAP_MARKER], gaps(&workers));
    workers_close(&workers);
}

static int owned_by_others(const struct workers *workers) {
    return workers->shared->owned[1] + workers->shared->owned[2];
}

static void wait_for(const volatile uint64_t *value, uint64_t least, const char *what) {
    for (double until = scene_now() + PATIENCE; *value < least; usleep(5000))
        CHECK_THAT(scene_now() < until, "%s", what);
}

/*
 * One stops amid a batch until the group has given its partitions to others, which do what there is. Then it goes on:
 * what it had is refused, and does no harm. When the others are gone it works again.
 */
Test(workers, zombie, .timeout = 300) {
    struct workers workers = {.in = {.layout = "topics", .partitions = 2, .lanes = 4},
                              .out = {.layout = "topics", .partitions = 2, .lanes = 4},
                              .feed = feed_halves, .batch = 100, .sleep_us = 1000, .stop_at = 250};
    workers_open(&workers, "zombie");
    for (int i = 0; i < 3; i++)
        workers_start(&workers, i);
    wait_shares(&workers, 3, 8); /* of which each has a lane at least with a quarter of a session */
    workers_begin(&workers);
    wait_for(&workers.shared->calls[0], 250, "worker 0 has not been called");
    for (double until = scene_now() + PATIENCE; owned_by_others(&workers) < 8; usleep(5000))
        CHECK_THAT(scene_now() < until, "the others have %d partitions", owned_by_others(&workers));
    wait_for(&workers.shared->merged, HOT, "the others don't do it all");
    uint64_t before = workers.shared->done[0];
    kill(workers.pids[0], SIGCONT);
    wait_for(&workers.shared->aborts[0], 1, "worker 0 has given up no batch");
    workers_kill(&workers, 1);
    workers_kill(&workers, 2);
    workers.shared->go = true;
    CHECK(workers_end(&workers, PATIENCE));
    check_clean(&workers);
    CHECK_U64(gaps(&workers), 0);
    CHECK_THAT(workers.shared->done[0] >= before + HOT, "worker 0 has done %d since",
               (int)(workers.shared->done[0] - before));
    workers_close(&workers);
}
