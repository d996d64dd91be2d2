/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes to mind first in C++: a std::map from number to record. */
#include "orderers.h"
#include <map>
#include <vector>

namespace {
struct record {
    const void *msg;
    int64_t offset;
    uint32_t part;
};
} // namespace

void order_by_map(const struct arrivals *arrivals, struct bench_runs *runs) {
    std::map<uint64_t, record> held;
    std::vector<int64_t> offsets(65536);
    uint64_t next = 1;
    size_t at = 0, copies = 0;
    struct bench_clock began = bench_start();
    while (at < arrivals->count) {
        size_t end = at + ARRIVALS_BATCH < arrivals->count ? at + ARRIVALS_BATCH : arrivals->count;
        for (; at < end; at++) {
            const struct arrival &arrival = arrivals->at[at];
            record record = {&held, offsets[arrival.lane]++, arrival.lane};
            if (arrival.seq < next || !held.emplace(arrival.seq, record).second)
                copies++;
        }
        while (!held.empty() && held.begin()->first == next) {
            held.erase(held.begin());
            next++;
        }
    }
    bench_stop(began, 1e9 / static_cast<double>(arrivals->count), runs);
    if (next != arrivals->highest + 1 || next - 1 + copies != arrivals->count)
        order_failed("map", "records are missing");
}
