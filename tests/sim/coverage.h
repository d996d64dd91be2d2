/* SPDX-License-Identifier: BSD-2-Clause */
/* What happened in all schedules: a simulator in which nothing happens finds nothing. */
#ifndef TESTS_SIM_COVERAGE_H
#define TESTS_SIM_COVERAGE_H
#include <stdint.h>
#include <unsalt/core.h>

/* X(name, text) */
#define SIM_COVERAGE(X)                                                                             \
    X(schedules, "schedules")                                                                       \
    X(steps, "operations")                                                                          \
    X(exact, "schedules whose verdicts are judged one by one")                                      \
    X(checkpoints, "schedules with checkpoint")                                                     \
    X(small_budgets, "schedules with small budgets")                                                \
    X(records, "records written")                                                                   \
    X(lost, "numbers lost by their producer")                                                       \
    X(resent, "numbers sent again, behind higher ones")                                             \
    X(copies, "second copies")                                                                      \
    X(markers, "gap markers")                                                                       \
    X(noise, "records without number, malformed ones, heartbeats")                                  \
    X(epochs, "producers restarted, higher epoch")                                                  \
    X(backwards, "producers restarted without epoch")                                               \
    X(below_starts, "numbers below a beginning in the middle that stood in a log unread, and legally so") \
    X(backwards_met, "sessions met by a later run first, while not looking for their start: not judged") \
    X(resizes, "S changed")                                                                         \
    X(jumps, "numbers jumped")                                                                      \
    X(pushed, "records read by members")                                                            \
    X(handed, "records handed out")                                                                 \
    X(again, "of those, handed out before")                                                         \
    X(acked, "acknowledged")                                                                        \
    X(acked_late, "acknowledged after their generation was over: refused")                          \
    X(eager, "rebalances, eager")                                                                   \
    X(incremental, "rebalances, incremental")                                                       \
    X(moved, "partitions moved")                                                                    \
    X(pieces, "lane sets that came, went or stayed in pieces")                                      \
    X(crashes, "members crashed")                                                                   \
    X(starts, "members started")                                                                    \
    X(zombies, "members thrown out without knowing it")                                             \
    X(commits, "commits applied")                                                                   \
    X(commits_lost, "commits that failed")                                                          \
    X(commits_unheard, "commits applied whose answer got lost")                                     \
    X(commits_fenced, "commits refused: their generation was over")                                 \
    X(restores, "lane sets whose cursors were restored")                                            \
    X(questions, "horizon questions")                                                               \
    X(answers, "answered")                                                                          \
    X(unanswered, "failed")                                                                         \
    X(clocks, "clocks that went back or jumped")                                                    \
    X(pauses, "partitions paused")                                                                  \
    X(busy, "applications that stayed in their handler")                                            \
    X(frozen, "leaders frozen")                                                                     \
    X(trims, "log starts moved")                                                                    \
    X(refused, "reads refused by a full budget")

struct sim_coverage {
#define X(name, text) uint64_t name;
    SIM_COVERAGE(X)
#undef X
    uint64_t gaps[UNSALT_GAP__CNT];
    uint64_t gaps_of_present[UNSALT_GAP__CNT]; /* gaps whose numbers stood in the log, unread: legal ones */
    uint64_t events[UNSALT_CORE_EV__CNT];
    uint64_t states[UNSALT_STATE__CNT];
    uint64_t budgets[UNSALT_BUDGET__CNT][UNSALT_OUTCOME__CNT];
};

void sim_coverage_add(struct sim_coverage *sum, const struct sim_coverage *more);
void sim_coverage_print(const struct sim_coverage *coverage);
/* Says what never happened, though it should in so many schedules. Returns how many of those there are. */
unsigned sim_coverage_holes(const struct sim_coverage *coverage);
#endif
