/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The group protocol with server-side assignors (group.protocol=consumer), on a librdkafka that has the whole of it.
 * An older one is asked whether it refuses the key, so that these tests say something there too. A member hears of
 * a change with its next heartbeat; how often that is, the broker sets.
 */
#include <broker/fixture/herd.h>
#include <string.h>
#include <support/check.h>

static const char *const server_side[] = {"group.protocol", "consumer", NULL};

/* Whether this librdkafka has it; if not, it must say so. */
static bool has_protocol(void) {
    char errstr[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, "group.protocol", "consumer", errstr, sizeof errstr);
    rd_kafka_conf_destroy(conf);
    if (rd_kafka_version() < 0x020400ff)
        CHECK(result == RD_KAFKA_CONF_UNKNOWN);
    return rd_kafka_version() >= 0x020c00ff;
}

/* A second member comes under load: each block is whole wherever it is. */
Test(group_protocol, two_members_of_four_blocks, .timeout = 60) {
    struct scene scene = {.layout = "block", .partitions = 12, .lanes = 3};
    struct herd herd = {.conf = server_side, .flows = true};
    if (!has_protocol())
        return;
    scene_open(&scene, "server");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_settle(&herd, scene.partitions);
    herd_send(&herd, 20);
    herd_join(&herd, 1);
    herd_send(&herd, 40);
    herd_settle(&herd, scene.partitions);
    herd_send(&herd, 20);
    herd_close(&herd);
}

/* Three at once: sets come and go in pieces, and what is incomplete waits. */
Test(group_protocol, three_members_of_lane_topics, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 7, .lanes = 4};
    struct herd herd = {.conf = server_side, .flows = true};
    if (!has_protocol())
        return;
    scene_open(&scene, "server");
    herd_open(&herd, &scene);
    for (int i = 0; i < 3; i++)
        herd_join(&herd, i);
    herd_send(&herd, 20);
    herd_settle(&herd, scene.partitions * scene.lanes);
    CHECK(herd_together(&herd));
    herd_send(&herd, 20);
    herd_close(&herd);
}

/* Static members of the new protocol. */
Test(group_protocol, a_static_member_restarts, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 7, .lanes = 4};
    struct herd herd = {.conf = server_side, .fixed = true, .flows = true};
    rd_kafka_topic_partition_list_t *before, *after;
    int partitions = scene.partitions * scene.lanes, i;
    if (!has_protocol())
        return;
    scene_open(&scene, "static");
    herd_open(&herd, &scene);
    herd_join(&herd, 0);
    herd_join(&herd, 1);
    herd_settle(&herd, partitions);
    herd_send(&herd, 20);
    before = herd_owned(&herd, 1);
    unsigned revoked = herd.members[0].revoked, assigned = herd.members[0].assigned;
    herd_leave(&herd, 1);
    herd_send(&herd, 20);
    herd_join(&herd, 1);
    herd_settle(&herd, partitions);
    after = herd_owned(&herd, 1);
    CHECK_I64(after->cnt, before->cnt);
    for (i = 0; i < after->cnt; i++)
        CHECK(rd_kafka_topic_partition_list_find(before, after->elems[i].topic, after->elems[i].partition) != NULL);
    CHECK_U64(herd.members[0].revoked, revoked);
    CHECK_U64(herd.members[0].assigned, assigned);
    rd_kafka_topic_partition_list_destroy(before);
    rd_kafka_topic_partition_list_destroy(after);
    herd_close(&herd);
}

/* Why the server's default is refused. */
Test(group_protocol, uniform_cuts_lane_sets, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 7, .lanes = 4};
    static const char *const uniform[] = {"group.protocol", "consumer", "group.remote.assignor", "uniform", NULL};
    static const char *const report[] = {"colocation", "report", NULL};
    struct herd herd = {.conf = uniform, .unsalt = report, .flows = true};
    if (!has_protocol())
        return;
    scene_open(&scene, "uniform");
    herd_open(&herd, &scene);
    herd_send(&herd, 5);
    herd_join(&herd, 0);
    herd_join(&herd, 1);
    herd_settle(&herd, scene.partitions * scene.lanes);
    CHECK(!herd_together(&herd));
    herd_close(&herd);
}
