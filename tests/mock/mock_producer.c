/* SPDX-License-Identifier: BSD-2-Clause */
/* The stamping producer on librdkafka's mock cluster: what it writes is read back with a plain consumer. */
#include <codec/murmur2.h>
#include <kafka/clock.h>
#include <kafka/extract.h>
#include <kafka/producer_epoch.h>
#include <mock/fixture/sent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>

#define N 8

TEST(mock_producer, layout_hash) {
    static const char *const sessions[] = {"a", "b", "room", "room#1", "x#y"};
    const struct us_lane_map map = sent_map(US_LAYOUT_HASH, 4, N);
    struct sent_cluster c = sent_open();
    uint64_t before = us_clock_wall_ms() << US_EPOCH_BITS;
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=4");
    for (int i = 0; i < 500; i++)
        sent_put(p, "t", sessions[i % 5], "x");
    sent_flush(p);
    unsalt_producer_stats_t stats = sent_stats(p);
    CHECK_U64(stats.stamped, 500);
    CHECK_U64(stats.acked, 500);
    CHECK_U64(stats.sessions, 5);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_count, 500);
    for (int i = 0; i < 5; i++)
        CHECK_U64(sent_check_session(sessions[i], 4, &map), 100);
    for (size_t i = 0; i < sent_count; i++)
        CHECK(sent_records[i].header.epoch >= before && sent_records[i].header.epoch == stats.epoch);
    CHECK(stats.epoch < (us_clock_wall_ms() + 1) << US_EPOCH_BITS);
    sent_close(&c);
}

TEST(mock_producer, layout_topics) {
    const struct us_lane_map map = sent_map(US_LAYOUT_TOPICS, 3, N);
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    sent_add_topic(&c, "t.lane-1", N);
    sent_add_topic(&c, "t.lane-2", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "layout=topics partitions=8 lanes=3 producer.epoch=42");
    for (int i = 0; i < 300; i++)
        sent_put(p, "t", i % 2 ? "room#1" : "b", "x");
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t t.lane-1 t.lane-2", N);
    CHECK_U64(sent_count, 300);
    CHECK_U64(sent_check_session("room#1", 3, &map), 150);
    CHECK_U64(sent_check_session("b", 3, &map), 150);
    for (size_t i = 0; i < sent_count; i++) {
        char topic[32] = "t";
        if (sent_records[i].header.lane)
            snprintf(topic, sizeof topic, "t.lane-%u", sent_records[i].header.lane);
        CHECK_STR(sent_records[i].topic, topic);
        CHECK_U64(sent_records[i].header.epoch, 42);
    }
    sent_close(&c);
}

TEST(mock_producer, lane_topics_by_name) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "pay", N);
    sent_add_topic(&c, "hot", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "layout=topics partitions=8 lane.topics=pay,hot");
    for (int i = 0; i < 10; i++)
        sent_put(p, "pay", "a", "x");
    CHECK(unsalt_produce(p, "other", "a", 1, "x", 1, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
    CHECK(unsalt_produce(p, "other", NULL, 0, "x", 1, NULL) == RD_KAFKA_RESP_ERR__INVALID_ARG);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "pay hot", N);
    CHECK_U64(sent_count, 10);
    for (size_t i = 0; i < sent_count; i++)
        CHECK_STR(sent_records[i].topic, sent_records[i].header.lane ? "hot" : "pay");
    sent_close(&c);
}

TEST(mock_producer, one_lane_keeps_the_key) {
    const struct us_lane_map map = sent_map(US_LAYOUT_HASH, 1, N);
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=1");
    for (int i = 0; i < 50; i++)
        sent_put(p, "t", "room#3", "x");
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_check_session("room#3", 1, &map), 50);
    CHECK_I64(sent_records[0].partition, us_murmur2_partition("room#3", 6, N));
    sent_close(&c);
}

TEST(mock_producer, tombstones_last_and_no_session) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=2");
    sent_put(p, "t", "a", NULL);
    unsalt_record_t end = sent_record_of("t", "a", "end");
    end.flags = UNSALT_F_LAST;
    CHECK(unsalt_produce_record(p, &end) == RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(unsalt_produce(p, "t", NULL, 0, "free", 4, NULL) == RD_KAFKA_RESP_ERR_NO_ERROR);
    sent_flush(p);
    CHECK_U64(sent_stats(p).unstamped, 1);
    CHECK_U64(sent_stats(p).acked, 3);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct sent_record *r = &sent_records[i];
        if (!r->has_header) {
            CHECK(!r->has_key);
            CHECK_STR(r->payload, "free");
        } else if (r->header.seq == 1) {
            CHECK(!r->has_payload && r->header.flags == UNSALT_F_FIRST);
        } else {
            CHECK_U64(r->header.seq, 2);
            CHECK_U64(r->header.flags, UNSALT_F_LAST);
            CHECK_STR(r->payload, "end");
        }
    }
    sent_close(&c);
}

TEST(mock_producer, headers_and_timestamp_go_along) {
    struct sent_cluster c = sent_open();
    rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
    rd_kafka_header_add(headers, "other", -1, "mine", 4);
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=2");
    for (int i = 0; i < 4; i++) {
        unsalt_record_t r = sent_record_of("t", i < 2 ? "a" : NULL, "x");
        r.headers = i % 2 ? NULL : headers;
        r.timestamp = 1000 + i;
        CHECK_I64(unsalt_produce_record(p, &r), 0);
    }
    CHECK_U64(rd_kafka_header_cnt(headers), 1); /* as it was */
    rd_kafka_headers_destroy(headers);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct sent_record *r = &sent_records[i];
        CHECK(r->timestamp >= 1000 && r->timestamp < 1004);
        CHECK(r->has_header == (r->timestamp < 1002));
        CHECK_STR(r->other, r->timestamp % 2 ? "" : "mine");
        CHECK_U64(r->headers, (r->has_header ? 1 : 0) + (r->timestamp % 2 ? 0 : 1));
        if (r->has_header)
            CHECK_U64(r->header.seq, (uint64_t)r->timestamp - 999);
    }
    sent_close(&c);
}

/* The struct grows: older callers have a shorter one, newer ones must not ask for what isn't known. */
TEST(mock_producer, records_of_other_versions) {
    struct {
        unsalt_record_t r;
        uint64_t news;
    } longer = {.news = 0};
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=2");
    unsalt_record_t shorter = sent_record_of("t", "a", "x");
    shorter.size = offsetof(unsalt_record_t, headers);
    shorter.headers = (rd_kafka_headers_t *)&shorter; /* isn't looked at */
    shorter.lanes = 9;
    CHECK_I64(unsalt_produce_record(p, &shorter), 0);
    longer.r = sent_record_of("t", "a", "x");
    longer.r.size = sizeof longer;
    CHECK_I64(unsalt_produce_record(p, &longer.r), 0);
    longer.news = 1;
    CHECK_I64(unsalt_produce_record(p, &longer.r), RD_KAFKA_RESP_ERR__INVALID_ARG);
    sent_flush(p);
    CHECK_U64(sent_stats(p).acked, 2);
    unsalt_producer_destroy(p);
    sent_close(&c);
}

TEST(mock_producer, layout_block) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "layout=block partitions=8 lanes=4");
    unsalt_record_t r = sent_record_of("t", "room#1", "x");
    int32_t block = (int32_t)(us_lane_map_hash("room#1", 6) % 2) * 4;
    for (int i = 0; i < 40; i++) {
        r.lanes = i < 20 ? 1 : 4;
        CHECK_I64(unsalt_produce_record(p, &r), 0);
    }
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_count, 40);
    for (size_t i = 0; i < sent_count; i++) {
        const unsalt_header_t *h = &sent_records[i].header;
        CHECK_STR(sent_records[i].key, "room#1");
        CHECK(sent_records[i].partition >= block && sent_records[i].partition < block + 4);
        CHECK_U64(h->lanes, h->seq <= 20 ? 1 : 4);
        CHECK_U64(h->since, h->seq <= 20 ? 1 : 21);
        if (h->seq > 20)
            CHECK_I64(sent_records[i].partition, block + h->lane);
    }
    sent_close(&c);
}

TEST(mock_producer, lanes_of_a_topic_change_while_a_session_lives) {
    static const struct {
        uint16_t of_topic, of_record, lanes;
        uint64_t since;
    } steps[] = {{0, 0, 4, 1}, {1, 0, 1, 11}, {1, 3, 3, 21}, {4, 0, 4, 31}, {4, 4, 4, 31}, {2, 1, 1, 51}};
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=4");
    for (size_t i = 0; i < 6; i++) {
        unsalt_record_t r = sent_record_of("t", "a", "x");
        if (steps[i].of_topic)
            CHECK_I64(unsalt_producer_set_lanes(p, "t", steps[i].of_topic), 0);
        r.lanes = steps[i].of_record;
        for (int n = 0; n < 10; n++)
            CHECK_I64(unsalt_produce_record(p, &r), 0);
    }
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_count, 60);
    for (size_t i = 0; i < 60; i++) {
        const unsalt_header_t *h = &sent_records[i].header;
        size_t step = (h->seq - 1) / 10;
        char key[8];
        snprintf(key, sizeof key, h->lanes > 1 ? "a#%u" : "a", h->lane);
        CHECK_STR(sent_records[i].key, key);
        CHECK_U64(h->lanes, steps[step].lanes);
        CHECK_U64(h->lane, h->seq % h->lanes);
        CHECK_U64(h->since, steps[step].since);
        if (h->lanes == 1)
            CHECK_I64(sent_records[i].partition, us_murmur2_partition("a", 1, N));
    }
    sent_close(&c);
}

TEST(mock_producer, wrong_arguments) {
    struct sent_cluster c = sent_open();
    char lengthy[300];
    sent_add_topic(&c, "t", N);
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=2");
    const rd_kafka_resp_err_t wrong = RD_KAFKA_RESP_ERR__INVALID_ARG;
    CHECK(unsalt_produce(p, "t", "a", 0, "x", 1, NULL) == wrong);
    CHECK(unsalt_produce(p, "t", lengthy, 257, "x", 1, NULL) == wrong);
    CHECK(unsalt_produce(p, "t", lengthy, (size_t)1 << 20, "x", 1, NULL) == wrong);
    CHECK(unsalt_produce(p, "t", NULL, 3, "x", 1, NULL) == wrong);
    CHECK(unsalt_produce(p, "t", "a", 1, NULL, 1, NULL) == wrong);
    CHECK(unsalt_produce(p, NULL, "a", 1, "x", 1, NULL) == wrong);
    CHECK(unsalt_produce(p, "", "a", 1, "x", 1, NULL) == wrong);
    CHECK(unsalt_produce(p, lengthy, "a", 1, "x", 1, NULL) == wrong);
    unsalt_record_t good = sent_record_of("t", "a", "x"), r = good;
    r.flags = UNSALT_F_MARKER;
    CHECK(unsalt_produce_record(p, &r) == wrong);
    r = sent_record_of("t", NULL, "x");
    r.flags = UNSALT_F_LAST;
    CHECK(unsalt_produce_record(p, &r) == wrong);
    r = good;
    r.lanes = 3;
    CHECK(unsalt_produce_record(p, &r) == wrong);
    r = good;
    r.timestamp = -1;
    CHECK(unsalt_produce_record(p, &r) == wrong);
    r = good;
    r.headers = rd_kafka_headers_new(1);
    rd_kafka_header_add(r.headers, UNSALT_HEADER_NAME, -1, "x", 1);
    CHECK(unsalt_produce_record(p, &r) == wrong);
    rd_kafka_headers_destroy(r.headers);
    CHECK(unsalt_produce_record(p, NULL) == wrong);
    r = good;
    r.size = sizeof r.size;
    CHECK(unsalt_produce_record(p, &r) == wrong);
    CHECK(unsalt_producer_set_lanes(p, "t", 0) == wrong);
    CHECK(unsalt_producer_set_lanes(p, "t", 3) == wrong);
    CHECK(unsalt_producer_set_lanes(p, "", 1) == wrong);
    CHECK(unsalt_producer_set_lanes(p, NULL, 1) == wrong);
    CHECK(unsalt_producer_set_lanes(p, lengthy, 1) == wrong);
    CHECK_U64(sent_stats(p).sessions, 0);
    CHECK(unsalt_producer_stats(p, NULL, 0) == -1);
    unsalt_producer_destroy(p);
    unsalt_producer_destroy(NULL);
    sent_close(&c);
}

/* ---- numbers, whatever goes wrong */

TEST(mock_producer, a_full_queue_uses_no_number) {
    const struct us_lane_map map = sent_map(US_LAYOUT_HASH, 4, N);
    struct sent_cluster c = sent_open();
    rd_kafka_conf_t *conf = sent_client_conf(&c);
    int refused = 0;
    sent_add_topic(&c, "t", N);
    sent_set(conf, "queue.buffering.max.messages", "10");
    unsalt_producer_t *p = sent_producer(conf, "partitions=8 lanes=4");
    for (int sent = 0; sent < 200;) {
        rd_kafka_resp_err_t err = unsalt_produce(p, "t", "a", 1, "x", 1, NULL);
        CHECK(!err || err == RD_KAFKA_RESP_ERR__QUEUE_FULL);
        refused += err != 0;
        sent += !err;
        if (err)
            unsalt_producer_poll(p, 10);
    }
    CHECK(refused > 0);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_check_session("a", 4, &map), 200);
    sent_close(&c);
}

TEST(mock_producer, una_of_records_that_are_sent_at_once) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", N);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=4 producer.check.ms=0");
    for (int i = 0; i < 100; i++)
        sent_put(p, "t", "a", "x"); /* nothing can be acknowledged before the broker is up */
    rd_kafka_mock_broker_set_up(c.mock, 1);
    sent_flush(p);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_count, 100);
    for (size_t i = 0; i < sent_count; i++)
        CHECK_U64(sent_records[i].header.una, 1);
    sent_close(&c);
}

TEST(mock_producer, a_session_that_was_evicted_has_a_higher_epoch) {
    struct sent_cluster c = sent_open();
    sent_add_topic(&c, "t", 1);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c),
                                         "partitions=1 lanes=1 producer.sessions.max=1 producer.epoch=7");
    static const char *const sent[] = {"a", "a", "b", "a"};
    for (int i = 0; i < 4; i++) {
        sent_put(p, "t", sent[i], "x");
        sent_flush(p);
    }
    CHECK_U64(sent_stats(p).evicted, 2);
    unsalt_producer_destroy(p);
    sent_read_back(&c, "t", 1);
    CHECK_U64(sent_count, 4);
    CHECK_U64(sent_records[1].header.seq, 2);
    CHECK_U64(sent_records[1].header.epoch, 7);
    CHECK_STR(sent_records[3].key, "a");
    CHECK_U64(sent_records[3].header.seq, 1);
    CHECK(sent_records[3].header.epoch > 7);
    sent_close(&c);
}

struct work {
    unsalt_producer_t *p;
    int records;
};

static void *produce_some(void *arg) {
    static const char *const sessions[] = {"a", "b", "c"};
    struct work *work = arg;
    for (int i = 0; i < work->records; i++)
        while (unsalt_produce(work->p, "t", sessions[i % 3], 1, "x", 1, NULL) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            unsalt_producer_poll(work->p, 5);
    return NULL;
}

TEST(mock_producer, concurrent_callers_keep_every_lane_in_order) {
    const struct us_lane_map map = sent_map(US_LAYOUT_HASH, 4, N);
    struct sent_cluster c = sent_open();
    pthread_t threads[4];
    sent_add_topic(&c, "t", N);
    struct work work = {sent_producer(sent_client_conf(&c), "partitions=8 lanes=4"), 3000};
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, produce_some, &work) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sent_flush(work.p);
    unsalt_producer_destroy(work.p);
    sent_read_back(&c, "t", N);
    CHECK_U64(sent_count, 12000);
    CHECK_U64(sent_check_session("a", 4, &map), 4000);
    CHECK_U64(sent_check_session("b", 4, &map), 4000);
    CHECK_U64(sent_check_session("c", 4, &map), 4000);
    sent_close(&c);
}

/* ---- what the consumer side makes of it */

TEST(mock_producer, the_extractor_reads_what_was_written) {
    struct sent_cluster c = sent_open();
    struct us_extractor x;
    char err[256];
    sent_add_topic(&c, "t", N);
    unsalt_producer_t *p = sent_producer(sent_client_conf(&c), "partitions=8 lanes=4");
    for (int i = 0; i < 40; i++)
        sent_put(p, "t", "room#1", "x");
    sent_flush(p);
    unsalt_producer_destroy(p);
    unsalt_conf_t *conf = sent_unsalt_conf("");
    CHECK_THAT(us_extractor_init(&x, conf, err, sizeof err), "%s", err);
    rd_kafka_conf_t *rk_conf = sent_client_conf(&c);
    sent_set(rk_conf, "group.id", "g");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, rk_conf, err, sizeof err);
    CHECK_THAT(rk, "%s", err);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(N);
    for (int i = 0; i < N; i++)
        rd_kafka_topic_partition_list_add(list, "t", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    uint64_t end = us_clock_now() + SENT_PATIENCE_MS * UINT64_C(1000000), sum = 0;
    for (int i = 0; i < 40;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        CHECK(us_clock_now() < end);
        if (!message)
            continue;
        unsalt_core_in_t in;
        bool borrowed;
        CHECK(!message->err && !us_extract(&x, message, &in, &borrowed));
        CHECK_U64(in.kind, UNSALT_KIND_SEQUENCED);
        CHECK_BYTES(in.session, in.session_len, "room#1", 6);
        CHECK(in.lanes == 4 && in.lane == in.seq % 4 && in.timestamp > 0 && !borrowed);
        sum += in.seq;
        i++;
        rd_kafka_message_destroy(message);
    }
    CHECK_U64(sum, 820);
    rd_kafka_destroy(rk);
    us_extractor_destroy(&x);
    unsalt_conf_destroy(conf);
    sent_close(&c);
}
