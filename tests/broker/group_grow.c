/* SPDX-License-Identifier: BSD-2-Clause */
/* What grows while a group runs: partitions of a topic, and the number of lane topics. */
#include <broker/fixture/herd.h>
#include <string.h>
#include <support/check.h>

static const char *const quick[] = {"heartbeat.interval.ms", "200", NULL};

static bool owns(const struct herd *herd, int i, const char *topic, int32_t partition) {
    rd_kafka_topic_partition_list_t *list = herd_owned(herd, i);
    bool found = rd_kafka_topic_partition_list_find(list, topic, partition) != NULL;
    rd_kafka_topic_partition_list_destroy(list);
    return found;
}

static void grow_lane_topics(const struct scene *scene, int topics, int partitions) {
    char name[128];
    for (int lane = 0; lane < topics; lane++)
        herd_grow(scene_topic(scene, lane, name, sizeof name), partitions);
}

/* A record of a session of its own, with a number, in a partition that the library's producer never uses. */
static void send_above(struct herd *herd, const char *topic, int32_t partition, const char *session, uint64_t seq,
                       uint16_t lanes) {
    static const char *const words[3] = {"who", "number", "run"};
    char errstr[256], payload[64];
    struct checker_record name = {.session = session, .session_len = strlen(session), .epoch = 1, .seq = seq};
    unsalt_header_t header = {.lane = (uint16_t)(seq % lanes), .lanes = lanes, .epoch = 1, .seq = seq, .since = 1,
                              .una = 1};
    unsigned char bytes[UNSALT_HEADER_SIZE];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, scene_conf(), errstr, sizeof errstr);
    if (!rk || unsalt_header_write(&header, bytes) != UNSALT_HEADER_OK)
        scene_die("no producer: %s", errstr);
    checker_payload(payload, sizeof payload, words, &name);
    rd_kafka_resp_err_t err = rd_kafka_producev(
        rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(session, strlen(session)),
        RD_KAFKA_V_VALUE(payload, sizeof payload), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_HEADER(UNSALT_HEADER_NAME, bytes, sizeof bytes), RD_KAFKA_V_END);
    if (err || rd_kafka_flush(rk, 10000))
        scene_die("the record is not accepted");
    rd_kafka_destroy(rk);
    name.partition = scene_place(herd->scene, topic, partition);
    checker_log_record(herd->accepted, &name);
}

/*
 * All lane topics grow under load. Each member hears of it, once for each topic it reads, and no session moves: the
 * members' shares of the first N stay. Partitions above N are lane sets of their own, merged like any other.
 */
Test(group_grow, lane_topics_get_more_partitions, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 7, .lanes = 2};
    struct herd herd = {.conf = quick, .listens = UNSALT_EVENT_PARTITIONS_CHANGED, .flows = true};
    char lane[128];
    scene_open(&scene, "grow");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_join(&herd, 1);
    herd_settle(&herd, 14);
    herd_send(&herd, 20);
    int first = owns(&herd, 0, scene.topic, 0) ? 0 : 1;
    grow_lane_topics(&scene, 2, 8);
    for (int i = 0; i < 2; i++)
        herd_wait_event(&herd, i, UNSALT_EVENT_PARTITIONS_CHANGED, 2);
    herd_send(&herd, 20);
    herd_settle(&herd, 16);
    for (int32_t p = 0; p < 7; p++)
        CHECK(owns(&herd, p < 4 ? first : 1 - first, scene.topic, p));
    CHECK(herd_together(&herd));
    scene_topic(&scene, 1, lane, sizeof lane);
    for (uint64_t seq = 10; seq > 0; seq -= 2)
        send_above(&herd, scene.topic, 7, "above", seq, 2);
    for (uint64_t seq = 1; seq < 10; seq += 2)
        send_above(&herd, lane, 7, "above", seq, 2);
    herd_send(&herd, 20);
    herd_settle(&herd, 16);
    for (int i = 0; i < 2; i++) {
        const char *text = herd.members[i].text;
        CHECK_THAT(strstr(text, "has 8 partitions, configured are 7") && strstr(text, "sessions stay"), "%s", text);
        CHECK_U64(herd.members[i].reader.events[UNSALT_EVENT_PARTITIONS_CHANGED], 2);
        CHECK_U64(herd.members[i].reader.events[UNSALT_EVENT_COLOCATION], 0);
    }
    herd_close(&herd);
}

/* One lane topic grows alone, and one member reads them all: there is nothing to refuse. */
Test(group_grow, one_topic_gets_more_partitions, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 3, .lanes = 2};
    struct herd herd = {.conf = quick, .listens = UNSALT_EVENT_PARTITIONS_CHANGED, .flows = true};
    scene_open(&scene, "alone");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_settle(&herd, 6);
    herd_send(&herd, 10);
    herd_grow(scene.topic, 5);
    herd_wait_event(&herd, 0, UNSALT_EVENT_PARTITIONS_CHANGED, 1);
    herd_settle(&herd, 8);
    for (uint64_t seq = 1; seq <= 5; seq++)
        send_above(&herd, scene.topic, 4, "above", seq, 1);
    herd_send(&herd, 10);
    CHECK(herd_drain(&herd));
    CHECK_U64(herd.members[0].reader.events[UNSALT_EVENT_PARTITIONS_CHANGED], 1);
    CHECK_U64(herd.members[0].reader.events[UNSALT_EVENT_COLOCATION], 0);
    herd_close(&herd);
}

/* Blocks: the shares of two members of 10 partitions would cut one. The event names the numbers that are right now. */
Test(group_grow, a_topic_of_blocks_gets_more_partitions, .timeout = 60) {
    struct scene scene = {.layout = "block", .partitions = 8, .lanes = 2};
    struct herd herd = {.conf = quick, .listens = UNSALT_EVENT_COLOCATION, .flows = true};
    scene_open(&scene, "blocks");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_join(&herd, 1);
    herd_settle(&herd, 8);
    herd_send(&herd, 10);
    herd_grow(scene.topic, 10);
    for (double until = scene_now() + 20; scene_now() < until && !strstr(herd.members[0].text, "grown to 10");)
        herd_poll(&herd, 20); /* by the group it may be heard of before the topic was looked at */
    CHECK_THAT(strstr(herd.members[0].text, "use 1 members"), "%s", herd.members[0].text);
    herd_send(&herd, 10);
    herd_leave(&herd, 1);
    herd_settle(&herd, 10);
    CHECK(herd_drain(&herd));
    herd_close(&herd);
}

/*
 * A third lane topic in a rolling deployment: it exists, then the members are restarted one by one with lanes=3, then
 * the producer uses it. Whoever is new already has complete sets of all three, and those of which it has the third
 * lane alone it doesn't read: nobody writes there yet.
 */
Test(group_grow, a_lane_topic_is_added_member_by_member, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 7, .lanes = 3};
    struct herd herd = {.conf = quick, .lanes = 2, .hot_lanes = 2, .flows = true};
    scene_open(&scene, "rolling");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_join(&herd, 1);
    herd_settle(&herd, 14);
    herd_send(&herd, 20);
    herd.lanes = 3;
    herd_leave(&herd, 0);
    herd_join(&herd, 0);
    herd_settle(&herd, 21);
    uint64_t before = checker_log_records(herd.delivered);
    herd_send(&herd, 20);
    CHECK_THAT(herd_drain(&herd), "in the middle of the deployment %llu records were delivered after %llu",
               (unsigned long long)checker_log_records(herd.delivered), (unsigned long long)before);
    herd_leave(&herd, 1);
    herd_send(&herd, 5);
    herd_join(&herd, 1);
    herd_settle(&herd, 21);
    CHECK(herd_together(&herd));
    herd_send(&herd, 1);
    CHECK(herd_drain(&herd));
    herd.hot_lanes = 3;
    herd_send(&herd, 30);
    herd_close(&herd);
}
