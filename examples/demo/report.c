/* SPDX-License-Identifier: BSD-2-Clause */
/* What is printed at the end. The figures come from the checker, which doesn't know the library. */
#include "demo.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void row(const char *what, uint64_t raw, uint64_t ordered) {
    printf("  %-34s %22" PRIu64 " %22" PRIu64 "\n", what, raw, ordered);
}

static void side_by_side(const struct demo *demo, const struct checker_report *raw,
                         const struct checker_report *ordered) {
    printf("\n  %-34s %22s %22s\n", "", "rd_kafka_consumer_poll", "unsalt_consumer_poll");
    row("messages handed out", checker_log_records(demo->raw.log), checker_log_records(demo->ordered.log));
    row("inversions (out of order)", raw->out_of_order, ordered->out_of_order);
    row("longest displacement, in places", raw->displacement, ordered->displacement);
    row("copies handed out", raw->repeated, ordered->repeated);
}

static void format_wait(uint64_t ns, char *text, size_t size) {
    if (ns == 0)
        snprintf(text, size, "not at all");
    else if (ns == UNSALT_NEVER)
        snprintf(text, size, "longer");
    else if (ns < 1000000)
        snprintf(text, size, "<= %" PRIu64 " us", ns / 1000);
    else
        snprintf(text, size, "<= %" PRIu64 " ms", ns / 1000000);
}

static void histogram(const unsalt_stats_t *stats) {
    static const char bar[] = "########################################";
    const uint64_t *bounds = unsalt_wait_bounds();
    uint64_t most = 1;
    char text[32];
    int i;
    for (i = 0; i < UNSALT_WAIT_BUCKETS; i++)
        most = stats->wait_count[i] > most ? stats->wait_count[i] : most;
    printf("\n  how long records waited for their turn\n");
    for (i = 0; i < UNSALT_WAIT_BUCKETS; i++) {
        int width = (int)((sizeof bar - 1) * stats->wait_count[i] / most);
        if (!stats->wait_count[i])
            continue;
        format_wait(bounds[i], text, sizeof text);
        printf("  %12s %8" PRIu64 " %.*s\n", text, stats->wait_count[i], width ? width : 1, bar);
    }
}

/* The library's ledger must add up, and agree with the log of the cluster. */
static bool conserved(const struct demo *demo, const struct checker_report *ordered) {
    const unsalt_stats_t *stats = &demo->stats;
    return stats->conserved && stats->received == checker_log_records(demo->accepted) &&
           stats->state[UNSALT_STATE_RELEASED] == ordered->records &&
           stats->state[UNSALT_STATE_DUPLICATE] == ordered->copies;
}

static bool complain(const char *why) {
    printf("demo: FAILED: %s\n", why);
    return false;
}

int demo_report(struct demo *demo) {
    struct checker_report raw, ordered;
    bool kept, ok = true;
    checker_judge(demo->accepted, demo->raw.log, &raw);
    checker_judge(demo->accepted, demo->ordered.log, &ordered);
    side_by_side(demo, &raw, &ordered);
    if (demo->gap_events)
        printf("\n  gap: %" PRIu64 "..%" PRIu64 " of %s was stamped, never sent; given up after %.0f ms, verdict %s\n",
               demo->gap.first, demo->gap.last, DEMO_HOT, (double)demo->gap.waited_ns / 1e6,
               unsalt_gap_reason_name(demo->gap.reason));
    histogram(&demo->stats);
    printf("\n");
    kept = conserved(demo, &ordered);
    if (demo->fault)
        printf("demo: FAULT=1: %s:%" PRIu64 " was held back behind the library's back\n", DEMO_HOT, DEMO_FAULT);
    if (!checker_clean(&ordered))
        ok = complain(ordered.fault);
    if (raw.lost || raw.unknown)
        ok = complain("the raw consumer did not see what the cluster accepted");
    if (ordered.holes != 1 || demo->gap_events != ordered.holes || demo->gap.first != DEMO_MISSING ||
        demo->gap.last != DEMO_MISSING)
        ok = complain("the gap that was reported is not the hole in the log of the cluster");
    if (raw.out_of_order != demo->raw.inverted || ordered.out_of_order != demo->ordered.inverted)
        ok = complain("the lines of progress counted other inversions than the checker");
    if (!kept)
        ok = complain("the ledger does not add up");
    printf("demo: records=%" PRIu64 " delivered=%" PRIu64 " out_of_order=%" PRIu64 " duplicates_dropped=%" PRIu64
           " gaps=%" PRIu64 " lost=%" PRIu64 " conserved=%s\n",
           ordered.records, ordered.delivered, ordered.out_of_order, ordered.copies - ordered.repeated, ordered.holes,
           ordered.lost, kept ? "yes" : "no");
    return ok ? 0 : 1;
}
