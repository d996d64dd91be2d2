/* SPDX-License-Identifier: BSD-2-Clause */
/* Layout `block`: sessions stay in blocks of neighbouring partitions, and a group must not cut one. */
#include <codec/murmur2.h>
#include <core/layout.h>
#include <stdio.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define SLOW_TEST(suite, name) Test(suite, name, .timeout = 60)

enum { BLOCK = 3, SESSIONS = 12, RECORDS = 60 };

static int32_t place(const char *session, int partitions, uint16_t lanes, uint64_t seq) {
    uint32_t hash = us_murmur2(session, strlen(session)) & 0x7fffffff;
    return us_layout_block(hash, partitions, BLOCK, lanes, (uint16_t)(seq % lanes));
}

/* Sessions are cold, of two lanes or hot by turns; the last numbers of all come first where lanes differ. */
static void send_all(struct mock *mock, int partitions) {
    char session[24];
    for (uint64_t lane = 3; lane-- > 0;) {
        for (uint64_t seq = 1; seq <= RECORDS; seq++) {
            for (int i = 0; i < SESSIONS; i++) {
                uint16_t lanes = (uint16_t)(1 + i % 3);
                snprintf(session, sizeof(session), "session-%d", i);
                if (seq % lanes == lane) {
                    mock_send(mock, "t", place(session, partitions, lanes, seq), session, seq, lanes);
                }
            }
        }
        mock_flush(mock);
    }
}

static void open_topic(struct mock *mock, int partitions) {
    mock_open(mock, 1);
    mock_topic(mock, "t", partitions);
    send_all(mock, partitions);
}

TEST(block, hot_and_cold_sessions) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    heard_init(&heard);
    open_topic(&mock, 6);
    unsalt_t *u = mock_consumer(&mock, "g", "layout=block partitions=6 lanes=3", &heard);
    CHECK(!mock_assign(u, "t", 6, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(take(u, &takings, SESSIONS * RECORDS, 15000));
    CHECK_U64(check_order(&takings, 1), SESSIONS * RECORDS);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_GAP), 0);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_COLLISION), 0);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

static rd_kafka_resp_err_t assign_range(unsalt_t *u, int first, int last) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
    for (int i = first; i <= last; i++) {
        rd_kafka_topic_partition_list_add(list, "t", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    }
    rd_kafka_resp_err_t err = unsalt_assign(u, list);
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

TEST(block, an_assignment_that_cuts_a_block_is_refused) {
    struct mock mock;
    struct heard heard;
    struct takings takings = {0};
    heard_init(&heard);
    open_topic(&mock, 6);
    unsalt_t *u = mock_consumer(&mock, "g", "layout=block partitions=6 lanes=3", &heard);
    CHECK_I64(assign_range(u, 1, 5), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_COLOCATION), 1);
    const char *text = heard.text[UNSALT_EVENT_COLOCATION];
    CHECK_THAT(strstr(text, "1 partitions of owned lane sets") && strstr(text, "t [0]") &&
                   strstr(text, "use 1, 2 members") && strstr(text, "refused"), "%s", text);
    unsalt_stats_t stats;
    unsalt_stats(u, &stats, sizeof stats);
    CHECK_U64(stats.colocation_refused, 1);
    CHECK(!assign_range(u, 3, 5)); /* a whole block is enough for its sessions */
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_COLOCATION), 1);
    size_t want = 0;
    for (int i = 0; i < SESSIONS; i++) {
        char session[24];
        snprintf(session, sizeof(session), "session-%d", i);
        want += place(session, 6, 1, 1) >= BLOCK ? RECORDS : 0;
    }
    CHECK(want > 0 && want < SESSIONS * RECORDS);
    CHECK(take(u, &takings, want, 15000));
    CHECK_U64(check_order(&takings, 1), want);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* A block is a lane set of its own: what is not read of another one keeps no gap open. */
TEST(block, a_gap_waits_for_its_own_block_only) {
    struct mock mock;
    struct takings takings = {0};
    rd_kafka_topic_partition_list_t *other = rd_kafka_topic_partition_list_new(BLOCK);
    mock_open(&mock, 1);
    mock_topic(&mock, "t", 6);
    unsalt_t *u = mock_consumer(&mock, "g", "layout=block partitions=6 lanes=3 gap.timeout.ms=50", NULL);
    CHECK(!mock_assign(u, "t", 6, RD_KAFKA_OFFSET_BEGINNING));
    for (int i = BLOCK; i < 2 * BLOCK; i++) {
        rd_kafka_topic_partition_list_add(other, "t", i);
    }
    CHECK(!unsalt_pause(u, other));
    rd_kafka_topic_partition_list_destroy(other);
    for (int i = BLOCK; i < 2 * BLOCK; i++) {
        mock_send(&mock, "t", i, "unread", 1, 1);
    }
    mock_send(&mock, "t", 1, "gappy", 1, 1);
    mock_send(&mock, "t", 1, "gappy", 3, 1);
    mock_flush(&mock);
    CHECK(take(u, &takings, 2, 15000));
    CHECK(takings.got[1].seq == 3 && takings.got[1].after_gap);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}

/* ---- groups of two members */

struct pair {
    struct mock mock;
    struct heard heard[2];
    struct takings takings[2];
    unsalt_t *u[2];
};

/* One member may have joined alone at first: nothing is there to be read before both have their shares. */
static void wait_for_shares(struct pair *pair, int partitions) {
    unsalt_stats_t stats[2] = {{0}};
    for (uint64_t until = now_ms() + 30000; now_ms() < until;) {
        for (int i = 0; i < 2; i++) {
            take_nothing(pair->u[i], 50);
            unsalt_stats(pair->u[i], &stats[i], sizeof(stats[i]));
        }
        if (stats[0].partitions > 0 && stats[1].partitions > 0 &&
            stats[0].partitions + stats[1].partitions == (uint64_t)partitions) {
            return;
        }
    }
    CHECK_THAT(false, "the members have %d and %d partitions", (int)stats[0].partitions, (int)stats[1].partitions);
}

static void begin_pair(struct pair *pair, int partitions) {
    char settings[64];
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    memset(pair, 0, sizeof(*pair));
    rd_kafka_topic_partition_list_add(topics, "t", RD_KAFKA_PARTITION_UA);
    snprintf(settings, sizeof(settings), "layout=block partitions=%d lanes=3", partitions);
    mock_open(&pair->mock, 1);
    mock_topic(&pair->mock, "t", partitions);
    for (int i = 0; i < 2; i++) {
        rd_kafka_conf_t *conf = mock_rd_conf(&pair->mock, "g");
        mock_rd_set(conf, "partition.assignment.strategy", "range");
        heard_init(&pair->heard[i]);
        pair->u[i] = mock_consumer_of(conf, mock_conf(settings, &pair->heard[i]));
        CHECK(!unsalt_subscribe(pair->u[i], topics));
    }
    rd_kafka_topic_partition_list_destroy(topics);
    wait_for_shares(pair, partitions);
    send_all(&pair->mock, partitions);
}

static void end_pair(struct pair *pair) {
    for (int i = 0; i < 2; i++) {
        takings_free(&pair->takings[i]);
        mock_done(pair->u[i]);
    }
    mock_close(&pair->mock);
}

/* Which blocks a member took records from, as bits. */
static unsigned blocks_of(const struct takings *takings) {
    unsigned blocks = 0;
    for (size_t i = 0; i < takings->count; i++) {
        blocks |= 1u << takings->got[i].partition / BLOCK;
    }
    return blocks;
}

SLOW_TEST(block, two_members_and_four_blocks) {
    struct pair pair;
    begin_pair(&pair, 12);
    for (uint64_t until = now_ms() + 30000; now_ms() < until;) {
        if (pair.takings[0].count + pair.takings[1].count >= SESSIONS * RECORDS) {
            break;
        }
        for (int i = 0; i < 2; i++) {
            take(pair.u[i], &pair.takings[i], pair.takings[i].count + 100, 50);
        }
    }
    CHECK_U64(check_order(&pair.takings[0], 1) + check_order(&pair.takings[1], 1), SESSIONS * RECORDS);
    CHECK(pair.takings[0].count > 0 && pair.takings[1].count > 0);
    CHECK((blocks_of(&pair.takings[0]) & blocks_of(&pair.takings[1])) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK_U64(heard_count(&pair.heard[i], UNSALT_EVENT_COLOCATION), 0);
        CHECK_U64(heard_count(&pair.heard[i], UNSALT_EVENT_GAP), 0);
    }
    end_pair(&pair);
}

/* The block in the middle is cut: nobody reads it. The others are whole, and each is read by one. */
SLOW_TEST(block, two_members_and_three_blocks) {
    struct pair pair;
    begin_pair(&pair, 9);
    for (uint64_t until = now_ms() + 30000; now_ms() < until;) {
        if (heard_count(&pair.heard[0], UNSALT_EVENT_COLOCATION) &&
            heard_count(&pair.heard[1], UNSALT_EVENT_COLOCATION)) {
            break;
        }
        for (int i = 0; i < 2; i++) {
            take(pair.u[i], &pair.takings[i], pair.takings[i].count + 1, 50);
        }
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 2; i++) {
            take(pair.u[i], &pair.takings[i], pair.takings[i].count + 100, 50);
        }
    }
    CHECK(((blocks_of(&pair.takings[0]) | blocks_of(&pair.takings[1])) & 2) == 0);
    CHECK((blocks_of(&pair.takings[0]) & blocks_of(&pair.takings[1])) == 0);
    for (int i = 0; i < 2; i++) {
        const char *text = pair.heard[i].text[UNSALT_EVENT_COLOCATION];
        CHECK_THAT(strstr(text, "use 1, 3 members") && strstr(text, "refused"), "%s", text);
    }
    end_pair(&pair);
}
