/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A FIFO of held records against a plain array: what comes out, in which order and from where, whatever mixture of
 * partitions, lanes and flags stands in it, and also after a partition has gone.
 */
#include <core/held.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

enum { ROOM = 4000, PARTS = 3, STEPS = 60000 };

struct world {
    struct us_fifo fifo;
    struct us_chunks chunks;
    struct failmem fail;
    struct us_held held[ROOM]; /* from `first` on */
    uint32_t first, count, at; /* at: of the removal, among those that were there before */
};

static char marks[16];

static void add(struct world *w, struct prng *prng, unsigned mixed) {
    if (w->first + w->count == ROOM) {
        memmove(w->held, w->held + w->first, w->count * sizeof *w->held);
        w->first = 0;
    }
    if (w->count == ROOM)
        return;
    struct us_held held = {.seq = prng_next(prng), .msg = &marks[prng_below(prng, 16)], .arrived = prng_next(prng),
                           .ticket = (uint32_t)prng_next(prng), .bytes = (uint32_t)prng_next(prng)};
    if (prng_chance(prng, mixed)) {
        held.part = (uint16_t)prng_below(prng, PARTS);
        held.lane = (uint16_t)prng_below(prng, 2);
        held.flags = (uint16_t)prng_below(prng, 2);
    }
    bool fails = prng_chance(prng, 5);
    failmem_arm(&w->fail, fails, false);
    struct us_held_entry *entry = us_fifo_add(&w->fifo, &w->chunks, us_source(held.part, held.lane, held.flags));
    failmem_arm(&w->fail, 0, false);
    CHECK(entry || fails);
    if (!entry)
        return;
    *entry = (struct us_held_entry){held.seq, held.msg, held.arrived, held.ticket, held.bytes};
    w->held[w->first + w->count++] = held;
}

static void same(const struct us_held_entry *entry, union us_source source, const struct us_held *held) {
    CHECK_U64(entry->seq, held->seq);
    CHECK(entry->msg == held->msg);
    CHECK_U64(entry->arrived, held->arrived);
    CHECK_U64(entry->ticket, held->ticket);
    CHECK_U64(entry->bytes, held->bytes);
    CHECK_U64(source.all, us_source(held->part, held->lane, held->flags).all);
}

static void pop(struct world *w) {
    same(us_fifo_head(&w->fifo), w->fifo.head->source, &w->held[w->first]);
    CHECK_U64(us_fifo_head_part(&w->fifo), w->held[w->first].part);
    us_fifo_pop(&w->fifo, &w->chunks);
    w->first++;
    w->count--;
}

static void gone(void *opaque, const struct us_held *held) {
    struct world *w = opaque;
    while (w->held[w->at].part != held->part)
        w->at++;
    const struct us_held *expected = &w->held[w->at++];
    same(&(struct us_held_entry){held->seq, held->msg, held->arrived, held->ticket, held->bytes},
         us_source(held->part, held->lane, held->flags), expected);
}

static void revoke(struct world *w, uint16_t part) {
    uint32_t kept = 0;
    w->at = w->first;
    uint32_t removed = us_fifo_remove_part(&w->fifo, &w->chunks, part, gone, w);
    for (uint32_t i = 0; i < w->count; i++)
        if (w->held[w->first + i].part != part)
            w->held[w->first + kept++] = w->held[w->first + i];
    CHECK_U64(removed, w->count - kept);
    w->count = kept;
}

static void check(const struct world *w) {
    struct us_fifo_walk walk = us_fifo_walk(&w->fifo);
    CHECK_U64(w->fifo.count, w->count);
    for (uint32_t i = 0; i < w->count; i++) {
        const struct us_held_entry *entry = us_fifo_walk_next(&walk);
        CHECK(entry);
        same(entry, walk.chunk->source, &w->held[w->first + i]);
    }
    CHECK(!us_fifo_walk_next(&walk));
    if (w->count)
        CHECK_U64(w->fifo.tail->entries[w->fifo.end - 1].seq, w->held[w->first + w->count - 1].seq);
}

TEST(held, behaves_like_an_array) {
    static const unsigned mixtures[] = {0, 2, 30, 100};
    struct prng prng = prng_start(9);
    for (size_t round = 0; round < 8; round++) {
        static struct world w;
        w = (struct world){.first = 0};
        failmem_init(&w.fail);
        w.chunks.mem = &w.fail.mem;
        unsigned fills = 55;
        for (int step = 0; step < STEPS; step++) {
            if (prng_below(&prng, 500) == 0)
                fills = (unsigned)prng_between(&prng, 30, 70);
            if (prng_chance(&prng, fills))
                add(&w, &prng, mixtures[round % 4]);
            else if (w.count)
                pop(&w);
            if (w.count && prng_below(&prng, 300) == 0)
                revoke(&w, (uint16_t)prng_between(&prng, 1, PARTS - 1 + (prng_chance(&prng, 10) ? 1 : 0)) % PARTS);
            if (step % 100 == 0)
                check(&w);
        }
        us_fifo_clear(&w.fifo, &w.chunks);
        us_chunks_destroy(&w.chunks);
        CHECK(failmem_is_balanced(&w.fail));
    }
}

/* So many bytes a record, in a long FIFO of one source; and if no two neighbours are of one. */
static size_t bytes_for(uint32_t records, uint32_t parts) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_chunks chunks = {.mem = &fail.mem};
    struct us_fifo fifo = {0};
    for (uint32_t i = 0; i < records; i++)
        CHECK(us_fifo_add(&fifo, &chunks, us_source((uint16_t)(i % parts), 0, 0)));
    size_t bytes = fail.bytes;
    us_fifo_clear(&fifo, &chunks);
    us_chunks_destroy(&chunks);
    CHECK(failmem_is_balanced(&fail));
    return bytes;
}

TEST(held, memory_of_a_record) {
    size_t alike = bytes_for(10000, 1), mixed = bytes_for(10000, 2);
    CHECK_THAT(alike <= 340000, "%zu bytes for 10,000 records", alike);
    CHECK_THAT(mixed <= 560000, "%zu bytes for 10,000 records in turns from two partitions", mixed);
}
