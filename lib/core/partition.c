/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions come and give evidence; how they go stands in revoke.c. */
#include <core/engine.h>

#define PARTS_MAX 65535u

static int free_slot(struct unsalt_core *core) {
    for (; core->part_free < core->part_count; core->part_free++) {
        if (!core->parts[core->part_free].set) {
            return (int)core->part_free;
        }
    }
    if (core->part_count == PARTS_MAX) {
        return UNSALT_CORE_LIMIT;
    }
    if (core->part_count == core->part_capacity) {
        uint32_t capacity = core->part_capacity ? 2 * core->part_capacity : 8;
        struct us_part *parts = us_realloc_array(&core->mem, core->parts, capacity, sizeof(*parts));
        if (!parts) {
            return UNSALT_CORE_NOMEM;
        }
        core->parts = parts;
        core->part_capacity = capacity;
    }
    core->parts[core->part_count] = (struct us_part){0};
    return (int)core->part_count++;
}

/* Sessions that waited for the set to become complete are looked at again. */
static void set_complete(struct unsalt_core *core, struct us_set *set) {
    if (!us_set_complete(set)) {
        return;
    }
    for (struct us_session *session = us_session_first(set); session; session = us_session_next(session)) {
        if (session->special & US_SPECIAL_STARTING) {
            us_wait_at(core, &session->start->wait, core->now);
        }
    }
}

int unsalt_core_assign(unsalt_core_t *core, const unsalt_core_partition_t *partition) {
    if (partition->start_offset < -1 || partition->set_size > PARTS_MAX || partition->lane >= (int32_t)PARTS_MAX) {
        return UNSALT_CORE_INVAL;
    }
    int slot = free_slot(core);
    if (slot < 0) {
        return slot;
    }
    struct us_set *set = us_set_get(core, partition->set);
    if (!set) {
        return UNSALT_CORE_NOMEM;
    }
    if (!us_set_add(core, set, (uint32_t)slot)) {
        if (set->part_count == 0) {
            us_set_remove(core, set, (uint32_t)slot);
        }
        return UNSALT_CORE_NOMEM;
    }
    set->size = partition->set_size;
    struct us_part *part = &core->parts[slot];
    *part = (struct us_part){.set = set, .lane = partition->lane, .last_offset = -1};
    part->joined_middle = partition->start_offset != 0;
    part->above_start = partition->start_offset < 0 || partition->log_start < 0 ||
                        partition->start_offset > partition->log_start;
    set->joined_middle |= part->joined_middle;
    us_frontier_init(&part->frontier, partition->start_offset);
    us_horizon_init(&part->horizon, partition->start_offset);
    if (++core->generation == 0) {
        core->generation = 1;
    }
    part->generation = core->generation;
    us_stall_progress(core, part);
    core->counters.partitions++;
    set_complete(core, set);
    return slot;
}

uint32_t unsalt_core_generation(const unsalt_core_t *core, uint32_t index) {
    const struct us_part *part = us_part_get(core, index);
    return part ? part->generation : 0;
}

int unsalt_core_ack(unsalt_core_t *core, uint32_t index, uint32_t generation, uint64_t ticket) {
    /* A free slot has the generation 0, which no assignment has. */
    if (index >= core->part_count || core->parts[index].generation != generation || generation == 0) {
        return UNSALT_CORE_FENCED;
    }
    return us_frontier_ack(&core->parts[index].frontier, ticket, NULL) ? UNSALT_CORE_OK : UNSALT_CORE_INVAL;
}

int64_t unsalt_core_position(const unsalt_core_t *core, uint32_t index) {
    const struct us_part *part = us_part_get(core, index);
    return part ? us_frontier_position(&part->frontier) : -1;
}

static void moved(struct unsalt_core *core, struct us_part *part, bool horizon_moved) {
    if (horizon_moved) {
        us_stall_progress(core, part);
        part->moved = core->any_moved = true;
    }
}

void unsalt_core_eof(unsalt_core_t *core, uint32_t index, int64_t offset, uint64_t now) {
    us_core_time(core, now);
    struct us_part *part = us_part_get(core, index);
    if (!part || offset < 0) {
        return;
    }
    us_stall_progress(core, part);
    us_frontier_eof(&part->frontier, offset);
    part->at_end = true;
    moved(core, part, us_horizon_passed(&part->horizon, offset));
}

void unsalt_core_answer(unsalt_core_t *core, uint32_t index, uint32_t generation, int64_t end, uint64_t now) {
    us_core_time(core, now);
    struct us_part *part = us_part_get(core, index);
    if (!part || part->generation != generation) {
        return;
    }
    core->counters.answers += end >= 0;
    bool passed = us_part_passed(part);
    moved(core, part, us_horizon_answer(&part->horizon, end) | passed);
}

void unsalt_core_horizon(unsalt_core_t *core, uint32_t index, uint64_t t, uint64_t now) {
    us_core_time(core, now);
    struct us_part *part = us_part_get(core, index);
    if (part) {
        moved(core, part, us_horizon_set(&part->horizon, t));
    }
}
