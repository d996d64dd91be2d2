/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <kafka/producer_epoch.h>
#include <kafka/producer_sessions.h>
#include <stdio.h>
#include <support/check.h>
#include <support/failmem.h>

static struct us_lane_map two_lanes(void) {
    struct us_lane_map map = {.layout = US_LAYOUT_HASH, .lanes = 2, .partitions = 8};
    CHECK(us_salt_pattern_parse("#<k>", &map.pattern));
    return map;
}

static void start(struct us_senders *senders, const struct unsalt_mem *mem, uint32_t max) {
    const struct us_lane_map map = two_lanes();
    CHECK(us_senders_init(senders, mem, &map, 1, 100, max));
}

/* The name "t" NUL id; `bytes` has room for 16. */
static struct us_sender_name name(const char *id, char *bytes) {
    int n = snprintf(bytes, 16, "t%c%s", 0, id);
    return (struct us_sender_name){.bytes = bytes, .size = (size_t)n, .id_at = 2};
}

static struct us_sent *begin_over(struct us_senders *senders, const char *id, uint16_t lanes, struct us_stamp *stamp,
                                  bool *full) {
    char bytes[16];
    struct us_sender_name n = name(id, bytes);
    return us_shard_begin(us_senders_shard(senders, &n), &n, lanes, stamp, full);
}

static struct us_sent *begin(struct us_senders *senders, const char *id, struct us_stamp *stamp, bool *full) {
    return begin_over(senders, id, 2, stamp, full);
}

static struct us_sent *emit_over(struct us_senders *senders, const char *id, uint16_t lanes, struct us_stamp *stamp,
                                 bool last) {
    bool full;
    struct us_sent *sent = begin_over(senders, id, lanes, stamp, &full);
    CHECK_THAT(sent, "no record for %s", id);
    us_shard_commit(sent->shard, sent, stamp, last);
    return sent;
}

static struct us_sent *emit(struct us_senders *senders, const char *id, struct us_stamp *stamp, bool last) {
    return emit_over(senders, id, 2, stamp, last);
}

static void settle(struct us_sent *sent) {
    us_shard_settle(sent->shard, sent);
    us_shard_release(sent->shard, sent);
}

TEST(producer_sessions, stamps) {
    struct us_senders senders;
    struct us_stamp stamp;
    struct us_sent *sent[4];
    start(&senders, &us_mem_default, 1000);
    for (uint64_t i = 0; i < 4; i++) {
        sent[i] = emit(&senders, "a", &stamp, false);
        CHECK_U64(stamp.seq, i + 1);
        CHECK_U64(stamp.una, 1);
        CHECK_U64(stamp.since, 1);
        CHECK_U64(stamp.epoch, 100);
        CHECK_U64(stamp.lanes, 2);
        CHECK_U64(stamp.lane, (i + 1) % 2);
    }
    settle(sent[0]);
    settle(sent[2]);
    struct us_sent *fifth = emit(&senders, "a", &stamp, false);
    CHECK_U64(stamp.seq, 5);
    CHECK_U64(stamp.una, 2);
    settle(sent[3]);
    settle(sent[1]);
    settle(fifth);
    sent[0] = emit(&senders, "a", &stamp, false);
    CHECK_U64(stamp.una, 6); /* nothing else in flight: its own number */
    CHECK_U64(us_senders_count(&senders), 1);
    us_senders_destroy(&senders);
}

TEST(producer_sessions, a_cancelled_record_uses_no_number) {
    struct us_senders senders;
    struct us_stamp stamp;
    bool full;
    start(&senders, &us_mem_default, 1000);
    settle(emit(&senders, "a", &stamp, false));
    struct us_sent *sent = begin(&senders, "a", &stamp, &full);
    CHECK(sent);
    CHECK_U64(stamp.seq, 2);
    us_shard_release(sent->shard, sent);
    emit(&senders, "a", &stamp, false);
    CHECK_U64(stamp.seq, 2);
    us_senders_destroy(&senders);
}

TEST(producer_sessions, the_same_id_in_two_topics_is_two_sessions) {
    struct us_senders senders;
    struct us_stamp stamp;
    bool full;
    start(&senders, &us_mem_default, 1000);
    emit(&senders, "a", &stamp, false);
    struct us_sender_name other = {.bytes = "u\0a", .size = 3, .id_at = 2};
    CHECK(us_shard_begin(us_senders_shard(&senders, &other), &other, 2, &stamp, &full));
    CHECK_U64(stamp.seq, 1);
    CHECK_U64(us_senders_count(&senders), 2);
    us_senders_destroy(&senders);
}

/* One place: every other session pushes the last one out. */
TEST(producer_sessions, an_evicted_session_comes_back_under_a_higher_epoch) {
    struct us_senders senders;
    struct us_stamp stamp;
    start(&senders, &us_mem_default, 1);
    settle(emit(&senders, "a", &stamp, false));
    settle(emit(&senders, "a", &stamp, false));
    CHECK_U64(stamp.seq, 2);
    settle(emit(&senders, "b", &stamp, false));
    settle(emit(&senders, "a", &stamp, false));
    CHECK_U64(stamp.seq, 1);
    CHECK(stamp.epoch > 100);
    uint64_t second = stamp.epoch;
    settle(emit(&senders, "b", &stamp, false));
    settle(emit(&senders, "a", &stamp, false));
    CHECK(stamp.epoch > second);
    CHECK_U64(us_senders_count(&senders), 1);
    CHECK_U64(atomic_load(&senders.evicted), 4);
    us_senders_destroy(&senders);
}

TEST(producer_sessions, a_session_with_records_in_flight_stays) {
    struct us_senders senders;
    struct us_stamp stamp;
    bool full = false;
    start(&senders, &us_mem_default, 1);
    struct us_sent *sent = emit(&senders, "a", &stamp, false);
    CHECK(!begin(&senders, "b", &stamp, &full));
    CHECK(full);
    struct us_sent *second = emit(&senders, "a", &stamp, false);
    CHECK_U64(stamp.seq, 2);
    settle(sent);
    CHECK(!begin(&senders, "b", &stamp, &full));
    settle(second);
    emit(&senders, "b", &stamp, false);
    CHECK_U64(stamp.seq, 1);
    us_senders_destroy(&senders);
}

TEST(producer_sessions, the_idlest_goes_but_an_ended_one_before_it) {
    static const char *const ids[] = {"a", "b", "c"};
    struct us_senders senders;
    struct us_stamp stamp;
    const struct us_lane_map map = two_lanes();
    CHECK(us_senders_init(&senders, &us_mem_default, &map, 1, 100, 1));
    senders.shard_max = 3; /* three places in one shard */
    for (int i = 0; i < 3; i++)
        settle(emit(&senders, ids[i], &stamp, false));
    settle(emit(&senders, "a", &stamp, false)); /* now b is the idlest */
    settle(emit(&senders, "d", &stamp, false));
    settle(emit(&senders, "c", &stamp, true));
    CHECK_U64(stamp.seq, 2);
    settle(emit(&senders, "e", &stamp, false)); /* takes the place of c, that has ended */
    settle(emit(&senders, "a", &stamp, false));
    CHECK_U64(stamp.seq, 3);
    settle(emit(&senders, "c", &stamp, false));
    CHECK_U64(stamp.seq, 1);
    settle(emit(&senders, "b", &stamp, false));
    CHECK_U64(stamp.seq, 1);
    us_senders_destroy(&senders);
}

/* A session that ended may go on: its numbers do, too. */
TEST(producer_sessions, last_is_not_forgotten_at_once) {
    struct us_senders senders;
    struct us_stamp stamp;
    start(&senders, &us_mem_default, 10);
    settle(emit(&senders, "a", &stamp, true));
    settle(emit(&senders, "a", &stamp, false));
    CHECK_U64(stamp.seq, 2);
    CHECK_U64(stamp.epoch, 100);
    us_senders_destroy(&senders);
}

TEST(producer_sessions, records_come_from_a_pool) {
    struct failmem fail;
    struct us_senders senders;
    struct us_stamp stamp;
    struct us_sent *sent[64];
    failmem_init(&fail);
    start(&senders, &fail.mem, 100);
    settle(emit(&senders, "a", &stamp, false));
    uint64_t calls = fail.calls;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 64; i++)
            sent[i] = emit(&senders, "a", &stamp, false);
        for (int i = 63; i >= 0; i--)
            settle(sent[i]);
    }
    CHECK_U64(fail.calls, calls); /* the ordinary case allocates nothing */
    CHECK_U64(stamp.seq, 6401);
    us_senders_destroy(&senders);
    CHECK(failmem_is_balanced(&fail));
}

TEST(producer_sessions, what_una_is_when_a_number_is_settled) {
    struct us_senders senders;
    struct us_stamp stamp;
    struct us_sent *sent[3];
    size_t size;
    start(&senders, &us_mem_default, 10);
    for (int i = 0; i < 3; i++)
        sent[i] = emit(&senders, "abc", &stamp, false);
    CHECK_U64(us_shard_una(sent[2]), 1);
    const void *bytes = us_sent_name(sent[2], &size);
    CHECK_BYTES(bytes, size, "t\0abc", 5);
    CHECK_U64(us_shard_settle(sent[1]->shard, sent[1]), 1);
    CHECK(!sent[1]->sender);
    CHECK_U64(us_shard_settle(sent[0]->shard, sent[0]), 3);
    CHECK_U64(us_shard_una(sent[2]), 3);
    CHECK_U64(us_shard_settle(sent[2]->shard, sent[2]), 4);
    for (int i = 0; i < 3; i++)
        us_shard_release(sent[i]->shard, sent[i]);
    us_senders_destroy(&senders);
}

/* `since` is the first of the numbers that have this S in a row. */
TEST(producer_sessions, other_lanes_while_a_session_lives) {
    static const struct {
        uint16_t lanes;
        uint64_t since;
    } steps[] = {{1, 1}, {1, 1}, {2, 3}, {2, 3}, {2, 3}, {1, 6}, {2, 7}, {2, 7}};
    struct us_senders senders;
    struct us_stamp stamp;
    bool full;
    start(&senders, &us_mem_default, 10);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        /* What isn't committed has no effect. */
        uint16_t other = steps[i].lanes == 1 ? 2 : 1;
        struct us_sent *cancelled = begin_over(&senders, "a", other, &stamp, &full);
        CHECK_U64(stamp.lanes, other);
        us_shard_release(cancelled->shard, cancelled);
        settle(emit_over(&senders, "a", steps[i].lanes, &stamp, false));
        CHECK_U64(stamp.seq, i + 1);
        CHECK_U64(stamp.lanes, steps[i].lanes);
        CHECK_U64(stamp.lane, (i + 1) % steps[i].lanes);
        CHECK_U64(stamp.since, steps[i].since);
    }
    us_senders_destroy(&senders);
}

/* Every allocation fails once: no number is used, no session is half made or thrown out, nothing leaks. */
TEST(producer_sessions, out_of_memory_leaves_no_trace) {
    struct failmem fail;
    for (uint64_t nth = 1; nth < 10; nth++) {
        struct us_senders senders;
        struct us_stamp stamp;
        bool full = true;
        const struct us_lane_map map = two_lanes();
        failmem_init(&fail);
        failmem_arm(&fail, nth, false);
        bool made = us_senders_init(&senders, &fail.mem, &map, 1, 100, 1);
        if (made) {
            struct us_sent *sent = begin(&senders, "a", &stamp, &full);
            CHECK(sent || !full);
            CHECK_U64(us_senders_count(&senders), sent != NULL);
            if (!sent)
                sent = begin(&senders, "a", &stamp, &full);
            CHECK(sent);
            CHECK_U64(stamp.seq, 1);
            CHECK_U64(us_senders_count(&senders), 1);
            us_shard_release(sent->shard, sent);
            us_senders_destroy(&senders);
        }
        CHECK(made || fail.failed);
        CHECK(failmem_is_balanced(&fail));
    }
}

/* Nobody is thrown out for a session that can't be made. */
TEST(producer_sessions, out_of_memory_evicts_nobody) {
    struct failmem fail;
    for (uint64_t nth = 1; nth < 5; nth++) {
        struct us_senders senders;
        struct us_stamp stamp;
        bool full;
        failmem_init(&fail);
        start(&senders, &fail.mem, 1);
        settle(emit_over(&senders, "a", 1, &stamp, false));
        failmem_arm(&fail, nth, false);
        struct us_sent *sent = begin(&senders, "b", &stamp, &full);
        CHECK(!fail.failed == (sent != NULL));
        CHECK_U64(atomic_load(&senders.evicted), 0);
        CHECK_U64(us_senders_count(&senders), sent ? 2 : 1);
        if (sent)
            us_shard_commit(sent->shard, sent, &stamp, false);
        CHECK_U64(atomic_load(&senders.evicted), sent != NULL);
        CHECK_U64(us_senders_count(&senders), 1);
        us_senders_destroy(&senders);
        CHECK(failmem_is_balanced(&fail));
    }
}

/* A record that librdkafka refuses costs nobody his place, and raises no epoch, however often it is tried. */
TEST(producer_sessions, a_call_that_fails_evicts_nobody) {
    struct us_senders senders;
    struct us_stamp stamp;
    bool full;
    start(&senders, &us_mem_default, 2);
    settle(emit(&senders, "a", &stamp, false));
    settle(emit(&senders, "b", &stamp, false));
    for (int i = 0; i < 1000; i++) {
        struct us_sent *sent = begin(&senders, i % 2 ? "c" : "d", &stamp, &full);
        CHECK(sent);
        CHECK_U64(stamp.seq, 1);
        us_shard_release(sent->shard, sent);
        CHECK_U64(us_senders_count(&senders), 2);
    }
    CHECK_U64(atomic_load(&senders.evicted), 0);
    CHECK_U64(atomic_load(&senders.epoch), 100);
    for (int i = 0; i < 2; i++) {
        settle(emit(&senders, i ? "b" : "a", &stamp, false));
        CHECK_U64(stamp.seq, 2);
        CHECK_U64(stamp.epoch, 100);
    }
    settle(emit(&senders, "c", &stamp, false));
    CHECK_U64(us_senders_count(&senders), 2);
    CHECK_U64(atomic_load(&senders.evicted), 1);
    settle(emit(&senders, "a", &stamp, false)); /* it was the idlest */
    CHECK_U64(stamp.seq, 1);
    us_senders_destroy(&senders);
}

/* Returns how many sessions of `max` had room for a record in flight. */
static uint32_t fill(struct us_senders *senders, uint32_t max) {
    struct us_stamp stamp;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < max; i++) {
        char id[12];
        bool full = false;
        snprintf(id, sizeof id, "%" PRIu32, i);
        struct us_sent *sent = begin(senders, id, &stamp, &full);
        CHECK(sent || full);
        if (sent)
            us_shard_commit(sent->shard, sent, &stamp, false);
        taken += sent != NULL;
    }
    return taken;
}

/* Divided among shards of a few places each, the first one was full when there were few sessions in all. */
TEST(producer_sessions, as_many_as_there_may_be_can_be_in_flight) {
    static const uint32_t exact[] = {1, 2, 63, 64, 127, 1000, 8191}, almost[] = {8192, 20000};
    struct us_senders senders;
    struct us_stamp stamp;
    bool full;
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) {
        start(&senders, &us_mem_default, exact[i]);
        CHECK_U64(fill(&senders, exact[i]), exact[i]);
        CHECK(!begin(&senders, "more", &stamp, &full) && full);
        us_senders_destroy(&senders);
    }
    for (size_t i = 0; i < sizeof almost / sizeof almost[0]; i++) {
        start(&senders, &us_mem_default, almost[i]);
        senders.seed = 1;
        uint32_t taken = fill(&senders, almost[i]);
        CHECK_THAT(taken > almost[i] / 100 * 95, "%" PRIu32 " of %" PRIu32, taken, almost[i]);
        us_senders_destroy(&senders);
    }
}

/* Two producers, one made after some evictions of the other: it is higher than they are. */
static void check_successor(const struct us_lane_map *map, int evictions) {
    struct us_senders first, second;
    struct us_stamp stamp;
    CHECK(us_senders_init(&first, &us_mem_default, map, 1, 0, 1));
    for (int i = 0; i <= evictions; i++)
        settle(emit_over(&first, i % 2 ? "a" : "b", 1, &stamp, false));
    CHECK_U64(atomic_load(&first.evicted), evictions);
    uint64_t epoch = stamp.epoch;
    CHECK(us_senders_init(&second, &us_mem_default, map, 1, 0, 1));
    settle(emit(&second, "a", &stamp, false));
    CHECK(stamp.epoch > epoch && stamp.epoch > atomic_load(&first.epoch));
    CHECK(stamp.epoch < (us_clock_wall_ms() + 2) << US_EPOCH_BITS); /* the next run will be higher */
    us_senders_destroy(&first);
    us_senders_destroy(&second);
}

/* Epochs by the clock. Many pairs are made within one ms: then only the order in which they are made tells. */
TEST(producer_sessions, a_later_producer_is_higher_than_the_evictions_of_an_earlier_one) {
    const struct us_lane_map map = two_lanes();
    for (int i = 0; i < 500; i++)
        check_successor(&map, 5);
    check_successor(&map, 20000);
}

TEST(producer_sessions, a_record_without_a_session) {
    struct us_senders senders;
    bool full;
    start(&senders, &us_mem_default, 10);
    struct us_sent *sent = us_shard_begin(senders.shards, NULL, 0, NULL, &full);
    CHECK(sent && !sent->sender);
    us_shard_commit(senders.shards, sent, NULL, false);
    settle(sent);
    CHECK_U64(us_senders_count(&senders), 0);
    us_senders_destroy(&senders);
}
