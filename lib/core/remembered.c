/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/remembered.h>

void us_remembered_init(struct us_remembered *remembered, uint32_t max, uint64_t seed) {
    *remembered = (struct us_remembered){.max = max};
    us_cursors_init(&remembered->young, max, seed);
    us_cursors_init(&remembered->old, max, seed);
}

void us_remembered_destroy(struct us_remembered *remembered, const struct unsalt_mem *mem) {
    us_cursors_destroy(&remembered->young, mem);
    us_cursors_destroy(&remembered->old, mem);
}

static bool is_full(const struct us_remembered *remembered) {
    return remembered->young.count >= remembered->max / 2 + remembered->max % 2 ||
           us_remembered_count(remembered) >= remembered->max;
}

/* What is young becomes old, `fresh` is young from now on. */
static void turn(struct us_remembered *remembered, const struct unsalt_mem *mem, const struct us_cursors *fresh) {
    us_cursors_destroy(&remembered->old, mem);
    remembered->old = remembered->young;
    remembered->young = *fresh;
    remembered->turns++;
}

bool us_remembered_put(struct us_remembered *remembered, const struct unsalt_mem *mem, uint32_t set, const void *id,
                       uint32_t id_len, const struct us_cursor *cursor) {
    struct us_cursor before;
    bool had = us_remembered_take(remembered, set, id, id_len, &before), done;
    if (remembered->max && is_full(remembered)) {
        struct us_cursors fresh = remembered->old;
        us_cursors_init(&fresh, remembered->max, remembered->old.seed);
        done = us_cursors_put(&fresh, mem, set, id, id_len, cursor);
        if (done) {
            turn(remembered, mem, &fresh);
        }
        if (done && us_remembered_count(remembered) > remembered->max) {
            us_cursors_destroy(&remembered->old, mem);
            remembered->turns++;
        }
    } else {
        done = us_cursors_put(&remembered->young, mem, set, id, id_len, cursor);
    }
    if (had && !done) {
        us_remembered_put_back(remembered, mem, set, id, id_len, &before);
    }
    return done;
}

bool us_remembered_take(struct us_remembered *remembered, uint32_t set, const void *id, uint32_t id_len,
                        struct us_cursor *cursor) {
    return us_cursors_take(&remembered->young, set, id, id_len, cursor) ||
           us_cursors_take(&remembered->old, set, id, id_len, cursor);
}

void us_remembered_put_back(struct us_remembered *remembered, const struct unsalt_mem *mem, uint32_t set,
                            const void *id, uint32_t id_len, const struct us_cursor *cursor) {
    /* One of them has the room that it had a moment ago; the young one would need memory if it isn't that one. */
    if (!us_cursors_put(&remembered->young, mem, set, id, id_len, cursor)) {
        us_cursors_put(&remembered->old, mem, set, id, id_len, cursor);
    }
}

void us_remembered_drop_set(struct us_remembered *remembered, uint32_t set) {
    us_cursors_drop_set(&remembered->young, set);
    us_cursors_drop_set(&remembered->old, set);
}
