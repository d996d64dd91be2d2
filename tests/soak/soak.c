/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak MINUTES: lives through as many simulated hours as fit into so many minutes, half in a rough world. Ends with
 * 0 if nothing was wrong and nothing grew. A run is repeated by UNSALT_SEED.
 */
#include <inttypes.h>
#include <soak/fixture/world.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_day(const struct world *w) {
    const struct world_totals *t = &w->totals;
    printf("day %" PRIu64 ": %" PRIu64 " records, %" PRIu64 " sessions, high water %zu bytes, quiet %zu\n",
           t->hours / 24, t->records, t->sessions, t->high_water, t->quiet_last);
    fflush(stdout);
}

static void print_totals(const struct world_totals *t) {
    printf("simulated %.1f days: %" PRIu64 " records, %" PRIu64 " sessions, %" PRIu64 " restarts, %" PRIu64
           " revokes, %" PRIu64 " late, %" PRIu64 " duplicates\ngaps:",
           (double)t->hours / 24, t->records, t->sessions, t->restarts, t->revokes, t->late, t->duplicates);
    for (int i = 0; i < UNSALT_GAP__CNT; i++)
        printf(" %s %" PRIu64, unsalt_gap_reason_name((unsalt_gap_reason_t)i), t->gaps[i]);
    printf("\nhigh-water memory %zu bytes; %zu when quiet in the end\n", t->high_water, t->quiet_last);
}

static bool live(bool rough, double seconds) {
    double end = wall() + seconds;
    char why[512];
    struct world *w = world_new(20000, rough);
    bool ok = true;
    printf("%s\n", rough ? "rough" : "calm");
    do {
        ok = world_hour(w);
        if (w->totals.hours % 24 == 0)
            print_day(w);
    } while (ok && wall() < end);
    print_totals(&w->totals);
    ok = world_end(w, why, sizeof(why)) && ok;
    if (!ok)
        printf("not ok: %s\n", why);
    return ok;
}

int main(int argc, char **argv) {
    double minutes = argc > 1 ? strtod(argv[1], NULL) : 5;
    bool calm = live(false, 30 * minutes), rough = live(true, 30 * minutes);
    return calm && rough ? EXIT_SUCCESS : EXIT_FAILURE;
}
