/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lane sets: the partitions that belong together because sessions are spread over them. Found by the caller's
 * number.
 */
#include <core/engine.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) us_alloc(table_mem, size)
#define uthash_free(ptr, size) us_free(table_mem, ptr)
#define uthash_nonfatal_oom(element) (void)(element)
#include <uthash.h>

struct node {
    UT_hash_handle hh;
    struct us_set set;
};

static void link_set(struct unsalt_core *core, struct us_set *set) {
    set->next = core->sets;
    if (set->next) {
        set->next->prev = set;
    }
    core->sets = set;
}

struct us_set *us_set_find(const struct unsalt_core *core, uint32_t tag) {
    struct node *node, *head = core->sets_by_tag;
    HASH_FIND(hh, head, &tag, sizeof(tag), node);
    return node ? &node->set : NULL;
}

struct us_set *us_set_get(struct unsalt_core *core, uint32_t tag) {
    const struct unsalt_mem *table_mem = &core->mem;
    struct us_set *set = us_set_find(core, tag);
    struct node *node, *head = core->sets_by_tag;
    if (set) {
        return set;
    }
    node = us_calloc(&core->mem, 1, sizeof(*node));
    if (!node) {
        return NULL;
    }
    node->set.tag = tag;
    HASH_ADD(hh, head, set.tag, sizeof(tag), node);
    core->sets_by_tag = head;
    if (!node->hh.tbl) {
        us_free(&core->mem, node);
        return NULL;
    }
    link_set(core, &node->set);
    return &node->set;
}

bool us_set_add(struct unsalt_core *core, struct us_set *set, uint32_t part) {
    uint32_t *parts =
        us_array_room(&core->mem, set->parts, &set->part_capacity, set->part_count, 4, sizeof(*parts));
    if (!parts) {
        return false;
    }
    set->parts = parts;
    set->parts[set->part_count++] = part;
    return true;
}

static void set_free(struct unsalt_core *core, struct us_set *set) {
    const struct unsalt_mem *table_mem = &core->mem;
    struct node *node = (struct node *)((char *)set - offsetof(struct node, set)), *head = core->sets_by_tag;
    if (set->prev) {
        set->prev->next = set->next;
    } else {
        core->sets = set->next;
    }
    if (set->next) {
        set->next->prev = set->prev;
    }
    HASH_DELETE(hh, head, node);
    core->sets_by_tag = head;
    us_row_table_destroy(&set->table, &core->mem);
    us_free(&core->mem, set->parts);
    us_free(&core->mem, node);
}

void us_set_remove(struct unsalt_core *core, struct us_set *set, uint32_t part) {
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (set->parts[i] == part) {
            memmove(&set->parts[i], &set->parts[i + 1], (set->part_count - i - 1) * sizeof(*set->parts));
            set->part_count--;
            break;
        }
    }
    if (set->part_count == 0) {
        set_free(core, set);
    }
}
