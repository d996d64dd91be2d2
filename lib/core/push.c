/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking a batch: record by record through arrival.c, then the partition's progress for horizon and `stalled`. */
#include <core/engine.h>

static void progress(struct unsalt_core *core, uint32_t index) {
    struct us_part *part = &core->parts[index];
    us_stall_progress(core, part);
    if (us_horizon_passed(&part->horizon, part->last_offset + 1)) {
        part->moved = core->any_moved = true;
    }
}

size_t unsalt_core_push(unsalt_core_t *core, const unsalt_core_in_t *in, size_t n, uint64_t now,
                        unsalt_core_out_t *out, size_t *n_out, int *status) {
    us_core_time(core, now);
    *n_out = 0;
    *status = UNSALT_CORE_OK;
    size_t i = 0;
    while (i < n) {
        if (!us_events_room(core)) {
            *status = UNSALT_CORE_PULL;
            break;
        }
        int err = us_arrival(core, &in[i], out, n_out);
        if (err != UNSALT_CORE_OK) {
            *status = err;
            break;
        }
        i++;
        if (i == n || in[i].part != in[i - 1].part) {
            progress(core, in[i - 1].part);
        }
    }
    if (i < n && i > 0 && in[i].part == in[i - 1].part) {
        progress(core, in[i - 1].part);
    }
    return i;
}
