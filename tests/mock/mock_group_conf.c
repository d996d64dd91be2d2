/* SPDX-License-Identifier: BSD-2-Clause */
/* Which assignor a consumer takes, what of the application's choice it refuses or warns of. Needs no cluster. */
#include <kafka/consumer.h>
#include <kafka/versions.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define BLOCKS "layout=block partitions=8 lanes=2"
#define LANES "layout=topics partitions=4 lanes=3"
#define STRATEGY "partition.assignment.strategy"

static rd_kafka_conf_t *conf_with(const char *key, const char *value) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    mock_rd_set(conf, "group.id", "g");
    mock_rd_set(conf, "log_level", "0");
    if (key)
        mock_rd_set(conf, key, value);
    return conf;
}

static void get(const rd_kafka_conf_t *conf, const char *key, char *value, size_t size) {
    value[0] = 0;
    if (rd_kafka_conf_get(conf, key, value, &size) != RD_KAFKA_CONF_OK)
        value[0] = 0;
}

/* What the handle has in the end; `lines` of the log at birth. */
static void accepts(const char *settings, const char *key, const char *set, const char *wanted, uint64_t lines) {
    struct heard heard;
    char value[256];
    heard_init(&heard);
    unsalt_t *u = mock_consumer_of(conf_with(set ? key : NULL, set), mock_conf(settings, &heard));
    get(rd_kafka_conf(unsalt_handle(u)), key, value, sizeof(value));
    CHECK_STR(value, wanted);
    CHECK_U64(heard.lines, lines);
    mock_done(u);
}

static void refuses(const char *settings, const char *key, const char *set) {
    char errstr[512] = "", value[256];
    rd_kafka_conf_t *conf = conf_with(key, set);
    unsalt_conf_t *unsalt_conf = mock_conf(settings, NULL);
    CHECK(!unsalt_new(conf, unsalt_conf, errstr, sizeof(errstr)));
    CHECK_THAT(strstr(errstr, key) && strstr(errstr, set) && strstr(errstr, "range") &&
                   strstr(errstr, "colocation=report"), "%s", errstr);
    /* Both stay the caller's, as they were. */
    get(conf, key, value, sizeof(value));
    CHECK_STR(value, set);
    get(conf, "enable.partition.eof", value, sizeof(value));
    CHECK_STR(value, "false");
    rd_kafka_conf_destroy(conf);
    unsalt_conf_destroy(unsalt_conf);
}

TEST(group_conf, range_is_the_default_where_sets_have_several_partitions) {
    accepts(LANES, STRATEGY, NULL, "range", 0);
    accepts(BLOCKS, STRATEGY, NULL, "range", 0);
    accepts(LANES, STRATEGY, "range", "range", 0);
    accepts(LANES, STRATEGY, "range,roundrobin", "range", 0); /* not to be told from librdkafka's default */
}

TEST(group_conf, elsewhere_it_stays_as_it_is) {
    accepts("partitions=4", STRATEGY, NULL, "range,roundrobin", 0);
    accepts("partitions=4", STRATEGY, "roundrobin", "roundrobin", 0);
    accepts("layout=topics partitions=4 lanes=1", STRATEGY, "roundrobin", "roundrobin", 0);
}

TEST(group_conf, an_assignor_that_cuts_sets_is_refused) {
    refuses(LANES, STRATEGY, "roundrobin");
    refuses(LANES, STRATEGY, "roundrobin,range"); /* the group may choose either */
    refuses(LANES, STRATEGY, "cooperative-sticky");
    refuses(BLOCKS, STRATEGY, "cooperative-sticky");
}

TEST(group_conf, or_warned_of_if_loss_of_order_is_accepted) {
    accepts(LANES " colocation=report", STRATEGY, "roundrobin", "roundrobin", 1);
}

/* confluentinc/librdkafka#4059: a commit that a rebalance overtakes loses the whole assignment. */
TEST(group_conf, cooperative_is_allowed_where_a_set_is_one_partition_or_one_member_reads_all) {
    uint64_t lines = us_versions(rd_kafka_version()).cooperative_loses;
    accepts("layout=topics partitions=4 lanes=1", STRATEGY, "cooperative-sticky", "cooperative-sticky", lines);
    accepts("partitions=4", STRATEGY, "cooperative-sticky", "cooperative-sticky", lines);
}

/* Only where librdkafka has the protocol; before 2.12.0 as a preview, with a line in the log. */
TEST(group_conf, the_servers_assignor) {
    char errstr[256];
    rd_kafka_conf_t *conf = conf_with(NULL, NULL);
    rd_kafka_conf_res_t known = rd_kafka_conf_set(conf, "group.protocol", "consumer", errstr, sizeof(errstr));
    rd_kafka_conf_destroy(conf);
    CHECK_I64(known, rd_kafka_version() < 0x020400ff ? RD_KAFKA_CONF_UNKNOWN : RD_KAFKA_CONF_OK);
    if (known != RD_KAFKA_CONF_OK)
        return;
    static const struct {
        const char *set, *settings, *wanted; /* NULL: refused */
    } cases[] = {{NULL, LANES, "range"},
                 {"range", LANES, "range"},
                 {"uniform", LANES, NULL},
                 {"uniform", LANES " colocation=report", "uniform"},
                 {"homemade", BLOCKS, "homemade"},
                 {NULL, "partitions=4", ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char value[64];
        conf = conf_with("group.protocol", "consumer");
        if (cases[i].set)
            mock_rd_set(conf, "group.remote.assignor", cases[i].set);
        unsalt_conf_t *unsalt_conf = mock_conf(cases[i].settings, NULL);
        unsalt_t *u = unsalt_new(conf, unsalt_conf, errstr, sizeof(errstr));
        CHECK_THAT(!u == !cases[i].wanted, "case %zu: %s", i, errstr);
        if (!u) {
            CHECK_THAT(strstr(errstr, "group.remote.assignor=uniform") && strstr(errstr, "range"), "%s", errstr);
            rd_kafka_conf_destroy(conf);
            unsalt_conf_destroy(unsalt_conf);
            continue;
        }
        get(rd_kafka_conf(unsalt_handle(u)), "group.remote.assignor", value, sizeof(value));
        CHECK_STR(value, cases[i].wanted);
        mock_done(u);
    }
}

TEST(group_conf, what_is_done_by_version) {
    CHECK(us_versions(0x020002ff).cooperative_loses && !us_versions(0x020a00ff).cooperative_loses);
    CHECK(us_versions(0x020b01ff).protocol_early && !us_versions(0x020c00ff).protocol_early);
}

static void on_log(void *opaque, int level, const char *fac, const char *buf) {
    (void)fac;
    if (level <= 4 && strstr(buf, "revoke.timeout.ms=") && strstr(buf, "max.poll.interval.ms="))
        (*(int *)opaque)++;
}

static int warnings(const char *revoke_ms, const char *poll_ms) {
    int count = 0;
    char errstr[512];
    rd_kafka_conf_t *conf = conf_with("max.poll.interval.ms", poll_ms);
    unsalt_conf_t *mine = mock_conf(LANES, NULL);
    mock_rd_set(conf, "session.timeout.ms", "6000");
    CHECK_I64(unsalt_conf_set(mine, "revoke.timeout.ms", revoke_ms, errstr, sizeof(errstr)), UNSALT_CONF_OK);
    unsalt_conf_set_log_cb(mine, on_log, &count);
    unsalt_t *u = mock_consumer_of(conf, mine);
    mock_done(u);
    return count;
}

TEST(group_conf, a_revoke_that_may_wait_as_long_as_the_group_is_warned_of) {
    CHECK_I64(warnings(NULL, "300000"), 0);
    CHECK_I64(warnings("5000", "10000"), 0);
    CHECK_I64(warnings("5001", "10000"), 1);
    CHECK_I64(warnings("60000", "10000"), 1);
}
