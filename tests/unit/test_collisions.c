/* SPDX-License-Identifier: BSD-2-Clause */
/* Lanes of a session that share a partition: counted once per session, and never invented. */
#include <base/hash.h>
#include <core/collisions.h>
#include <stdio.h>
#include <support/check.h>
#include <support/prng.h>

static struct us_collisions open_table(void) {
    struct us_collisions c;
    CHECK(us_collisions_init(&c, &us_mem_default));
    return c;
}

/* Returns the other lane; -1: nothing was counted. */
static int saw(struct us_collisions *c, const char *session, uint32_t partition, uint16_t lanes, uint64_t seq) {
    uint16_t other = 9999;
    uint64_t hash = us_hash(session, strlen(session), 42);
    bool counted = us_collisions_saw(c, hash, partition, lanes, (uint16_t)(seq % lanes), &other);
    CHECK(counted == (other != 9999));
    return counted ? other : -1;
}

TEST(collisions, two_lanes_in_one_partition) {
    struct us_collisions c = open_table();
    CHECK_I64(saw(&c, "a", 5, 4, 1), -1);
    CHECK_I64(saw(&c, "a", 5, 4, 5), -1);
    CHECK_I64(saw(&c, "a", 6, 4, 2), -1);
    CHECK_I64(saw(&c, "a", 5, 4, 3), 1);
    CHECK_U64(c.count, 1);
    us_collisions_destroy(&c, &us_mem_default);
}

/* Every partition has an entry of its own, whatever its number. */
TEST(collisions, partitions_do_not_displace_each_other) {
    struct us_collisions c = open_table();
    for (uint32_t partition = 0; partition < 64; partition++)
        CHECK_I64(saw(&c, "a", partition * 64, 100, partition), -1);
    unsigned kept = 0;
    for (uint32_t partition = 0; partition < 64; partition++) {
        saw(&c, "a", partition * 64, 100, 99);
        kept += c.count;
        memset(c.told, 0, US_COLLISIONS_TOLD * sizeof *c.told);
        c.count = 0;
    }
    CHECK_THAT(kept >= 60, "%u of 64", kept);
    us_collisions_destroy(&c, &us_mem_default);
}

TEST(collisions, a_session_counts_once) {
    struct us_collisions c = open_table();
    for (uint64_t seq = 1; seq < 100; seq++)
        saw(&c, "a", (uint32_t)(seq % 2), 4, seq);
    CHECK_U64(c.count, 1);
    for (uint64_t seq = 1; seq < 100; seq++)
        saw(&c, "b", 0, 4, seq);
    CHECK_U64(c.count, 2);
    us_collisions_destroy(&c, &us_mem_default);
}

/* The sessions are lanes of partitions of their own, as a producer that probes places them. */
TEST(collisions, none_where_lanes_are_apart) {
    struct us_collisions c = open_table();
    char session[16];
    for (uint64_t seq = 1; seq < 200; seq++) {
        for (uint32_t i = 0; i < 300; i++) {
            uint16_t lanes = (uint16_t)(2 + i % 7);
            snprintf(session, sizeof session, "s%u", i);
            CHECK_I64(saw(&c, session, (i + (uint32_t)(seq % lanes)) % 32, lanes, seq), -1);
        }
    }
    CHECK_U64(c.count, 0);
    us_collisions_destroy(&c, &us_mem_default);
}

/* After a change of S the lanes are elsewhere; the partition may get another one of them. */
TEST(collisions, a_change_of_lanes_is_none) {
    struct us_collisions c = open_table();
    CHECK_I64(saw(&c, "a", 5, 4, 1), -1);
    CHECK_I64(saw(&c, "a", 5, 8, 6), -1);
    CHECK_I64(saw(&c, "a", 5, 8, 14), -1);
    CHECK_I64(saw(&c, "a", 5, 8, 15), 6);
    us_collisions_destroy(&c, &us_mem_default);
}

/* Most are seen, though the table is much smaller than what passes through it. */
TEST(collisions, more_sessions_than_entries) {
    struct us_collisions c = open_table();
    char session[16];
    for (uint32_t i = 0; i < 20000; i++) {
        snprintf(session, sizeof session, "s%u", i);
        for (uint64_t seq = 1; seq <= 4; seq++)
            saw(&c, session, i % 2 ? (uint32_t)seq : 7, 4, seq);
    }
    CHECK_U64(c.count, 10000);
    us_collisions_destroy(&c, &us_mem_default);
}

/* Any hash, any partition: 0 is not mistaken for a free entry. */
TEST(collisions, odd_hashes) {
    static const uint64_t hashes[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 63 | 1};
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
        for (uint32_t partition = 0; partition < 3; partition++) {
            struct us_collisions c = open_table();
            uint16_t other;
            CHECK(!us_collisions_saw(&c, hashes[i], partition, 2, 0, &other));
            CHECK(!us_collisions_saw(&c, hashes[i], partition, 2, 0, &other));
            CHECK(us_collisions_saw(&c, hashes[i], partition, 2, 1, &other));
            CHECK(other == 0 && c.count == 1);
            us_collisions_destroy(&c, &us_mem_default);
        }
    }
}
