/* SPDX-License-Identifier: BSD-2-Clause */
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

static struct us_sent *begin(struct us_senders *senders, const char *id, struct us_stamp *stamp, bool *full) {
    char bytes[16];
    struct us_sender_name n = name(id, bytes);
    return us_shard_begin(us_senders_shard(senders, &n), &n, stamp, full);
}

static struct us_sent *emit(struct us_senders *senders, const char *id, struct us_stamp *stamp, bool last) {
    bool full;
    struct us_sent *sent = begin(senders, id, stamp, &full);
    CHECK_THAT(sent, "no record for %s", id);
    us_shard_commit(sent->shard, sent, last);
    return sent;
}

static void settle(struct us_sent *sent) {
    us_shard_resolve(sent->shard, sent);
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
    us_shard_cancel(sent->shard, sent);
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
    CHECK(us_shard_begin(us_senders_shard(&senders, &other), &other, &stamp, &full));
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
            if (!sent)
                sent = begin(&senders, "a", &stamp, &full);
            CHECK(sent);
            CHECK_U64(stamp.seq, 1);
            CHECK_U64(us_senders_count(&senders), 1);
            us_shard_cancel(sent->shard, sent);
            us_senders_destroy(&senders);
        }
        CHECK(made || fail.failed);
        CHECK(failmem_is_balanced(&fail));
    }
}

TEST(producer_sessions, a_record_without_a_session) {
    struct us_senders senders;
    bool full;
    start(&senders, &us_mem_default, 10);
    struct us_sent *sent = us_shard_begin(senders.shards, NULL, NULL, &full);
    CHECK(sent && !sent->sender);
    us_shard_commit(senders.shards, sent, false);
    settle(sent);
    CHECK_U64(us_senders_count(&senders), 0);
    us_senders_destroy(&senders);
}
