/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/rows.h>
#include <string.h>

#define FIRST_SLOTS 16u

static uint32_t units_of(uint32_t len) {
    return (uint32_t)((sizeof(struct us_row) + len + US_ROW_UNIT - 1) / US_ROW_UNIT);
}

/* So many pages are allocated when there are so many. */
static uint32_t block_of(uint32_t page_count) {
    uint32_t block = page_count / 8;
    return block < 1 ? 1 : block > US_ROW_BLOCK ? US_ROW_BLOCK : block;
}

static bool add_block(struct us_rows *rows, const struct unsalt_mem *mem) {
    uint32_t count = block_of(rows->page_count);
    if (rows->page_count > UINT32_MAX / US_ROW_PAGE - count) {
        return false;
    }
    if (rows->page_count + count > rows->page_capacity) {
        uint32_t capacity = 2 * rows->page_capacity + 4;
        unsigned char **pages = us_realloc_array(mem, rows->pages, capacity, sizeof(*pages));
        if (!pages) {
            return false;
        }
        rows->pages = pages;
        rows->page_capacity = capacity;
    }
    unsigned char *block = us_alloc(mem, (size_t)count * US_ROW_PAGE * US_ROW_UNIT);
    if (!block) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        rows->pages[rows->page_count++] = block + (size_t)i * US_ROW_PAGE * US_ROW_UNIT;
    }
    return true;
}

/* Reference 0 is none, so the first page's first unit stays unused. */
static bool begin_page(struct us_rows *rows, const struct unsalt_mem *mem) {
    if (rows->begun == rows->page_count && !add_block(rows, mem)) {
        return false;
    }
    rows->used = rows->begun++ == 0 ? 1 : 0;
    return true;
}

uint32_t us_row_new(struct us_rows *rows, const struct unsalt_mem *mem, const void *id, uint32_t len) {
    uint32_t units = units_of(len), ref = rows->spare[units];
    if (ref) {
        rows->spare[units] = us_row_at(rows, ref)->idle_next;
    } else {
        if ((rows->begun == 0 || rows->used + units > US_ROW_PAGE) && !begin_page(rows, mem)) {
            return 0;
        }
        ref = (rows->begun - 1) * US_ROW_PAGE + rows->used;
        rows->used += units;
    }
    struct us_row *row = us_row_at(rows, ref);
    memset(row, 0, sizeof(*row));
    row->id_len = (uint16_t)(len & 0x1fff);
    memcpy(row->id, id, len);
    return ref;
}

void us_row_free(struct us_rows *rows, uint32_t ref) {
    struct us_row *row = us_row_at(rows, ref);
    uint32_t units = units_of(row->id_len);
    row->id_len = 0; /* it is nobody's any more */
    row->idle_next = rows->spare[units];
    rows->spare[units] = ref;
}

void us_rows_destroy(struct us_rows *rows, const struct unsalt_mem *mem) {
    for (uint32_t i = 0; i < rows->page_count; i += block_of(i)) {
        us_free(mem, rows->pages[i]);
    }
    us_free(mem, rows->pages);
    memset(rows, 0, sizeof(*rows));
}

uint32_t us_row_find(const struct us_rows *rows, const struct us_row_table *table, const void *id, uint32_t len,
                     uint32_t hash) {
    return us_row_find_inline(rows, table, id, len, hash);
}

static void put(struct us_row_table *table, struct us_row_slot slot) {
    uint32_t at = slot.hash & table->mask;
    while (table->slots[at].ref) {
        at = (at + 1) & table->mask;
    }
    table->slots[at] = slot;
}

/* At most seven eighths of the slots are used: with the hash in the slot a longer probe touches no row. */
static bool reserve(struct us_row_table *table, const struct unsalt_mem *mem) {
    uint64_t size = table->slots ? (uint64_t)table->mask + 1 : 0;
    if (table->count + UINT64_C(1) <= size / 8 * 7) {
        return true;
    }
    if (size > UINT32_MAX / 2) {
        return false;
    }
    struct us_row_table bigger = {.mask = size ? (uint32_t)size * 2 - 1 : FIRST_SLOTS - 1, .count = table->count};
    bigger.slots = us_calloc(mem, (size_t)bigger.mask + 1, sizeof(*bigger.slots));
    if (!bigger.slots) {
        return false;
    }
    for (uint64_t i = 0; i < size; i++) {
        if (table->slots[i].ref) {
            put(&bigger, table->slots[i]);
        }
    }
    us_free(mem, table->slots);
    *table = bigger;
    return true;
}

bool us_row_enter(struct us_row_table *table, const struct unsalt_mem *mem, uint32_t ref, uint32_t hash) {
    if (!reserve(table, mem)) {
        return false;
    }
    put(table, (struct us_row_slot){hash, ref});
    table->count++;
    return true;
}

/* The slots behind it move up, as far as they stand behind their own place because of it. */
void us_row_leave(struct us_row_table *table, uint32_t ref, uint32_t hash) {
    uint32_t mask = table->mask, hole = hash & mask;
    while (table->slots[hole].ref != ref) {
        hole = (hole + 1) & mask;
    }
    for (uint32_t at = (hole + 1) & mask; table->slots[at].ref; at = (at + 1) & mask) {
        uint32_t home = table->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole].ref = 0;
    table->count--;
}

void us_row_table_destroy(struct us_row_table *table, const struct unsalt_mem *mem) {
    us_free(mem, table->slots);
    *table = (struct us_row_table){0};
}
