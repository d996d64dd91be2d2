/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One hot key with 1 ms of work, which sleeps, by the number of workers: unsalt's pipeline, which delivers in order,
 * and the same number of threads fed by a raw consumer without any order, in turns. UNSALT_TEST_BOOTSTRAP names the
 * cluster.
 */
#include "topic.h"
#include "work.h"
#include <stdio.h>

enum { RECORDS = 200000, MS = 1000 };

int main(void) {
    static const int workers[] = {1, 2, 5, 10, 20, 50, 100, 200};
    struct topic_load load = {TRAFFIC_ALL_HOT, FORM_HEADER, "none", 100, 1, RECORDS, 1};
    struct work work = {WORK_SLEEP, MS};
    size_t rounds = bench_full() ? 7 : 3;
    char name[64];
    if (!work_has_pipeline())
        return 0;
    topic_open(NULL, &load);
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        struct bench_runs pipeline = {.count = 0}, pool = {.count = 0};
        long records = (long)bench_size((size_t)workers[i] * 1000); /* a second of work */
        for (size_t round = 0; round < rounds; round++) {
            work_pipeline(&work, workers[i], records, 1, &pipeline);
            work_pool(&work, workers[i], records, &pool);
        }
        snprintf(name, sizeof name, "scaling, %d workers", workers[i]);
        bench_compare(name, "time_per_record", "us", &pipeline, "raw consumer, no order", &pool);
    }
    topic_close();
    return 0;
}
