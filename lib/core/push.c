/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking a batch: in stretches by run.c where everything is ordinary, else record by record by arrival.c; then the
 * partitions' progress for horizon and `stalled`.
 */
#include <core/engine.h>

/* Matters only while something waits for a partition to be read on. */
static void progress(struct unsalt_core *core, const unsalt_core_in_t *in, size_t n) {
    uint32_t done = UINT32_MAX;
    if (!core->any_owed) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (in[i].part == done) {
            continue;
        }
        done = in[i].part;
        struct us_part *part = &core->parts[done];
        us_stall_progress(core, part);
        if (part->horizon.count && us_part_passed(part)) {
            part->moved = core->any_moved = true;
        }
    }
}

/* A partition whose next record is refused by a budget isn't being read, so its silence means nothing. */
static void refused(struct unsalt_core *core, const unsalt_core_in_t *in, int err) {
    if (err == UNSALT_CORE_BLOCKED) {
        struct us_part *part = &core->parts[in->part];
        us_stall_progress(core, part);
        part->refused = true;
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
        size_t taken = us_run(core, in + i, n - i, out, n_out);
        i += taken;
        if (taken) {
            continue;
        }
        int err = us_arrival(core, &in[i], out, n_out);
        if (err != UNSALT_CORE_OK) {
            *status = err;
            refused(core, &in[i], err);
            break;
        }
        i++;
    }
    progress(core, in, i);
    return i;
}
