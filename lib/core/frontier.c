/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/frontier.h>

#define FIRST_BITS 64
#define FIRST_STRETCHES 8u
#define MAX_OUTSTANDING (UINT64_C(1) << 31)

void us_frontier_init(struct us_frontier *frontier, int64_t start) {
    *frontier = (struct us_frontier){.limit = MAX_OUTSTANDING, .stretch_next = -1, .next_offset = start};
}

static void set_room(struct us_frontier *frontier) {
    frontier->room = frontier->bits < frontier->limit ? frontier->bits : frontier->limit;
}

void us_frontier_limit(struct us_frontier *frontier, uint64_t limit) {
    frontier->limit = limit;
    set_room(frontier);
}

void us_frontier_narrow(struct us_frontier *frontier, uint64_t tickets) {
    set_room(frontier);
    frontier->room = tickets < frontier->room ? tickets : frontier->room;
}

void us_frontier_destroy(struct us_frontier *frontier, const struct unsalt_mem *mem) {
    us_free(mem, frontier->done);
    us_free(mem, frontier->stretches);
    us_frontier_init(frontier, -1);
}

static uint64_t round_up(uint64_t capacity, uint64_t need) {
    while (capacity < need)
        capacity *= 2;
    return capacity;
}

/*
 * Copies the bits of base..next-1, a word of tickets at a time. When the old ring is full, its first and its last
 * word of tickets may be the same memory, so each copy is cut to its own tickets.
 */
static void copy_done(const struct us_frontier *frontier, uint64_t *done, uint64_t bits) {
    for (uint64_t word = frontier->base / 64; word * 64 < frontier->next; word++) {
        uint64_t copy = frontier->done[(word & (frontier->bits / 64 - 1))];
        if (word == frontier->base / 64)
            copy &= UINT64_MAX << frontier->base % 64;
        if (word == frontier->next / 64)
            copy &= (UINT64_C(1) << frontier->next % 64) - 1;
        done[word & (bits / 64 - 1)] = copy;
    }
}

static uint64_t *bigger_done(const struct us_frontier *frontier, const struct unsalt_mem *mem, uint64_t bits) {
    uint64_t *done = us_calloc(mem, bits / 64, sizeof *done);
    if (done && frontier->base < frontier->next)
        copy_done(frontier, done, bits);
    return done;
}

static struct us_stretch *bigger_stretches(const struct us_frontier *frontier, const struct unsalt_mem *mem,
                                           uint64_t capacity) {
    struct us_stretch *stretches = us_realloc_array(mem, NULL, capacity, sizeof *stretches);
    for (uint32_t i = 0; stretches && i < frontier->stretch_count; i++)
        stretches[i] = frontier->stretches[(frontier->stretch_first + i) & (frontier->stretch_capacity - 1)];
    return stretches;
}

bool us_frontier_grow(struct us_frontier *frontier, const struct unsalt_mem *mem, uint32_t more) {
    uint64_t outstanding = frontier->next - frontier->base + more;
    uint64_t stretch_need = (uint64_t)frontier->stretch_count + more;
    if (outstanding > frontier->limit)
        return false;
    uint64_t bits = round_up(frontier->bits ? frontier->bits : FIRST_BITS, outstanding);
    uint64_t capacity = round_up(frontier->stretch_capacity ? frontier->stretch_capacity : FIRST_STRETCHES,
                                 stretch_need);
    uint64_t *done = frontier->done;
    if (bits != frontier->bits && !(done = bigger_done(frontier, mem, bits)))
        return false;
    if (capacity != frontier->stretch_capacity) {
        struct us_stretch *stretches = bigger_stretches(frontier, mem, capacity);
        if (!stretches) {
            if (done != frontier->done)
                us_free(mem, done);
            return false;
        }
        us_free(mem, frontier->stretches);
        frontier->stretches = stretches;
        frontier->stretch_capacity = (uint32_t)capacity;
        frontier->stretch_first = 0;
    }
    if (done != frontier->done) {
        us_free(mem, frontier->done);
        frontier->done = done;
        frontier->bits = bits;
        set_room(frontier);
    }
    return true;
}

void us_frontier_stretch(struct us_frontier *frontier, int64_t offset) {
    if (frontier->base == frontier->next)
        frontier->stretch_count = 0;
    uint32_t at = (frontier->stretch_first + frontier->stretch_count) & (frontier->stretch_capacity - 1);
    frontier->stretches[at] = (struct us_stretch){frontier->next, offset};
    frontier->stretch_count++;
}

/* Drops the stretches that lie below base altogether. */
void us_frontier_drop_stretches(struct us_frontier *frontier) {
    uint32_t mask = frontier->stretch_capacity - 1;
    while (frontier->stretch_count > 1 &&
           frontier->stretches[(frontier->stretch_first + 1) & mask].ticket <= frontier->base) {
        frontier->stretch_first = (frontier->stretch_first + 1) & mask;
        frontier->stretch_count--;
    }
}

/* Moves base over the acknowledged tickets above it and clears their bits. */
void us_frontier_advance(struct us_frontier *frontier) {
    uint64_t ticket = frontier->base, count;
    do {
        uint64_t *word = &frontier->done[(ticket & (frontier->bits - 1)) / 64];
        uint64_t waiting = ~*word >> ticket % 64;
        uint64_t left = 64 - ticket % 64;
        count = waiting ? (uint64_t)__builtin_ctzll(waiting) : left;
        uint64_t passed = (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << ticket % 64;
        *word &= ~passed;
        ticket += count;
        if (count < left)
            break;
    } while (ticket < frontier->next);
    frontier->base = ticket;
    us_frontier_drop_stretches(frontier);
}
