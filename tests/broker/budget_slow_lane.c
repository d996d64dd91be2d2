/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane that is a million records behind the others (ten million with UNSALT_LONG=1) is merged with a budget of 10,000
 * records: the others are left unread meanwhile, not paused, and nothing is given up.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>

enum { LANES = 4, EACH = 50000, COLD = 100, BUDGET = 10000 };

/* Numbers of the lane, first..LANES * EACH. */
static void send_lane(struct sender *sender, uint64_t lane) {
    for (uint64_t seq = lane ? lane : LANES; seq <= (uint64_t)LANES * EACH; seq += LANES)
        sender_send(sender, "hot", seq);
}

/*
 * What stands in lanes 1..3 is the oldest, so a reader that goes by time begins there; lane 0 begins with `behind`
 * records of cold sessions, and its own are the newest.
 */
static void fill(const struct scene *scene, uint64_t behind, checker_log_t *accepted) {
    struct sender *hot = sender_open(scene, SENDER_STAMPED, LANES, accepted);
    struct sender *cold = sender_open(scene, SENDER_STAMPED, 1, accepted);
    char session[16];
    for (uint64_t lane = 1; lane < LANES; lane++)
        send_lane(hot, lane);
    sender_flush(hot);
    for (uint64_t i = 0; i < behind; i++) {
        snprintf(session, sizeof(session), "cold-%" PRIu64, i % COLD);
        sender_send(cold, session, i / COLD + 1);
    }
    sender_flush(cold);
    send_lane(hot, 0);
    sender_close(hot);
    sender_close(cold);
}

/* Reads all, and looks at what is held meanwhile. Returns the most that was. */
static uint64_t read_all(struct reader *reader, uint64_t all) {
    uint64_t most = 0, taken = 0;
    while (taken < all) {
        uint64_t n = reader_take(reader, all - taken < 500 ? all - taken : 500, 30);
        CHECK_THAT(n > 0, "nothing comes after %" PRIu64 " records", taken);
        taken += n;
        uint64_t held = reader_stats(reader).state[UNSALT_STATE_HELD];
        most = held > most ? held : most;
    }
    return most;
}

Test(budget_slow_lane, far_behind, .timeout = 1200) {
    struct scene scene = {.layout = "topics", .partitions = 1, .lanes = LANES};
    uint64_t behind = getenv("UNSALT_LONG") ? 10000000 : 1000000;
    checker_log_t *accepted = checker_log_new(), *delivered = checker_log_new();
    struct checker_report report;
    struct reader reader;

    scene_open(&scene, "slow");
    double began = scene_now();
    fill(&scene, behind, accepted);
    fprintf(stderr, "slow lane: %" PRIu64 " records written in %.1f s\n", behind + LANES * EACH, scene_now() - began);
    unsalt_conf_t *conf = scene_unsalt_conf(&scene, 0);
    scene_unsalt_set(conf, "budget.records", "10000");
    scene_unsalt_set(conf, "gap.timeout.ms", "50");
    scene_unsalt_set(conf, "gap.stall.max.ms", "1000");
    began = scene_now();
    reader_open(&reader, &scene, NULL, conf, delivered);
    uint64_t most = read_all(&reader, behind + LANES * EACH);
    double took = scene_now() - began;
    unsalt_stats_t stats = reader_stats(&reader);
    fprintf(stderr, "slow lane: read in %.1f s, %" PRIu64 " were held at most\n", took, most);
    for (int i = 0; i < UNSALT_GAP__CNT; i++)
        CHECK_THAT(stats.gaps[i] == 0, "%" PRIu64 " gaps were given up (%s)", stats.gaps[i],
                   unsalt_gap_reason_name((unsalt_gap_reason_t)i));
    for (int i = 0; i < UNSALT_BUDGET__CNT; i++)
        CHECK_U64(stats.budget_full[i], 0);
    CHECK_THAT(most >= BUDGET / 4 && most <= BUDGET * 3 / 4, "%" PRIu64 " records were held", most);
    CHECK_U64(stats.state[UNSALT_STATE_LATE], 0);
    CHECK(stats.conserved);
    CHECK_U64(reader_close(&reader), 0);
    checker_judge(accepted, delivered, &report);
    checker_print(&report, "judged", stderr);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    CHECK_U64(report.delivered, behind + LANES * EACH);
    checker_log_free(delivered);
    checker_log_free(accepted);
    scene_close(&scene);
}
