/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/waits.h>
#include <unsalt/types.h>

#define US 1000u
#define MS 1000000u
#define SEC UINT64_C(1000000000)

static const uint64_t bounds[UNSALT_WAIT_BUCKETS] = {0,        100 * US, 300 * US, MS,       3 * MS,    10 * MS,
                                                     30 * MS,  100 * MS, 300 * MS, SEC,      3 * SEC,   10 * SEC,
                                                     30 * SEC, 100 * SEC, 300 * SEC, UNSALT_NEVER};

const uint64_t *unsalt_wait_bounds(void) {
    return bounds;
}

unsigned us_wait_bucket(uint64_t ns) {
    unsigned i = 0;
    while (ns > bounds[i]) {
        i++;
    }
    return i;
}

uint64_t unsalt_wait_quantile(const uint64_t count[UNSALT_WAIT_BUCKETS], double share) {
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < UNSALT_WAIT_BUCKETS; i++) {
        all += count[i];
    }
    for (int i = 0; all > 0 && i < UNSALT_WAIT_BUCKETS; i++) {
        seen += count[i];
        if (count[i] > 0 && (double)seen >= share * (double)all) {
            return bounds[i];
        }
    }
    return 0;
}
