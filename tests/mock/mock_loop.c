/* SPDX-License-Identifier: BSD-2-Clause */
/* A consumer that is driven by nothing but poll(2): by its wake-ups and its deadlines, with every call's timeout 0. */
#include <poll.h>
#include <pthread.h>
#include <support/check.h>
#include <support/mockcluster.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LANES 4
#define RECORDS 400
#define SWEEP_MS 1000

struct loop {
    struct mock mock;
    unsalt_t *u;
    int fd;
    bool one_each; /* one message per turn of the loop, rather than all that there are */
    struct takings takings;
    unsigned turns, wakes;
};

static void enable(struct loop *loop) {
    uint64_t one = 1;
    CHECK_I64(unsalt_io_event_enable(loop->u, loop->fd, &one, sizeof(one)), RD_KAFKA_RESP_ERR_NO_ERROR);
}

static void open_loop(struct loop *loop, int brokers, const char *settings, struct heard *heard) {
    mock_open(&loop->mock, brokers);
    mock_topic(&loop->mock, "t", LANES);
    loop->u = mock_consumer(&loop->mock, "g", settings, heard);
    loop->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(loop->fd >= 0);
    enable(loop);
}

static void close_loop(struct loop *loop) {
    takings_free(&loop->takings);
    mock_done(loop->u);
    close(loop->fd);
    mock_close(&loop->mock);
}

static bool readable(struct loop *loop, int ms) {
    struct pollfd fd = {.fd = loop->fd, .events = POLLIN};
    uint64_t count;
    if (poll(&fd, 1, ms) <= 0) {
        return false;
    }
    CHECK_I64(read(loop->fd, &count, sizeof(count)), sizeof(count));
    return true;
}

static bool take_one(struct loop *loop) {
    rd_kafka_message_t *message = unsalt_consumer_poll(loop->u, 0);
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR_NO_ERROR);
    if (message) {
        take_message(loop->u, &loop->takings, message);
        rd_kafka_message_destroy(message);
    }
    return message != NULL;
}

static void turn(struct loop *loop) {
    int ms = unsalt_poll_deadline_ms(loop->u);
    CHECK_THAT(ms >= 0 && ms <= SWEEP_MS, "a deadline of %d ms", ms);
    loop->wakes += readable(loop, ms);
    loop->turns++;
    while (take_one(loop) && !loop->one_each) {
    }
}

/* Turns until `want` messages have come in all. */
static bool run(struct loop *loop, size_t want, int ms) {
    uint64_t until = now_ms() + (uint64_t)ms;
    while (loop->takings.count < want && now_ms() < until) {
        turn(loop);
    }
    return loop->takings.count >= want;
}

/* Turns for this long. */
static void idle(struct loop *loop, int ms) {
    for (uint64_t until = now_ms() + (uint64_t)ms; now_ms() < until;) {
        turn(loop);
    }
}

/* Whole lanes one after the other, the last lane first: the worst order that fetches can have. */
static void send_skewed(struct mock *mock) {
    for (int lane = LANES - 1; lane >= 0; lane--) {
        for (uint64_t seq = 1; seq <= RECORDS; seq++) {
            if (seq % LANES == (uint64_t)lane) {
                mock_send(mock, "t", lane, "hot", seq, LANES);
            }
        }
        mock_flush(mock);
    }
}

TEST(loop, everything_in_order) {
    struct loop loop = {0};
    open_loop(&loop, 1, "", NULL);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    send_skewed(&loop.mock);
    CHECK(run(&loop, RECORDS, 15000));
    CHECK_U64(check_order(&loop.takings, 1), RECORDS);
    CHECK(loop.wakes > 0);
    close_loop(&loop);
}

/* The rest is announced by the deadline, which is 0 then: the wake-up came once for all of them. */
TEST(loop, one_message_a_turn) {
    struct loop loop = {.one_each = true};
    open_loop(&loop, 1, "", NULL);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    send_skewed(&loop.mock);
    uint64_t begun = now_ms();
    CHECK(run(&loop, RECORDS, 15000));
    CHECK_U64(check_order(&loop.takings, 1), RECORDS);
    CHECK_THAT(loop.wakes < RECORDS / 2, "%u wake-ups", loop.wakes);
    CHECK_THAT(now_ms() - begun < 10000, "it took %" PRIu64 " ms", now_ms() - begun);
    close_loop(&loop);
}

/* Each record is announced: none waits for the sweep, which would come after a second. */
TEST(loop, no_wake_up_is_lost) {
    struct loop loop = {0};
    unsalt_stats_t stats;
    open_loop(&loop, 1, "", NULL);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    mock_send(&loop.mock, "t", 1, "s", 1, LANES);
    CHECK(run(&loop, 1, 15000));
    CHECK_I64(unsalt_stats(loop.u, &stats, sizeof(stats)), 0);
    uint64_t hits = stats.sweep_hits;
    for (uint64_t seq = 2; seq <= 120; seq++) {
        mock_send(&loop.mock, "t", (int32_t)(seq % LANES), "s", seq, LANES);
        CHECK_THAT(run(&loop, seq, 5000), "record %" PRIu64 " doesn't come", seq);
    }
    CHECK_U64(check_order(&loop.takings, 1), 120);
    CHECK_I64(unsalt_stats(loop.u, &stats, sizeof(stats)), 0);
    /* librdkafka itself leaves out an event at times (that is what the sweep is for), but hardly ever. */
    CHECK_THAT(stats.sweep_hits - hits <= 2, "%" PRIu64 " of 119 records were not announced", stats.sweep_hits - hits);
    close_loop(&loop);
}

/*
 * Nothing arrives: the deadline alone makes the loop call at the right time. A sweep would do it a second after the
 * last one; on a busy machine that may come first now and then, but not every time.
 */
TEST(loop, a_gap_is_given_up_without_an_arrival) {
    struct heard heard;
    struct loop loop = {0};
    heard_init(&heard);
    open_loop(&loop, 1, "gap.timeout.ms=300", &heard);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    mock_send(&loop.mock, "t", 1, "s", 1, LANES);
    mock_send(&loop.mock, "t", 3, "s", 3, LANES);
    mock_flush(&loop.mock);
    CHECK(run(&loop, 1, 15000));
    uint64_t waited = 0, gaps = 0;
    do {
        uint64_t begun = now_ms();
        CHECK(run(&loop, 2 + gaps, 15000));
        waited = now_ms() - begun;
        CHECK_U64(loop.takings.got[1 + gaps].seq, 3 + 2 * gaps);
        CHECK(loop.takings.got[1 + gaps].after_gap);
        CHECK_U64(heard_count(&heard, UNSALT_EVENT_GAP), ++gaps);
        mock_send(&loop.mock, "t", (int32_t)((3 + 2 * gaps) % LANES), "s", 3 + 2 * gaps, LANES);
        mock_flush(&loop.mock);
    } while (waited >= 900 && gaps < 10);
    CHECK_THAT(waited < 900, "the last gap was given up after %" PRIu64 " ms", waited);
    close_loop(&loop);
}

TEST(loop, sleeps_while_there_is_nothing) {
    struct loop loop = {0};
    open_loop(&loop, 1, "", NULL);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    mock_send(&loop.mock, "t", 1, "s", 1, LANES);
    CHECK(run(&loop, 1, 15000));
    idle(&loop, 1200); /* the ends of the partitions come */
    loop.turns = loop.wakes = 0;
    idle(&loop, 2100);
    /* Two sweeps, and a little for a machine that is busy. */
    CHECK_THAT(loop.turns <= 6, "%u turns of the loop, %u by a wake-up", loop.turns, loop.wakes);
    close_loop(&loop);
}

/*
 * Time that the loop waits for us is reading time: or a dead leader would never be found out, since the calls
 * themselves take no time.
 */
TEST(loop, a_dead_leader_is_found_out) {
    struct heard heard;
    struct loop loop = {0};
    heard_init(&heard);
    open_loop(&loop, 2, "gap.timeout.ms=100 gap.stall.max.ms=1000", &heard);
    for (int i = 0; i < LANES; i++) {
        CHECK(!rd_kafka_mock_partition_set_leader(loop.mock.cluster, "t", i, i == 2 ? 2 : 1));
    }
    mock_send(&loop.mock, "t", 1, "s", 1, LANES);
    mock_flush(&loop.mock);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
    CHECK(run(&loop, 1, 15000));
    rd_kafka_mock_broker_set_down(loop.mock.cluster, 2);
    mock_send(&loop.mock, "t", 3, "s", 3, LANES);
    uint64_t begun = now_ms();
    CHECK(run(&loop, 2, 15000));
    CHECK_U64(loop.takings.got[1].seq, 3);
    CHECK_I64(heard.reason[UNSALT_EVENT_GAP], UNSALT_GAP_STALLED);
    CHECK_THAT(now_ms() - begun >= 900, "given up after %" PRIu64 " ms", now_ms() - begun);
    rd_kafka_mock_broker_set_up(loop.mock.cluster, 2);
    close_loop(&loop);
}

static void *wake(void *opaque) {
    struct loop *loop = opaque;
    sleep_ms(100);
    unsalt_wakeup(loop->u);
    return NULL;
}

TEST(loop, another_thread_wakes_it) {
    struct loop loop = {0};
    pthread_t thread;
    open_loop(&loop, 1, "", NULL);
    while (unsalt_poll_deadline_ms(loop.u) == 0) {
        take_one(&loop);
    }
    while (readable(&loop, 0)) {
        take_one(&loop);
    }
    CHECK(!pthread_create(&thread, NULL, wake, &loop));
    bool woken = false;
    for (uint64_t until = now_ms() + 5000; !woken && now_ms() < until;) {
        woken = readable(&loop, 100);
    }
    CHECK(woken);
    pthread_join(thread, NULL);
    CHECK_I64(unsalt_poll_deadline_ms(loop.u), 0);
    CHECK(!take_one(&loop));
    close_loop(&loop);
}

static uint64_t partitions(const struct loop *loop) {
    unsalt_stats_t stats;
    CHECK_I64(unsalt_stats(loop->u, &stats, sizeof(stats)), 0);
    return stats.partitions;
}

static void *acknowledge(void *opaque) {
    struct loop *loop = opaque;
    sleep_ms(300);
    unsalt_ack(loop->u, loop->takings.got[0].token);
    return NULL;
}

/* A revoke that waits for an acknowledgement goes on when it comes, not when its time is over. */
TEST(loop, an_acknowledgement_ends_a_revoke) {
    struct loop loop = {0};
    pthread_t thread;
    open_loop(&loop, 1, "ack=manual revoke.timeout.ms=20000", NULL);
    mock_send(&loop.mock, "t", 1, "s", 1, LANES);
    mock_flush(&loop.mock);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, "t", RD_KAFKA_PARTITION_UA);
    CHECK(!unsalt_subscribe(loop.u, topics));
    rd_kafka_topic_partition_list_destroy(topics);
    CHECK(run(&loop, 1, 20000));
    CHECK_U64(partitions(&loop), LANES);
    CHECK(!unsalt_unsubscribe(loop.u));
    CHECK(!pthread_create(&thread, NULL, acknowledge, &loop));
    uint64_t begun = now_ms();
    while (partitions(&loop) > 0 && now_ms() - begun < 10000) {
        turn(&loop);
    }
    CHECK_U64(partitions(&loop), 0);
    CHECK_THAT(now_ms() - begun >= 250, "it did not wait");
    pthread_join(thread, NULL);
    close_loop(&loop);
}

/* What another call has changed is found without a wake-up: the deadline says so. */
TEST(loop, every_call_is_followed_by_a_round) {
    struct loop loop = {0};
    open_loop(&loop, 1, "gap.timeout.ms=-1", NULL);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    mock_send(&loop.mock, "t", 3, "s", 3, LANES);
    mock_flush(&loop.mock);
    idle(&loop, 1500);
    CHECK_U64(loop.takings.count, 0);
    CHECK(!unsalt_flush_gaps(loop.u));
    CHECK_I64(unsalt_poll_deadline_ms(loop.u), 0);
    turn(&loop);
    CHECK_U64(loop.takings.count, 1);
    CHECK(!unsalt_commit(loop.u, 1));
    CHECK_I64(unsalt_poll_deadline_ms(loop.u), 0);
    close_loop(&loop);
}

TEST(loop, no_more_wake_ups_once_disabled) {
    struct loop loop = {0};
    open_loop(&loop, 1, "", NULL);
    CHECK(!mock_assign(loop.u, "t", LANES, RD_KAFKA_OFFSET_INVALID));
    CHECK(!unsalt_io_event_enable(loop.u, -1, NULL, 0));
    while (readable(&loop, 0)) {
    }
    mock_send(&loop.mock, "t", 1, "s", 1, LANES);
    mock_flush(&loop.mock);
    CHECK(take(loop.u, &loop.takings, 1, 15000));
    unsalt_wakeup(loop.u);
    CHECK(!readable(&loop, 200));
    enable(&loop); /* what was signalled before counts */
    CHECK(readable(&loop, 1000));
    close_loop(&loop);
}

TEST(loop, errors) {
    static const char payload[65] = "";
    struct loop loop = {0};
    open_loop(&loop, 1, "", NULL);
    CHECK_I64(unsalt_io_event_enable(loop.u, loop.fd, NULL, 8), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_io_event_enable(loop.u, loop.fd, payload, 0), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK_I64(unsalt_io_event_enable(loop.u, loop.fd, payload, 65), RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK(!unsalt_consumer_close(loop.u));
    CHECK_I64(unsalt_io_event_enable(loop.u, loop.fd, payload, 8), RD_KAFKA_RESP_ERR__STATE);
    CHECK_I64(unsalt_poll_deadline_ms(loop.u), -1);
    CHECK_I64(unsalt_last_error(), RD_KAFKA_RESP_ERR__STATE);
    close_loop(&loop);
}
