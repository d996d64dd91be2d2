/* SPDX-License-Identifier: BSD-2-Clause */
/* Rehearsal of faults: each key makes what it says, the same at every run, and the alerts of real trouble go off. */
#include <stdio.h>
#include <stdlib.h>
#include <kafka/rehearse.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { COUNT = 400, LANES = 2 };

static void fill(struct mock *mock) {
    mock_open(mock, 1);
    mock_topic(mock, "t", LANES);
    for (uint64_t seq = 1; seq <= COUNT; seq++)
        mock_send(mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
    mock_flush(mock);
}

struct run {
    struct heard heard;
    struct takings takings;
    unsalt_stats_t stats;
};

/* Reads everything that comes until the consumer has been quiet for a second; acknowledges, commits, closes. */
static void play(const struct mock *mock, const char *settings, struct run *run) {
    memset(run, 0, sizeof(*run));
    heard_init(&run->heard);
    unsalt_t *u = mock_consumer(mock, "g", settings, &run->heard);
    CHECK(!mock_assign(u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
    for (uint64_t quiet = now_ms(); now_ms() - quiet < (run->takings.count ? 1000 : 10000);) {
        size_t before = run->takings.count;
        take(u, &run->takings, before + 1, 100);
        quiet = run->takings.count > before ? now_ms() : quiet;
    }
    take_nothing(u, 10); /* the last one is acknowledged with this */
    unsalt_commit(u, 0);
    unsalt_stats(u, &run->stats, sizeof(run->stats));
    CHECK(run->stats.conserved);
    mock_done(u);
}

static unsigned drawn(const char *settings, unsalt_rehearsal_t fate) {
    unsalt_conf_t *conf = mock_conf(settings, NULL);
    unsigned n = 0;
    for (int32_t part = 0; part < LANES; part++)
        for (int64_t offset = 0; offset < COUNT / LANES; offset++)
            n += us_rehearse_draw(conf, "t", part, offset) == fate;
    unsalt_conf_destroy(conf);
    return n;
}

#define VANISH "gap.timeout.ms=50 rehearse.seed=7 rehearse.vanish=30000"

TEST(rehearse, vanished_records_leave_gaps) {
    struct mock mock;
    struct run run;
    fill(&mock);
    play(&mock, VANISH, &run);
    unsigned lost = drawn(VANISH, UNSALT_REHEARSAL_VANISH);
    CHECK_THAT(lost >= 3 && lost <= 40, "%u of %d vanish at 3 %%", lost, COUNT);
    CHECK_U64(run.takings.count, COUNT - lost);
    CHECK_U64(run.stats.rehearsed[UNSALT_REHEARSAL_VANISH], lost);
    CHECK_U64(run.stats.state[UNSALT_STATE_CONTROL], lost);
    CHECK_U64(run.stats.received, COUNT);
    CHECK(heard_count(&run.heard, UNSALT_EVENT_GAP) > 0);
    CHECK_U64(heard_count(&run.heard, UNSALT_EVENT_LATE), 0);
    /* Their offsets are accounted for. */
    CHECK_I64(mock_committed(&mock, "g", "t", 0) + mock_committed(&mock, "g", "t", 1), COUNT);
    takings_free(&run.takings);
    mock_close(&mock);
}

TEST(rehearse, the_same_seed_chooses_the_same_records) {
    struct mock mock;
    struct run one, two;
    fill(&mock);
    play(&mock, VANISH, &one);
    play(&mock, VANISH " read.batch=7", &two);
    CHECK_U64(one.takings.count, two.takings.count);
    for (size_t i = 0; i < one.takings.count; i++)
        CHECK_U64(one.takings.got[i].seq, two.takings.got[i].seq);
    CHECK(drawn(VANISH, UNSALT_REHEARSAL_VANISH) != drawn("rehearse.seed=8 rehearse.vanish=30000", 0) ||
          drawn(VANISH, UNSALT_REHEARSAL_VANISH) != drawn("rehearse.seed=9 rehearse.vanish=30000", 0));
    takings_free(&one.takings);
    takings_free(&two.takings);
    mock_close(&mock);
}

#define DUPLICATE "gap.timeout.ms=50 rehearse.seed=7 rehearse.duplicate=100000"

TEST(rehearse, duplicates_are_dropped) {
    struct mock mock;
    struct run run;
    fill(&mock);
    play(&mock, DUPLICATE, &run);
    unsigned copies = drawn(DUPLICATE, UNSALT_REHEARSAL_DUPLICATE);
    CHECK(copies > 10);
    CHECK_U64(check_order(&run.takings, 1), COUNT);
    CHECK_U64(run.stats.rehearsed[UNSALT_REHEARSAL_DUPLICATE], copies);
    CHECK_U64(run.stats.state[UNSALT_STATE_DUPLICATE], copies);
    CHECK_U64(run.stats.received, COUNT + copies);
    CHECK_U64(heard_count(&run.heard, UNSALT_EVENT_DUPLICATE), copies);
    CHECK_U64(run.stats.state[UNSALT_STATE_FENCED], 0);
    CHECK_I64(mock_committed(&mock, "g", "t", 0) + mock_committed(&mock, "g", "t", 1), COUNT);
    takings_free(&run.takings);
    mock_close(&mock);
}

#define LATE "gap.timeout.ms=50 rehearse.seed=3 rehearse.late=20000"

TEST(rehearse, late_records_come_after_their_gap) {
    struct mock mock;
    struct run run;
    uint64_t released = 0, late = 0;
    fill(&mock);
    play(&mock, LATE, &run);
    unsigned wanted = drawn(LATE, UNSALT_REHEARSAL_LATE);
    CHECK_THAT(wanted >= 2, "%u are late", wanted);
    CHECK_U64(run.takings.count, COUNT);
    for (size_t i = 0; i < run.takings.count; i++) {
        released += run.takings.got[i].state == UNSALT_STATE_RELEASED;
        late += run.takings.got[i].state == UNSALT_STATE_LATE;
    }
    CHECK_U64(late, wanted);
    CHECK_U64(released, COUNT - wanted);
    CHECK_U64(heard_count(&run.heard, UNSALT_EVENT_LATE), wanted);
    CHECK_U64(run.stats.rehearsed[UNSALT_REHEARSAL_LATE], wanted);
    CHECK(heard_count(&run.heard, UNSALT_EVENT_GAP) > 0);
    CHECK_U64(run.stats.unacked, 0);
    CHECK_I64(mock_committed(&mock, "g", "t", 0) + mock_committed(&mock, "g", "t", 1), COUNT);
    takings_free(&run.takings);
    mock_close(&mock);
}

/* The commit doesn't go over a record that is kept back; what is kept back at the end is read again. */
TEST(rehearse, a_record_that_is_kept_back_is_not_lost) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    fill(&mock);
    heard_init(&heard);
    unsalt_t *u = mock_consumer(&mock, "g", "gap.timeout.ms=-1 rehearse.seed=3 rehearse.late=20000", &heard);
    CHECK(!mock_assign(u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
    take(u, &takings, COUNT, 2000); /* up to the first one that is kept back */
    size_t before = takings.count;
    CHECK(before < COUNT);
    unsalt_commit(u, 0);
    mock_done(u);
    CHECK(mock_committed(&mock, "g", "t", 0) + mock_committed(&mock, "g", "t", 1) <= (int64_t)before + 1);
    u = mock_consumer(&mock, "g", "gap.timeout.ms=-1", NULL);
    CHECK(!mock_assign(u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    CHECK(take(u, &takings, COUNT, 15000));
    CHECK_U64(takings.got[COUNT - 1].seq, COUNT);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

TEST(rehearse, a_budget_counts_as_full) {
    struct mock mock;
    struct run run;
    fill(&mock);
    play(&mock, "gap.timeout.ms=-1 read.batch=100 rehearse.seed=5 rehearse.budget=50000", &run);
    uint64_t fired = run.stats.rehearsed[UNSALT_REHEARSAL_BUDGET];
    CHECK_THAT(fired > 0, "no record that had to wait was chosen");
    CHECK_U64(run.stats.budget_full[UNSALT_BUDGET_RECORDS], fired);
    CHECK(heard_count(&run.heard, UNSALT_EVENT_BUDGET) > 0);
    CHECK(run.stats.gaps[UNSALT_GAP_OVERFLOW] > 0);
    CHECK_U64(run.takings.count, COUNT); /* what gave way comes late */
    takings_free(&run.takings);
    mock_close(&mock);
}

/* ---- being on, and off */

static int most_urgent = 7;
static char urgent[512];

static void on_log(void *opaque, int level, const char *fac, const char *line) {
    (void)opaque;
    (void)fac;
    if (level < most_urgent) {
        most_urgent = level;
        snprintf(urgent, sizeof(urgent), "%s", line);
    }
}

TEST(rehearse, it_is_loud) {
    struct mock mock;
    mock_open(&mock, 1);
    unsalt_conf_t *conf = mock_conf("rehearse.late=1", NULL);
    unsalt_conf_set_log_cb(conf, on_log, NULL);
    unsalt_t *u = mock_consumer_of(mock_rd_conf(&mock, "g"), conf);
    CHECK_I64(most_urgent, 1);
    CHECK_THAT(strstr(urgent, "REHEARSAL IS ON"), "%s", urgent);
    mock_done(u);
    mock_close(&mock);
}

TEST(rehearse, without_keys_nothing_happens) {
    struct mock mock;
    struct run run;
    fill(&mock);
    play(&mock, "rehearse.seed=7", &run);
    CHECK_U64(check_order(&run.takings, 1), COUNT);
    for (int i = 0; i < UNSALT_REHEARSAL__CNT; i++)
        CHECK_U64(run.stats.rehearsed[i], 0);
    CHECK_U64(run.stats.received, COUNT);
    CHECK_U64(run.stats.state[UNSALT_STATE_RELEASED], COUNT);
    takings_free(&run.takings);
    mock_close(&mock);
}

TEST(rehearse, no_more_than_all_records) {
    char errstr[256] = "";
    rd_kafka_conf_t *rd_conf = rd_kafka_conf_new();
    unsalt_conf_t *conf = mock_conf("rehearse.late=500000 rehearse.vanish=500001", NULL);
    CHECK(!unsalt_new(rd_conf, conf, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, "1000001 of a million"), "%s", errstr);
    unsalt_conf_destroy(conf);
    rd_kafka_conf_destroy(rd_conf);
}

/* A million draws at each rate come near it, and seeds don't agree. */
TEST(rehearse, rates_are_met) {
    unsalt_conf_t *conf = mock_conf("rehearse.seed=1 rehearse.vanish=1000 rehearse.duplicate=10000 "
                                    "rehearse.late=100000 rehearse.budget=500000", NULL);
    static const double rates[] = {0.001, 0.01, 0.1, 0.5};
    uint64_t count[UNSALT_REHEARSAL__CNT + 1] = {0};
    for (int64_t offset = 0; offset < 1000000; offset++)
        count[us_rehearse_draw(conf, "t", 3, offset)]++;
    for (int i = 0; i < UNSALT_REHEARSAL__CNT; i++)
        CHECK_THAT((double)count[i] > 0.85e6 * rates[i] && (double)count[i] < 1.15e6 * rates[i], "%" PRIu64 " at %g",
                   count[i], rates[i]);
    unsalt_conf_destroy(conf);
}
