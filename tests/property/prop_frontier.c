/* SPDX-License-Identifier: BSD-2-Clause */
/* The frontier against a plain list of offsets and flags. */
#include <core/frontier.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

#define RECORDS 20000

static int64_t offsets[RECORDS];
static bool acknowledged[RECORDS];

struct run {
    struct us_frontier frontier;
    uint64_t opened, lowest; /* records opened; the lowest that is not acknowledged */
    int64_t end;             /* the position when nothing is outstanding */
    uint64_t window;         /* how many may be outstanding */
};

/* A run of consecutive offsets behind the last one, in one call. */
static void open_run(struct run *run, uint64_t more) {
    if (more > RECORDS - run->opened)
        more = RECORDS - run->opened;
    us_frontier_open_more(&run->frontier, (uint32_t)more);
    for (; more > 0; more--)
        offsets[run->opened++] = run->end++;
}

static void open_batch(struct run *run, struct failmem *fail, struct prng *prng) {
    uint64_t more = prng_between(prng, 1, prng_chance(prng, 10) ? 300 : 8);
    CHECK(us_frontier_reserve(&run->frontier, &fail->mem, (uint32_t)more));
    uint64_t calls = fail->calls;
    for (uint64_t i = 0; i < more && run->opened < RECORDS; i++) {
        int64_t offset = run->end < 0 ? 0 : run->end;
        if (prng_chance(prng, 10))
            offset += (int64_t)prng_between(prng, 1, prng_chance(prng, 10) ? UINT64_C(1) << 45 : 3);
        CHECK_U64(us_frontier_open(&run->frontier, offset), run->opened);
        offsets[run->opened++] = offset;
        run->end = offset + 1;
        if (prng_chance(prng, 20)) {
            uint64_t length = prng_below(prng, more - i);
            open_run(run, length);
            i += length;
        }
    }
    CHECK_U64(fail->calls, calls);
}

static void acknowledge(struct run *run, struct prng *prng) {
    uint64_t outstanding = run->opened - run->lowest;
    if (!outstanding)
        return;
    uint64_t ticket = prng_chance(prng, 30) ? run->lowest : run->lowest + prng_below(prng, outstanding);
    if (prng_chance(prng, 2))
        ticket = prng_below(prng, run->opened);
    bool first = false;
    CHECK(us_frontier_ack(&run->frontier, ticket, &first));
    CHECK_U64(first, !acknowledged[ticket]);
    acknowledged[ticket] = true;
    while (run->lowest < run->opened && acknowledged[run->lowest])
        run->lowest++;
}

/* The oldest ones at once, which is done only if none above them is acknowledged; or others, which is never done. */
static void acknowledge_first(struct run *run, struct prng *prng) {
    uint64_t ticket = prng_chance(prng, 80) ? run->lowest : prng_below(prng, run->opened + 1);
    uint64_t outstanding = run->opened - run->lowest, count = prng_between(prng, 1, 70);
    bool expected = ticket == run->lowest && count <= outstanding;
    for (uint64_t i = run->lowest; i < run->opened; i++)
        expected &= !acknowledged[i];
    CHECK_U64(us_frontier_ack_first(&run->frontier, ticket, count), expected);
    for (; expected && count > 0; count--)
        acknowledged[run->lowest++] = true;
}

static void check(const struct run *run) {
    int64_t position = run->lowest < run->opened ? offsets[run->lowest] : run->end;
    CHECK_I64(us_frontier_position(&run->frontier), position);
}

static void check_whole(const struct run *run) {
    uint64_t open = 0;
    for (uint64_t i = run->lowest; i < run->opened; i++)
        open += !acknowledged[i];
    CHECK_U64(run->frontier.open, open);
    CHECK_U64(run->frontier.base, run->lowest);
    CHECK_U64(run->frontier.next, run->opened);
}

TEST(frontier, behaves_like_a_list_of_offsets) {
    struct prng prng = prng_start(5);
    struct failmem fail;
    failmem_init(&fail);
    for (int i = 0; i < 30; i++) {
        struct run run = {.end = prng_chance(&prng, 50) ? -1 : (int64_t)prng_below(&prng, 1000)};
        run.window = prng_between(&prng, 1, 3000);
        us_frontier_init(&run.frontier, run.end);
        memset(acknowledged, 0, sizeof acknowledged);
        for (uint64_t round = 0; run.lowest < RECORDS; round++) {
            if (run.opened < RECORDS && run.opened - run.lowest < run.window)
                open_batch(&run, &fail, &prng);
            if (prng_chance(&prng, 3)) {
                run.end += (int64_t)prng_below(&prng, 4);
                us_frontier_eof(&run.frontier, run.end);
            }
            for (uint64_t acks = prng_below(&prng, 12); acks > 0; acks--)
                acknowledge(&run, &prng);
            if (prng_chance(&prng, 20))
                acknowledge_first(&run, &prng);
            check(&run);
            if (round % 64 == 0)
                check_whole(&run);
        }
        check_whole(&run);
        us_frontier_destroy(&run.frontier, &fail.mem);
    }
    CHECK(failmem_is_balanced(&fail));
}
