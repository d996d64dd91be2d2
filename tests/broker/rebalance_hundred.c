/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hundred rebalances of members that hold records back and have handed out others that are not acknowledged: nothing
 * is lost, every counter comes back to where it belongs, and no memory stays behind. A plain consumer, which reads and
 * commits nothing, joins and leaves. As a member joins no more often than once a second, there are five groups side by
 * side. UNSALT_REBALANCES=n: another number (for a run under a leak checker).
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/passes.h>
#include <unistd.h>

enum { FLOWING = 8, HOLDING = 8, HELD = 40, REBALANCES = 100, KEPT = 4096, GROUPS = 5 };

struct hundred;

/* A group. */
struct group {
    struct hundred *hundred;
    char name[112];
    struct reader reader;
    struct passes *passes;
    rd_kafka_t *guest;
    int assigned, revoked, revoked_before;
    unsalt_token_t kept[KEPT]; /* not acknowledged */
    size_t kept_count;
};

struct hundred {
    struct scene scene;
    struct sender *sender;
    checker_log_t *log;
    uint64_t rounds; /* records of each flowing session so far */
    struct group groups[GROUPS];
    size_t at_fifth, at_end; /* bytes in use */
    size_t rss_fifth, rss_end;
};

static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *partitions) {
    struct group *group = opaque;
    (void)partitions;
    group->assigned += what == UNSALT_ASSIGNED;
    group->revoked += what == UNSALT_REVOKED;
    CHECK(what != UNSALT_LOST);
}

static int assigned(const struct hundred *hundred) {
    int sum = 0;
    for (int i = 0; i < GROUPS; i++)
        sum += hundred->groups[i].assigned;
    return sum;
}

static const char *name_of(const char *word, int session, char *name, size_t size) {
    snprintf(name, size, "%s%d", word, session);
    return name;
}

/* One number of each flowing session. */
static void send_round(struct hundred *hundred) {
    char name[16];
    hundred->rounds++;
    for (int i = 0; i < FLOWING; i++)
        sender_send(hundred->sender, name_of("flow", i, name, sizeof name), hundred->rounds);
    sender_flush(hundred->sender);
}

static void take(struct group *group, const rd_kafka_message_t *message) {
    unsalt_message_info_t info = {.size = sizeof info};
    struct checker_record record;
    char name[PASSES_NAME];
    CHECK_THAT(!message->err, "%s", rd_kafka_err2str(message->err));
    CHECK(!unsalt_message_info(group->reader.consumer, message, &info));
    reader_record(&group->hundred->scene, message, &record);
    snprintf(name, sizeof name, "%.*s", (int)record.session_len, record.session);
    passes_add(group->passes, 0, name, record.seq, info.token.generation, record.partition, record.offset);
    CHECK(group->kept_count < KEPT);
    group->kept[group->kept_count++] = info.token;
}

static void poll_group(struct group *group, int timeout_ms) {
    rd_kafka_message_t *messages[100];
    ssize_t n = unsalt_consume_batch(group->reader.consumer, timeout_ms, messages, 100);
    CHECK_THAT(n >= 0, "batch: %s", rd_kafka_err2str(unsalt_last_error()));
    for (ssize_t i = 0; i < n; i++) {
        take(group, messages[i]);
        rd_kafka_message_destroy(messages[i]);
    }
}

static void poll_all(struct hundred *hundred) {
    for (int i = 0; i < GROUPS; i++)
        poll_group(&hundred->groups[i], 4);
}

/* Acknowledges all; those of an assignment that is over have no effect. */
static void ack_all(struct group *group) {
    for (size_t i = 0; i < group->kept_count; i++) {
        rd_kafka_resp_err_t err = unsalt_ack(group->reader.consumer, group->kept[i]);
        CHECK_THAT(!err || err == RD_KAFKA_RESP_ERR__STATE, "%s", rd_kafka_err2str(err));
    }
    group->kept_count = 0;
}

static bool all_came(const struct group *group, const char *word, int sessions, uint64_t seq) {
    char name[16];
    bool all = true;
    for (int i = 0; i < sessions; i++)
        all &= passes_highest(group->passes, name_of(word, i, name, sizeof name)) >= seq;
    return all;
}

static void open_guest(struct group *group) {
    const struct scene *scene = &group->hundred->scene;
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(2);
    char errstr[512], name[128];
    scene_set(conf, "group.id", group->name);
    scene_set(conf, "enable.auto.commit", "false");
    scene_set(conf, "session.timeout.ms", "6000");
    scene_set(conf, "heartbeat.interval.ms", "50");
    scene_set(conf, "partition.assignment.strategy", "range");
    group->guest = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    if (!group->guest)
        scene_die("guest: %s", errstr);
    rd_kafka_poll_set_consumer(group->guest);
    for (int lane = 0; lane < scene_topics(scene); lane++)
        rd_kafka_topic_partition_list_add(topics, scene_topic(scene, lane, name, sizeof name), RD_KAFKA_PARTITION_UA);
    CHECK(!rd_kafka_subscribe(group->guest, topics));
    rd_kafka_topic_partition_list_destroy(topics);
}

static bool guest_owns(struct group *group) {
    rd_kafka_topic_partition_list_t *list = NULL;
    rd_kafka_message_t *message = rd_kafka_consumer_poll(group->guest, 0);
    bool owns = false;
    if (message)
        rd_kafka_message_destroy(message);
    if (!rd_kafka_assignment(group->guest, &list)) {
        owns = list->cnt > 0;
        rd_kafka_topic_partition_list_destroy(list);
    }
    return owns;
}

static bool guests_own(struct hundred *hundred) {
    bool all = true;
    for (int i = 0; i < GROUPS; i++)
        all &= guest_owns(&hundred->groups[i]);
    return all;
}

/* It holds what it has to hold, and has in its hands what it must. */
static bool is_settled(const struct group *group) {
    const struct scene *scene = &group->hundred->scene;
    unsalt_stats_t stats = reader_stats(&group->reader);
    CHECK(stats.conserved);
    return stats.partitions == (uint64_t)(scene->partitions * scene->lanes) &&
           stats.state[UNSALT_STATE_HELD] == HOLDING * HELD &&
           all_came(group, "flow", FLOWING, group->hundred->rounds);
}

static void settle(struct hundred *hundred) {
    for (double until = scene_now() + 30;; poll_all(hundred)) {
        int settled = 0;
        for (int i = 0; i < GROUPS; i++)
            settled += is_settled(&hundred->groups[i]);
        if (settled == GROUPS)
            break;
        CHECK(scene_now() < until);
    }
}

/* Guests come and go: two rebalances of each group, with held records, and with ones that aren't acknowledged. */
static void disturb(struct hundred *hundred) {
    send_round(hundred);
    settle(hundred);
    for (int i = 0; i < GROUPS; i++) {
        hundred->groups[i].revoked_before = hundred->groups[i].revoked;
        open_guest(&hundred->groups[i]);
    }
    for (double until = scene_now() + 30; !guests_own(hundred);) {
        CHECK(scene_now() < until);
        poll_all(hundred);
    }
    for (int i = 0; i < GROUPS; i++) {
        struct group *group = &hundred->groups[i];
        CHECK(group->revoked > group->revoked_before);
        rd_kafka_consumer_close(group->guest);
        rd_kafka_destroy(group->guest);
    }
    settle(hundred);
    /* What was in its hands before is of an old assignment by now, so it has come again, or will. */
    for (int i = 0; i < GROUPS; i++)
        ack_all(&hundred->groups[i]);
}

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static size_t resident(void) {
    long pages = 0, size = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &size, &pages) != 2)
        scene_die("/proc/self/statm can't be read");
    fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void open_group(struct hundred *hundred, int number) {
    struct group *group = &hundred->groups[number];
    rd_kafka_conf_t *conf = scene_consumer_conf(&hundred->scene);
    unsalt_conf_t *mine = scene_unsalt_conf(&hundred->scene, 0);
    group->hundred = hundred;
    group->passes = passes_new();
    snprintf(group->name, sizeof group->name, "%s-%d", hundred->scene.group, number);
    scene_set(conf, "group.id", group->name);
    scene_set(conf, "session.timeout.ms", "6000");
    scene_set(conf, "heartbeat.interval.ms", "50");
    scene_set(conf, "auto.commit.interval.ms", "100");
    scene_set(conf, "partition.assignment.strategy", "range");
    scene_set(conf, "log_level", "3");
    scene_unsalt_set(mine, "ack", "manual");
    scene_unsalt_set(mine, "revoke.timeout.ms", "5");
    scene_unsalt_set(mine, "gap.timeout.ms", "-1");
    scene_unsalt_set(mine, "start", "first");
    unsalt_conf_set_assignment_cb(mine, on_assignment, group);
    reader_open(&group->reader, &hundred->scene, conf, mine, hundred->log);
}

static void open_all(struct hundred *hundred) {
    char name[16];
    scene_open(&hundred->scene, "hundred");
    hundred->log = checker_log_new();
    hundred->sender = sender_open(&hundred->scene, SENDER_STAMPED, hundred->scene.lanes, hundred->log);
    for (int i = 0; i < HOLDING; i++)
        for (uint64_t seq = 2; seq <= HELD + 1; seq++) /* 1 is missing */
            sender_send(hundred->sender, name_of("held", i, name, sizeof name), seq);
    sender_flush(hundred->sender);
    for (int i = 0; i < GROUPS; i++)
        open_group(hundred, i);
}

/* The missing numbers come, and everything is acknowledged. */
static void finish(struct hundred *hundred, struct group *group) {
    for (double until = scene_now() + 20; scene_now() < until && !all_came(group, "held", HOLDING, HELD + 1);)
        poll_group(group, 20);
    CHECK(all_came(group, "held", HOLDING, HELD + 1));
    ack_all(group);
    poll_group(group, 0);
    unsalt_stats_t stats = reader_stats(&group->reader);
    CHECK(stats.conserved);
    CHECK_U64(stats.unacked, 0);
    CHECK_U64(stats.state[UNSALT_STATE_HELD], 0);
    CHECK_U64(stats.state[UNSALT_STATE_READY], 0);
    CHECK_I64(reader_close(&group->reader), 0);
    snprintf(hundred->scene.group, sizeof hundred->scene.group, "%.94s", group->name);
    CHECK_U64(scene_log_committed(&hundred->scene, hundred->log).sum,
              FLOWING * hundred->rounds + HOLDING * (HELD + 1));
    free(group->passes);
}

Test(rebalance_hundred, nothing_is_lost_and_nothing_stays_behind, .timeout = 200) {
    static struct hundred hundred = {.scene = {.layout = "topics", .partitions = 3, .lanes = 2}};
    const char *wanted = getenv("UNSALT_REBALANCES");
    int rebalances = wanted ? atoi(wanted) : REBALANCES;
    char name[16];
    double began = scene_now();
    open_all(&hundred);
    while (assigned(&hundred) < rebalances) {
        disturb(&hundred);
        if (!hundred.at_fifth && assigned(&hundred) >= rebalances / 5) {
            hundred.at_fifth = in_use();
            hundred.rss_fifth = resident();
        }
    }
    hundred.at_end = in_use();
    hundred.rss_end = resident();
    fprintf(stderr, "hundred: %d assignments, in use %zu -> %zu, resident %zu -> %zu, %.1f s\n", assigned(&hundred),
            hundred.at_fifth, hundred.at_end, hundred.rss_fifth, hundred.rss_end, scene_now() - began);
    CHECK(hundred.at_end < hundred.at_fifth + 1000000);
    CHECK(hundred.rss_end < hundred.rss_fifth + 16000000);
    for (int i = 0; i < HOLDING; i++)
        sender_send(hundred.sender, name_of("held", i, name, sizeof name), 1);
    sender_flush(hundred.sender);
    for (int i = 0; i < GROUPS; i++)
        finish(&hundred, &hundred.groups[i]);
    sender_close(hundred.sender);
    checker_log_free(hundred.log);
    scene_close(&hundred.scene);
}
