/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of several members with the classic protocol: lane sets stay together, and order holds across members. */
#include <broker/fixture/herd.h>
#include <string.h>
#include <support/check.h>

/* So that members hear of a rebalance soon. */
#define QUICK "heartbeat.interval.ms", "200"

static const char *const quick[] = {QUICK, NULL};

/* Members come, and one leaves again; `flows`: while records are sent. */
static void grow_and_shrink(struct scene *scene, int members, bool flows) {
    struct herd herd = {.conf = quick, .flows = flows};
    int partitions = scene->partitions * scene_topics(scene), i;
    scene_open(scene, "group");
    herd_open(&herd, scene);
    herd_join(&herd, 0);
    herd_send(&herd, 20);
    herd_settle(&herd, partitions);
    for (i = 1; i < members; i++)
        herd_join(&herd, i);
    if (flows)
        herd_send(&herd, 40);
    herd_settle(&herd, partitions);
    if (scene_topics(scene) > 1)
        CHECK(herd_together(&herd));
    herd_send(&herd, 20);
    herd_leave(&herd, 0);
    if (flows)
        herd_send(&herd, 20);
    herd_settle(&herd, partitions);
    herd_send(&herd, 20);
    for (i = 1; i < members; i++) {
        CHECK_U64(herd.members[i].reader.events[UNSALT_EVENT_COLOCATION], 0);
        CHECK_U64(herd.members[i].reader.events[UNSALT_EVENT_GAP], 0);
    }
    herd_close(&herd);
}

Test(group_classic, two_members_of_lane_topics, .timeout = 60) {
    grow_and_shrink(&(struct scene){.layout = "topics", .partitions = 7, .lanes = 4}, 2, false);
}

Test(group_classic, three_members_of_lane_topics, .timeout = 60) {
    grow_and_shrink(&(struct scene){.layout = "topics", .partitions = 7, .lanes = 4}, 3, false);
}

Test(group_classic, members_come_and_go_under_load, .timeout = 60) {
    grow_and_shrink(&(struct scene){.layout = "topics", .partitions = 7, .lanes = 4}, 3, true);
}

Test(group_classic, two_members_of_four_blocks, .timeout = 60) {
    grow_and_shrink(&(struct scene){.layout = "block", .partitions = 12, .lanes = 3}, 2, false);
}

/* Three don't divide four: what is whole goes on, the rest is refused until the number is right again. */
Test(group_classic, three_members_of_four_blocks, .timeout = 60) {
    struct scene scene = {.layout = "block", .partitions = 12, .lanes = 3};
    struct herd herd = {.conf = quick, .listens = UNSALT_EVENT_COLOCATION, .flows = true};
    int i;
    scene_open(&scene, "group");
    herd_open(&herd, &scene);
    for (i = 0; i < 3; i++)
        herd_join(&herd, i);
    for (i = 0; i < 3; i++)
        herd_wait_event(&herd, i, UNSALT_EVENT_COLOCATION, 1);
    herd_send(&herd, 20);
    for (i = 0; i < 3; i++) {
        const char *text = herd.members[i].text;
        CHECK_THAT(strstr(text, "use 1, 2, 4 members") && strstr(text, "refused"), "member %d: %s", i, text);
    }
    herd_leave(&herd, 1);
    herd_settle(&herd, scene.partitions);
    herd_send(&herd, 20);
    herd_close(&herd);
}

/* A member with an instance id that is back within its session timeout: nothing moves. */
Test(group_classic, a_static_member_restarts, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 7, .lanes = 4};
    struct herd herd = {.conf = quick, .fixed = true, .flows = true};
    int partitions = scene.partitions * scene.lanes;
    rd_kafka_topic_partition_list_t *before, *after;
    scene_open(&scene, "static");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_join(&herd, 1);
    herd_settle(&herd, partitions);
    herd_send(&herd, 20);
    before = herd_owned(&herd, 1);
    unsigned assigned = herd.members[0].assigned, revoked = herd.members[0].revoked;
    herd_leave(&herd, 1);
    herd_send(&herd, 20);
    herd_join(&herd, 1);
    herd_settle(&herd, partitions);
    after = herd_owned(&herd, 1);
    CHECK_I64(after->cnt, before->cnt);
    for (int i = 0; i < after->cnt; i++)
        CHECK(rd_kafka_topic_partition_list_find(before, after->elems[i].topic, after->elems[i].partition) != NULL);
    herd_send(&herd, 20);
    CHECK_U64(herd.members[0].assigned, assigned);
    CHECK_U64(herd.members[0].revoked, revoked);
    rd_kafka_topic_partition_list_destroy(before);
    rd_kafka_topic_partition_list_destroy(after);
    herd_close(&herd);
}

/* Why other assignors are refused: with them, two members get parts of lane sets. */
static void cuts(const char *assignor) {
    struct scene scene = {.layout = "topics", .partitions = 7, .lanes = 4};
    const char *const conf[] = {QUICK, "partition.assignment.strategy", assignor, NULL};
    static const char *const report[] = {"colocation", "report", NULL};
    struct herd herd = {.conf = conf, .unsalt = report, .listens = UNSALT_EVENT_COLOCATION, .flows = true};
    scene_open(&scene, assignor);
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_join(&herd, 1);
    herd_settle(&herd, scene.partitions * scene.lanes);
    CHECK(!herd_together(&herd));
    for (int i = 0; i < 2; i++)
        CHECK_THAT(strstr(herd.members[i].text, "running on"), "%s", herd.members[i].text);
    herd_leave(&herd, 1);
    herd_settle(&herd, scene.partitions * scene.lanes);
    herd_send(&herd, 5);
    herd_close(&herd);
}

Test(group_classic, roundrobin_cuts_lane_sets, .timeout = 60) {
    cuts("roundrobin");
}

Test(group_classic, cooperative_sticky_cuts_lane_sets, .timeout = 60) {
    cuts("cooperative-sticky");
}

/*
 * Where one member reads the whole topic an incremental protocol is allowed, and its second member takes away a part of
 * the set: nothing is handed out by either until it has left, and then everything in order.
 */
Test(group_classic, a_part_of_a_set_waits, .timeout = 60) {
    struct scene scene = {.layout = "hash", .partitions = 6, .lanes = 3};
    static const char *const cooperative[] = {QUICK, "partition.assignment.strategy", "cooperative-sticky", NULL};
    struct herd herd = {.conf = cooperative, .listens = UNSALT_EVENT_COLOCATION, .flows = true};
    scene_open(&scene, "partly");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_settle(&herd, 6);
    herd_send(&herd, 10);
    CHECK(herd_drain(&herd));
    herd_join(&herd, 1);
    herd_wait_event(&herd, 1, UNSALT_EVENT_COLOCATION, 1);
    CHECK_THAT(strstr(herd.members[1].text, "wait"), "%s", herd.members[1].text);
    herd_settle(&herd, 6);
    size_t before = checker_log_records(herd.delivered);
    herd_send(&herd, 10);
    CHECK_U64(checker_log_records(herd.delivered), before);
    herd_leave(&herd, 1);
    herd_settle(&herd, 6);
    CHECK(herd_drain(&herd));
    herd_close(&herd);
}
