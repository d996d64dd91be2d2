/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One row for each session in memory: 64 bytes and the id behind them. A session at rest, of which nothing is held and
 * nothing is special, is its row and no more, so that a record in order touches a slot of the table and two cache
 * lines; any other is awake: the row leads to its struct us_session. Rows stand in pages and are known by a 32-bit
 * reference, which never changes; 0 is none. Pages are allocated in blocks of an eighth of those that there are, so
 * that many sessions stand in few large blocks (see mem_default.c), and few ones take no more room than they need. The
 * table of a set is open addressing with linear probing over 8-byte slots: half of it is the hash, so that a row is
 * touched only when it is most likely the right one.
 */
#ifndef US_CORE_ROWS_H
#define US_CORE_ROWS_H
#include <base/mem.h>
#include <stdbool.h>
#include <stdint.h>

struct us_session;
struct us_doze;

#define US_ROW_ID_MAX 4096
struct us_row {
    union {
        uint64_t cursor;          /* at rest */
        struct us_session *awake; /* if `is_awake` */
        struct us_doze *doze;     /* if also `dozes` */
    } is;
    uint64_t epoch; /* this one and what else a session keeps while it rests is out of date while it is awake */
    int64_t newest;
    uint64_t active;     /* time of the last record */
    uint64_t idle_since; /* `active` when it was put at the end of the idle list */
    uint32_t idle_prev, idle_next;
    uint32_t set;   /* tag */
    uint32_t since; /* of the rule of its lanes; UINT32_MAX: unknown */
    uint32_t floor; /* of its skips */
    uint16_t lanes;
    uint16_t id_len : 13, is_awake : 1, vary : 1, dozes : 1;
    unsigned char id[];
};
_Static_assert(sizeof(struct us_row) == 64, "a cache line");

#define US_ROW_UNIT 8u
#define US_ROW_PAGE 2048u /* units */
#define US_ROW_BLOCK 256u /* pages that are allocated at once, at most: 4 MiB */
#define US_ROW_CLASSES ((sizeof(struct us_row) + US_ROW_ID_MAX) / US_ROW_UNIT + 1)
/* The rows of a core. All zero is empty. */
struct us_rows {
    unsigned char **pages;
    uint32_t page_count, page_capacity; /* page_count: with those of the last block that aren't begun */
    uint32_t begun;                /* pages that were begun; the last of them is being filled */
    uint32_t used;                 /* units of that one */
    uint32_t spare[US_ROW_CLASSES]; /* rows that were freed, by size in units, linked by idle_next */
};

/* The table of a set. All zero is empty. */
struct us_row_slot {
    uint32_t hash, ref; /* ref 0: free */
};
struct us_row_table {
    struct us_row_slot *slots;
    uint32_t mask, count; /* mask: slots - 1 */
};

static inline struct us_row *us_row_at(const struct us_rows *rows, uint32_t ref) {
    return (struct us_row *)(void *)(rows->pages[ref / US_ROW_PAGE] + (size_t)(ref % US_ROW_PAGE) * US_ROW_UNIT);
}

/* A row for an id of 1..US_ROW_ID_MAX bytes; nothing but the id is set. 0: out of memory, nothing changed. */
uint32_t us_row_new(struct us_rows *rows, const struct unsalt_mem *mem, const void *id, uint32_t len);
/* Its room may be used again by a row of the same size. */
void us_row_free(struct us_rows *rows, uint32_t ref);
/* Frees all pages. */
void us_rows_destroy(struct us_rows *rows, const struct unsalt_mem *mem);

/* The row with this id, or 0. */
uint32_t us_row_find(const struct us_rows *rows, const struct us_row_table *table, const void *id, uint32_t len,
                     uint32_t hash);
/* Enters a row whose id is not there. False: out of memory, nothing changed. */
bool us_row_enter(struct us_row_table *table, const struct unsalt_mem *mem, uint32_t ref, uint32_t hash);
/* Takes an entered row out. */
void us_row_leave(struct us_row_table *table, uint32_t ref, uint32_t hash);
void us_row_table_destroy(struct us_row_table *table, const struct unsalt_mem *mem);

/*
 * Two steps of a look-up that is to come: first the slot is fetched into the cache, later, from there, the row, with an
 * id of so many bytes. In between the row that it most likely is, 0 if it is none of the first ones looked at.
 */
static inline void us_row_prefetch_slot(const struct us_row_table *table, uint32_t hash) {
    __builtin_prefetch(&table->slots[hash & table->mask]);
}
static inline uint32_t us_row_likely(const struct us_row_table *table, uint32_t hash) {
    uint32_t at = hash & table->mask;
    for (int i = 0; i < 4 && table->slots[at].ref; i++, at = (at + 1) & table->mask) {
        if (table->slots[at].hash == hash) {
            return table->slots[at].ref;
        }
    }
    return 0;
}
static inline struct us_row *us_row_prefetch(const struct us_rows *rows, uint32_t ref, uint32_t id_len) {
    struct us_row *row = us_row_at(rows, ref);
    __builtin_prefetch(row, 1);
    __builtin_prefetch(row->id, 1);
    __builtin_prefetch(row->id + id_len - 1); /* a row begins anywhere in a cache line */
    return row;
}

/* Ids are short: a few words, the first and the last of which perhaps overlap, beat a call. */
static inline bool us_same_id(const void *left, const void *right, uint32_t len) {
    const unsigned char *a = left, *b = right;
    uint64_t x[4], y[4];
    if (len < 16) {
        if (len < 8) {
            return __builtin_memcmp(a, b, len) == 0;
        }
        __builtin_memcpy(&x[0], a, 8);
        __builtin_memcpy(&y[0], b, 8);
        __builtin_memcpy(&x[1], a + len - 8, 8);
        __builtin_memcpy(&y[1], b + len - 8, 8);
        return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
    }
    __builtin_memcpy(x, a, 16);
    __builtin_memcpy(y, b, 16);
    __builtin_memcpy(x + 2, a + len - 16, 16);
    __builtin_memcpy(y + 2, b + len - 16, 16);
    uint64_t differs = (x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]);
    return differs == 0 && (len <= 32 || __builtin_memcmp(a + 16, b + 16, len - 32) == 0);
}

/* us_row_find() without the call. */
static inline uint32_t us_row_find_inline(const struct us_rows *rows, const struct us_row_table *table, const void *id,
                                          uint32_t len, uint32_t hash) {
    if (!table->slots) {
        return 0;
    }
    for (uint32_t at = hash & table->mask; table->slots[at].ref; at = (at + 1) & table->mask) {
        if (table->slots[at].hash != hash) {
            continue;
        }
        const struct us_row *row = us_row_at(rows, table->slots[at].ref);
        if (row->id_len == len && us_same_id(row->id, id, len)) {
            return table->slots[at].ref;
        }
    }
    return 0;
}
#endif
