/* SPDX-License-Identifier: BSD-2-Clause */
/* What a checkpoint covers besides numbers of plain sessions: records without a number, ids of any bytes, topics. */
#include <broker/fixture/course.h>
#include <broker/fixture/sender.h>
#include <string.h>
#include <support/check.h>

static const char *const words[3] = {"who", "number", "run"};

static void no_trouble(const struct course_member *member) {
    CHECK_U64(member->events[UNSALT_EVENT_GAP] + member->events[UNSALT_EVENT_RESUMED], 0);
    CHECK_U64(member->events[UNSALT_EVENT_CHECKPOINT_REFUSED] + member->events[UNSALT_EVENT_CHECKPOINT_IGNORED], 0);
}

/* ---- records without a number */

enum { PLAIN = 600 };

struct plain {
    unsigned times[PLAIN + 1]; /* it came */
    unsigned came;
};

static void on_plain(void *opaque, const rd_kafka_message_t *message, const unsalt_message_info_t *info) {
    struct plain *plain = opaque;
    struct checker_record record;
    CHECK(info->state == UNSALT_STATE_UNSEQUENCED);
    CHECK(checker_parse(message->payload, message->len, &record) == 0);
    CHECK(record.seq >= 1 && record.seq <= PLAIN);
    plain->times[record.seq]++;
    plain->came++;
}

/* Sent without a header, and so that they stand between the others. */
static void send_plain(rd_kafka_t *rk, const struct scene *scene, uint64_t n) {
    struct checker_record record = {.session = "plain", .session_len = 5, .epoch = 1, .seq = n};
    char payload[100];
    CHECK(checker_payload(payload, sizeof payload, words, &record) > 0);
    CHECK_I64(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(scene->topic), RD_KAFKA_V_PARTITION((int32_t)(n % 2)),
                                RD_KAFKA_V_VALUE(payload, sizeof payload), RD_KAFKA_V_KEY("k", 1),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END), 0);
}

/* They have no cursor: it is the offsets beyond the frontier that are covered. */
Test(checkpoint_mixed, records_without_a_number_are_covered, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = 2, .lanes = 2};
    checker_log_t *accepted = checker_log_new();
    struct course course;
    struct plain plain = {.came = 0};
    struct course_member member = {.course = &course, .scene = &scene, .every = 3, .other = on_plain, .opaque = &plain};
    char errstr[256];
    course_open(&course);
    scene_open(&scene, "mixed");
    rd_kafka_conf_t *conf = scene_conf();
    scene_set(conf, "linger.ms", "0");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    struct sender *sender = sender_open(&scene, SENDER_UNSALT, 2, accepted);
    for (uint64_t n = 1; n <= PLAIN; n++) {
        send_plain(rk, &scene, n);
        sender_send(sender, "hot", n);
        if (n % 100 == 0) {
            sender_flush(sender);
            CHECK_I64(rd_kafka_flush(rk, 20000), 0);
        }
    }
    sender_close(sender);
    course_join(&member);
    CHECK_U64(course_take(&member, 700, true), 700);
    /* The model of numbers knows nothing of these: what of them is to be acknowledged late comes again. */
    size_t late = 0;
    for (size_t i = 0; i < member.late_count; i++)
        late += member.late[i].session < 0;
    unsigned came = plain.came;
    CHECK_I64(course_commit(&member), 0);
    CHECK_I64(course_leave(&member), 0);
    course_join(&member);
    uint64_t open = course_open_numbers(&course, 0, PLAIN);
    uint64_t left = open + PLAIN - came + late;
    CHECK_U64(course_take(&member, left, true), left);
    CHECK_U64(plain.came, PLAIN + late); /* so what is covered does not */
    for (uint64_t n = 1; n <= PLAIN; n++)
        CHECK_THAT(plain.times[n] == 1 || plain.times[n] == 2, "record %d comes %u times", (int)n, plain.times[n]);
    CHECK_U64(course_poll(&member, 200, 500, true), 0);
    course_ack_late(&member, 0);
    CHECK_I64(course_commit(&member), 0);
    no_trouble(&member);
    CHECK_I64(course_leave(&member), 0);
    course_join(&member);
    CHECK_U64(course_poll(&member, 200, 1000, true), 0);
    CHECK_I64(course_leave(&member), 0);
    rd_kafka_destroy(rk);
    course_close(&course);
    checker_log_free(accepted);
    scene_close(&scene);
}

/* ---- ids of any bytes, in two topics */

enum { IDS = 40, NUMBERS = 50 };

/* The same ids in both topics are different sessions: those of the second have names 50 higher. */
static void send_binary(const struct scene *scene, int from, uint64_t first, uint64_t last) {
    char errstr[256], name[16], payload[100];
    unsigned char id[300];
    rd_kafka_conf_t *conf = scene_conf();
    scene_set(conf, "enable.idempotence", "true");
    unsalt_producer_t *producer = unsalt_producer_new(conf, scene_unsalt_conf(scene, 0), errstr, sizeof errstr);
    CHECK_THAT(producer, "%s", errstr);
    for (uint64_t n = first; n <= last; n++)
        for (int i = 0; i < IDS; i++) {
            size_t len = i == IDS - 1 ? 200 : 1 + (size_t)i % 3;
            memset(id, 0, sizeof id);
            id[len - 1] = (unsigned char)(7 * i);
            id[0] ^= (unsigned char)(len == 1 ? 0 : 0xff - i);
            snprintf(name, sizeof name, "cold-%d", from + i);
            struct checker_record record = {.session = name, .session_len = strlen(name), .epoch = 1, .seq = n};
            CHECK(checker_payload(payload, sizeof payload, words, &record) > 0);
            CHECK_I64(unsalt_produce(producer, scene->topic, id, len, payload, sizeof payload, NULL), 0);
        }
    CHECK_I64(unsalt_producer_flush(producer, 20000), 0);
    unsalt_producer_destroy(producer);
}

Test(checkpoint_mixed, two_topics_with_the_same_ids_of_any_bytes, .timeout = 60) {
    struct scene first = {.layout = "topics", .partitions = 3, .lanes = 2}, second = first;
    struct course course;
    struct course_member member = {.course = &course, .scene = &first, .every = 3};
    uint64_t open = 0;
    course_open(&course);
    scene_open(&first, "binary-a");
    scene_open(&second, "binary-b");
    member.second = second.topic;
    send_binary(&first, 0, 1, NUMBERS);
    send_binary(&second, 50, 1, NUMBERS);
    course_join(&member);
    CHECK_U64(course_take(&member, 2400, true), 2400);
    CHECK_I64(course_commit(&member), 0);
    CHECK_I64(course_leave(&member), 0);
    no_trouble(&member);
    member.loaded = 0;
    course_join(&member);
    for (int i = 0; i < 2 * IDS; i++)
        open += course_open_numbers(&course, 1 + (i < IDS ? i : 50 + i - IDS), NUMBERS);
    CHECK_U64(course_take(&member, open, true), open);
    CHECK_U64(member.loaded, 2 * IDS);
    course_ack_late(&member, 0);
    CHECK_I64(course_commit(&member), 0);
    CHECK_U64(course_poll(&member, 200, 300, true), 0);
    CHECK_I64(course_leave(&member), 0);
    no_trouble(&member);
    course_close(&course);
    scene_close(&first);
    scene_close(&second);
}
