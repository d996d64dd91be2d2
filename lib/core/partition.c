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
    struct us_part *parts =
        us_array_room(&core->mem, core->parts, &core->part_capacity, core->part_count, 8, sizeof(*parts));
    if (!parts) {
        return UNSALT_CORE_NOMEM;
    }
    core->parts = parts;
    core->parts[core->part_count] = (struct us_part){0};
    return (int)core->part_count++;
}

/* Sessions that waited for the set to become complete are looked at again. */
static void set_complete(struct unsalt_core *core, struct us_set *set) {
    if (!us_set_complete(set)) {
        return;
    }
    for (struct us_session *session = set->awake_first; session; session = session->awake_next) {
        if (session->special & US_SPECIAL_STARTING) {
            us_wait_at(core, &session->start->wait, core->now);
        }
    }
}

/* The set, with the partition in it. NULL: out of memory, nothing changed. */
static struct us_set *set_for(struct unsalt_core *core, uint32_t tag, uint32_t slot) {
    struct us_set *set = us_set_get(core, tag);
    if (set && !us_set_add(core, set, slot)) {
        if (set->part_count == 0) {
            us_set_remove(core, set, slot);
        }
        return NULL;
    }
    return set;
}

/* Reading begins there. */
static void begin_at(struct unsalt_core *core, struct us_part *part, int64_t start_offset, int64_t log_start) {
    part->joined_middle = start_offset != 0;
    part->above_start = start_offset < 0 || log_start < 0 || start_offset > log_start;
    part->set->joined_middle |= part->joined_middle;
    us_frontier_init(&part->frontier, start_offset);
    us_frontier_limit(&part->frontier, core->params.budget_window);
    us_horizon_init(&part->horizon, start_offset);
}

int unsalt_core_start(unsalt_core_t *core, uint32_t index, int64_t start_offset, int64_t log_start) {
    struct us_part *part = us_part_get(core, index);
    if (!part || part->last_offset >= 0 || part->frontier.next > 0 || start_offset < -1) {
        return UNSALT_CORE_INVAL;
    }
    us_frontier_destroy(&part->frontier, &core->mem); /* a record that was refused may have made room */
    us_free(&core->mem, part->handed.slots);
    part->handed = (struct us_handed_ring){0};
    begin_at(core, part, start_offset, log_start);
    return UNSALT_CORE_OK;
}

int unsalt_core_assign(unsalt_core_t *core, const unsalt_core_partition_t *partition) {
    if (partition->start_offset < -1 || partition->set_size > PARTS_MAX || partition->lane >= (int32_t)PARTS_MAX) {
        return UNSALT_CORE_INVAL;
    }
    int slot = free_slot(core);
    if (slot < 0) {
        return slot;
    }
    struct us_set *set = set_for(core, partition->set, (uint32_t)slot);
    if (!set) {
        return UNSALT_CORE_NOMEM;
    }
    set->size = partition->set_size;
    struct us_part *part = &core->parts[slot];
    *part = (struct us_part){.set = set, .lane = partition->lane, .last_offset = -1};
    begin_at(core, part, partition->start_offset, partition->log_start);
    part->window_since = UNSALT_NEVER;
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

static inline int ack(struct unsalt_core *core, uint32_t index, uint32_t generation, uint64_t ticket) {
    /* A free slot has the generation 0, which no assignment has. */
    if (index >= core->part_count || core->parts[index].generation != generation || generation == 0) {
        return UNSALT_CORE_FENCED;
    }
    struct us_part *part = &core->parts[index];
    if (core->params.cursors) {
        return us_handed_ack(core, part, ticket);
    }
    return us_frontier_ack(&part->frontier, ticket, NULL) ? UNSALT_CORE_OK : UNSALT_CORE_INVAL;
}

int unsalt_core_ack(unsalt_core_t *core, uint32_t index, uint32_t generation, uint64_t ticket) {
    return ack(core, index, generation, ticket);
}

/* The record, if it is one that is to be acknowledged. Returns how many were. */
static inline size_t ack_one(unsalt_core_t *core, const unsalt_core_out_t *out) {
    return unsalt_state_handed_out((unsalt_state_t)out->state) &&
           ack(core, out->part, out->generation, out->ticket) == UNSALT_CORE_OK;
}

/* As unsalt_core_ack_batch(): while the core keeps cursors each record has a place of its own. */
static size_t ack_each(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        done += ack_one(core, &out[i]);
    }
    return done;
}

/* Of one generation of one partition, and handed out? */
static inline bool alike(const unsalt_core_out_t *one, const unsalt_core_out_t *other) {
    return other->part == one->part && other->generation == one->generation &&
           unsalt_state_handed_out((unsalt_state_t)other->state);
}

/* Acknowledges out[0], out[stride] and so on below out[n]: those of a partition that follow each other at once. */
static size_t ack_stride(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n, size_t stride) {
    size_t done = 0;
    for (size_t i = 0; i < n;) {
        const unsalt_core_out_t *first = &out[i];
        bool counts = unsalt_state_handed_out((unsalt_state_t)first->state) && first->generation != 0 &&
                      first->part < core->part_count && core->parts[first->part].generation == first->generation;
        if (!counts) {
            i += stride;
            continue;
        }
        struct us_frontier *frontier = &core->parts[first->part].frontier;
        size_t end = i + stride, count = 1;
        uint64_t differs = 0; /* 0: the tickets follow each other */
        for (; end < n && alike(first, &out[end]); count++) {
            differs |= out[end].ticket ^ (first->ticket + count);
            end += stride;
        }
        if (!differs && us_frontier_ack_first(frontier, first->ticket, count)) {
            done += count;
            i = end;
            continue;
        }
        for (; i < end; i += stride) {
            done += us_frontier_mark(frontier, out[i].ticket);
        }
        us_frontier_pass(frontier);
    }
    return done;
}

/*
 * What is released of S lanes comes from S partitions in turns, so the tickets of each follow each other at every S-th
 * record: S as the first record tells.
 */
__attribute__((noinline)) /* a record alone needs few registers */
static size_t ack_turns(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    if (core->params.cursors) {
        return ack_each(core, out, n);
    }
    size_t stride = 1, done = 0;
    while (stride < n && out[stride].part != out[0].part) {
        stride++;
    }
    stride = stride < n ? stride : 1;
    for (size_t i = 0; i < stride && i < n; i++) {
        done += ack_stride(core, out + i, n - i, stride);
    }
    return done;
}

size_t unsalt_core_ack_batch(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    return n == 1 ? ack_one(core, out) : ack_turns(core, out, n);
}

int64_t unsalt_core_position(const unsalt_core_t *core, uint32_t index) {
    const struct us_part *part = us_part_get(core, index);
    int64_t position = part ? us_frontier_position(&part->frontier) : -1;
    bool unread = part && position > part->last_offset; /* else it is that of a record that isn't done */
    return unread && part->done_ahead ? us_done_before_pass(&part->done_before, position) : position;
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
