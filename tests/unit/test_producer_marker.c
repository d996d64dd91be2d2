/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/producer_again.h>
#include <support/check.h>
#include <support/prng.h>

static struct us_again marker(const char *name, uint64_t epoch, uint64_t since, uint64_t seq) {
    return (struct us_again){.header = {.epoch = epoch, .since = since, .seq = seq},
                             .name = name,
                             .name_size = name ? strlen(name) : 0};
}

static size_t count(const struct us_again *list) {
    size_t n = 0;
    for (; list; list = list->next)
        n++;
    return n;
}

static struct us_again *chain(struct us_again *markers, size_t n) {
    for (size_t i = 0; i + 1 < n; i++)
        markers[i].next = &markers[i + 1];
    return markers;
}

TEST(producer_marker, neighbours_are_joined) {
    /* As they come with two lanes: one after the other. */
    struct us_again m[] = {marker("a", 1, 2, 2), marker("a", 1, 4, 4), marker("a", 1, 6, 6),
                           marker("a", 1, 1, 1), marker("a", 1, 3, 3), marker("a", 1, 8, 8)};
    struct us_again *saved = NULL, *left = us_markers_join(chain(m, 6), &saved);
    CHECK_U64(count(left), 3);
    CHECK_U64(count(saved), 3);
    CHECK(left->header.since == 1 && left->header.seq == 4);
    CHECK(left == &m[1]); /* the highest number carries them: its lane is its own */
    CHECK(left->next->header.since == 6 && left->next->header.seq == 6);
    CHECK(left->next->next->header.since == 8);
}

TEST(producer_marker, only_of_the_same_run_of_the_same_session) {
    struct us_again m[] = {marker("a", 1, 1, 1), marker("b", 1, 2, 2),  marker("a", 2, 2, 2),
                           marker(NULL, 1, 2, 2), marker(NULL, 1, 3, 3), marker("aa", 1, 2, 2)};
    struct us_again *saved = NULL, *left = us_markers_join(chain(m, 6), &saved);
    CHECK_U64(count(left), 6);
    CHECK(!saved);
}

TEST(producer_marker, nothing) {
    struct us_again *saved = NULL;
    CHECK(!us_markers_join(NULL, &saved));
    CHECK(!saved);
}

/* However often and in whatever order: every number stays covered once, and nothing is joined across a hole. */
TEST(producer_marker, in_any_order) {
    enum { N = 200, ROUNDS = 50 };
    static struct us_again m[N];
    struct prng prng = prng_start(1);
    for (int round = 0; round < ROUNDS; round++) {
        bool wanted[N + 2] = {false}, covered[N + 2] = {false};
        struct us_again *list = NULL, *saved = NULL;
        size_t made = 0, ranges = 0;
        for (size_t i = 0; i < N; i++) {
            uint64_t seq = 1 + prng_below(&prng, N);
            if (wanted[seq])
                continue;
            wanted[seq] = true;
            m[made] = marker("a", 1, seq, seq);
            m[made].next = list;
            list = &m[made++];
            if (prng_chance(&prng, 10))
                list = us_markers_join(list, &saved);
        }
        list = us_markers_join(list, &saved);
        for (struct us_again *at = list; at; at = at->next)
            for (uint64_t seq = at->header.since; seq <= at->header.seq; seq++) {
                CHECK(wanted[seq] && !covered[seq]);
                covered[seq] = true;
            }
        for (uint64_t seq = 1; seq <= N; seq++) {
            CHECK(covered[seq] == wanted[seq]);
            ranges += wanted[seq] && !wanted[seq + 1];
        }
        CHECK_U64(count(list), ranges);
        CHECK_U64(count(list) + count(saved), made);
    }
}
