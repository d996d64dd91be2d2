/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offsets that an earlier owner had done beyond its position. Their records are read again with those that were not
 * done, and leave as duplicates before anything is asked about their session: so it doesn't matter what they are
 * (late, of a run that is over, without a number), and none of them is handed out twice.
 */
#include <core/engine.h>
#include <string.h>

bool us_ranges_ascending(const unsalt_core_range_t *ranges, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].first > ranges[i].last || (i > 0 && ranges[i].first <= ranges[i - 1].last)) {
            return false;
        }
    }
    return true;
}

int unsalt_core_done_before(unsalt_core_t *core, uint32_t index, const unsalt_core_range_t *ranges, size_t count) {
    struct us_part *part = us_part_get(core, index);
    if (!part || count > UINT32_MAX || !us_ranges_ascending(ranges, count)) {
        return UNSALT_CORE_INVAL;
    }
    unsalt_core_range_t *copy = NULL;
    if (count > 0 && !(copy = us_realloc_array(&core->mem, NULL, count, sizeof(*copy)))) {
        return UNSALT_CORE_NOMEM;
    }
    if (count > 0) {
        memcpy(copy, ranges, count * sizeof(*copy));
    }
    us_done_before_destroy(&part->done_before, &core->mem);
    part->done_before = (struct us_done_before){.ranges = copy, .count = (uint32_t)count};
    part->done_ahead = count > 0;
    return UNSALT_CORE_OK;
}

void us_done_before_destroy(struct us_done_before *done, const struct unsalt_mem *mem) {
    us_free(mem, done->ranges);
    *done = (struct us_done_before){0};
}

int64_t us_done_before_pass(const struct us_done_before *done, int64_t position) {
    for (uint32_t i = done->at; position >= 0 && i < done->count; i++) {
        const unsalt_core_range_t *range = &done->ranges[i];
        if (range->first <= (uint64_t)position && range->last >= (uint64_t)position && range->last < INT64_MAX) {
            position = (int64_t)range->last + 1;
        } else if (range->first > (uint64_t)position) {
            break;
        }
    }
    return position;
}

bool us_done_before_has(struct unsalt_core *core, struct us_part *part, int64_t offset) {
    struct us_done_before *done = &part->done_before;
    /* Only what was taken is passed: a record that is refused may not come again before one below it. */
    uint64_t taken = (uint64_t)(part->last_offset + 1);
    while (done->at < done->count && done->ranges[done->at].last < taken) {
        done->at++;
    }
    if (done->at == done->count) {
        us_done_before_destroy(done, &core->mem);
        part->done_ahead = false;
        return false;
    }
    uint32_t i = done->at;
    while (i < done->count && done->ranges[i].last < (uint64_t)offset) {
        i++;
    }
    return i < done->count && done->ranges[i].first <= (uint64_t)offset;
}
