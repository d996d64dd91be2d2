/* SPDX-License-Identifier: BSD-2-Clause */
/* The consumer short of memory for a moment. The library's allocator is replaced by one that can be told to fail. */
#include <base/mem.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

static atomic_int failures; /* of the next allocations */

static bool fails(void) {
    int left = atomic_load(&failures);
    while (left > 0 && !atomic_compare_exchange_weak(&failures, &left, left - 1)) {
    }
    return left > 0;
}

#include <support/mem_that_fails.h>

/* 200 held records must find a way out; the first tries find no memory for it. */
TEST(rules_memory, a_close_waits_for_memory) {
    struct mock mock;
    struct heard heard;
    unsalt_stats_t stats = {0};
    heard_init(&heard);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 1);
    for (uint64_t seq = 2; seq <= 201; seq++) {
        mock_send(&mock, "t", 0, "s", seq, 1);
    }
    mock_flush(&mock);
    unsalt_t *u = mock_consumer(&mock, "g", "gap.timeout.ms=-1", &heard);
    CHECK(!mock_assign(u, "t", 1, RD_KAFKA_OFFSET_BEGINNING));
    for (uint64_t until = now_ms() + 15000; now_ms() < until && stats.state[UNSALT_STATE_HELD] < 200;) {
        take_nothing(u, 20);
        CHECK_I64(unsalt_stats(u, &stats, sizeof(stats)), 0);
    }
    CHECK_U64(stats.state[UNSALT_STATE_HELD], 200);
    atomic_store(&failures, 6);
    CHECK(!unsalt_consumer_close(u));
    CHECK_I64(atomic_load(&failures), 0);
    CHECK_I64(unsalt_stats(u, &stats, sizeof(stats)), 0);
    CHECK_U64(stats.state[UNSALT_STATE_HELD], 0);
    CHECK_U64(stats.state[UNSALT_STATE_REVOKED], 200);
    CHECK(stats.conserved);
    mock_done(u);
    mock_close(&mock);
}
