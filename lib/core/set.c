/* SPDX-License-Identifier: BSD-2-Clause */
/* Lane sets: the partitions that belong together because sessions are spread over them. */
#include <core/engine.h>
#include <string.h>

struct us_set *us_set_get(struct unsalt_core *core, uint32_t tag) {
    for (struct us_set *set = core->sets; set; set = set->next) {
        if (set->tag == tag) {
            return set;
        }
    }
    struct us_set *set = us_calloc(&core->mem, 1, sizeof(*set));
    if (set) {
        set->tag = tag;
        set->next = core->sets;
        core->sets = set;
    }
    return set;
}

bool us_set_add(struct unsalt_core *core, struct us_set *set, uint32_t part) {
    if (set->part_count == set->part_capacity) {
        uint32_t capacity = set->part_capacity ? 2 * set->part_capacity : 4;
        uint32_t *parts = us_realloc_array(&core->mem, set->parts, capacity, sizeof(*parts));
        if (!parts) {
            return false;
        }
        set->parts = parts;
        set->part_capacity = capacity;
    }
    set->parts[set->part_count++] = part;
    return true;
}

void us_set_remove(struct unsalt_core *core, struct us_set *set, uint32_t part) {
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (set->parts[i] == part) {
            memmove(&set->parts[i], &set->parts[i + 1], (set->part_count - i - 1) * sizeof(*set->parts));
            set->part_count--;
            break;
        }
    }
    if (set->part_count) {
        return;
    }
    struct us_set **link = &core->sets;
    while (*link != set) {
        link = &(*link)->next;
    }
    *link = set->next;
    us_free(&core->mem, set->parts);
    us_free(&core->mem, set);
}
