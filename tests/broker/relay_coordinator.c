/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confluentinc/librdkafka#5511 on brokers: the group's coordinator goes while a relay works on a batch, and comes back
 * when the relay has given the batch up, and if it stopped, left the producer behind that waits for it. What a reader
 * of committed records sees of the results then is each once. One that was frozen has old requests to answer.
 */
#include <broker/fixture/cluster.h>
#include <broker/fixture/copies.h>
#include <broker/fixture/reader.h>
#include <broker/fixture/stamper.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <support/check.h>
#include <unistd.h>

enum { BROKERS = 3, COORDINATOR = 3, PARTITIONS = 2, RECORDS = 400, BATCH = 40 };
enum { PATIENCE = 120 /* seconds, of a wait */ };

/* Led by brokers 1 and 2. */
static struct scene in = {.layout = "hash", .partitions = PARTITIONS, .lanes = 2, .brokers = BROKERS};
static struct scene out = {.layout = "hash", .partitions = PARTITIONS, .lanes = 2, .brokers = BROKERS};
static char group[128], id[128];
static atomic_size_t done;
static atomic_int left_behind, errors;
static atomic_bool over, open_gate, at_gate; /* where the second half of the work waits */

/* ---- who coordinates whom */

/* As brokers place groups and transactions. */
static int32_t place_of(const char *name) {
    uint32_t hash = 0;
    for (; *name; name++)
        hash = 31 * hash + (uint32_t)*name;
    return (int32_t)((hash >> 31 ? -hash : hash) % 4); /* of the absolute value as a signed number */
}

/* The leader of a partition of a topic of the brokers' own; -1: not known. */
static int32_t leader_of(rd_kafka_t *rk, const char *topic, int32_t partition) {
    const struct rd_kafka_metadata *all;
    int32_t leader = -1;
    if (rd_kafka_metadata(rk, 1, NULL, &all, 5000))
        return -1;
    for (int t = 0; t < all->topic_cnt; t++)
        for (int p = 0; p < all->topics[t].partition_cnt && strcmp(all->topics[t].topic, topic) == 0; p++)
            if (all->topics[t].partitions[p].id == partition)
                leader = all->topics[t].partitions[p].leader;
    rd_kafka_metadata_destroy(all);
    return leader;
}

/* A name that the broker coordinates, or that it doesn't. */
static void find_name(rd_kafka_t *rk, const char *topic, bool of_coordinator, char *name, size_t size) {
    double until = scene_now() + PATIENCE;
    for (int i = 0; scene_now() < until; i++) {
        snprintf(name, size, "relays-%d", i);
        int32_t leader = leader_of(rk, topic, place_of(name));
        if (leader > 0 && (leader == COORDINATOR) == of_coordinator)
            return;
        usleep(20000);
    }
    scene_die("no name for %s", topic);
}

/* Both topics are there once somebody has asked for a coordinator. */
static void find_names(void) {
    char errstr[256];
    rd_kafka_conf_t *conf = scene_conf();
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    scene_set(conf, "group.id", "somebody");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    CHECK_THAT(rk, "%s", errstr);
    rd_kafka_topic_partition_list_add(list, in.topic, 0);
    CHECK_I64(rd_kafka_committed(rk, list, PATIENCE * 1000), 0);
    rd_kafka_topic_partition_list_destroy(list);
    find_name(rk, "__consumer_offsets", true, group, sizeof group);
    conf = scene_conf();
    scene_set(conf, "transactional.id", "somebody");
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    CHECK_THAT(producer, "%s", errstr);
    CHECK(!rd_kafka_init_transactions(producer, PATIENCE * 1000));
    rd_kafka_destroy(producer);
    find_name(rk, "__transaction_state", false, id, sizeof id);
    rd_kafka_destroy(rk);
}

/* ---- the relay */

static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *result) {
    (void)opaque;
    (void)message;
    (void)result;
    for (double until = scene_now() + PATIENCE; !open_gate && info->seq > RECORDS / 2 && scene_now() < until;) {
        at_gate = true;
        usleep(1000);
    }
    return UNSALT_RELAY_DONE;
}

static void on_log(void *opaque, int level, const char *facility, const char *text) {
    (void)opaque;
    fprintf(stderr, "%d %s %s\n", level, facility, text);
    left_behind += strstr(text, "its producer is left behind") != NULL;
}

static unsalt_relay_t *open_relay(void) {
    char errstr[512], records[16];
    rd_kafka_conf_t *reads = scene_conf(), *writes = scene_conf();
    unsalt_conf_t *input = scene_unsalt_conf(&in, 0), *result = scene_unsalt_conf(&out, 0);
    snprintf(records, sizeof records, "%d", BATCH);
    scene_set(reads, "group.id", group);
    scene_set(writes, "transactional.id", id);
    scene_unsalt_set(input, "relay.batch.records", records);
    scene_unsalt_set(input, "relay.timeout.ms", "5000");
    unsalt_conf_set_relay_cb(input, work, NULL);
    unsalt_conf_set_log_cb(input, on_log, NULL);
    scene_unsalt_set(result, "relay.topic", out.topic);
    unsalt_relay_t *relay = unsalt_relay_new(reads, input, writes, result, errstr, sizeof errstr);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, in.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return relay;
}

static void *poll_it(void *relay) {
    while (!over) {
        size_t n;
        rd_kafka_error_t *error = unsalt_relay_poll(relay, 100, &n);
        if (error) {
            errors++;
            fprintf(stderr, "%s\n", rd_kafka_error_string(error));
            usleep(100000);
        }
        rd_kafka_error_destroy(error);
        done += n;
    }
    return NULL;
}

/* ---- what comes of it */

static void fill(checker_log_t *accepted) {
    struct stamper stamper;
    stamper_open(&stamper, &in, NULL, NULL, accepted);
    stamper_range(&stamper, "room", 1, RECORDS, 0, 0);
    stamper_close(&stamper);
}

static void judge(checker_log_t *accepted) {
    struct reader reader;
    struct checker_report report;
    checker_log_t *delivered = checker_log_new();
    unsalt_conf_t *conf = scene_unsalt_conf(&out, 0);
    scene_unsalt_set(conf, "gap.timeout.ms", "-1");
    reader_open_assigned(&reader, &out, NULL, conf, delivered);
    CHECK_U64(reader_take(&reader, RECORDS, PATIENCE), RECORDS);
    CHECK_I64(reader_close(&reader), 0);
    checker_judge(accepted, delivered, &report);
    CHECK_THAT(!report.lost && !report.repeated && !report.out_of_order, "%s", report.fault);
    CHECK_U64(copies_in(&out), 0);
    checker_log_free(delivered);
}

static void wait_until(const char *what, bool (*is_so)(void)) {
    for (double until = scene_now() + PATIENCE; !is_so() && scene_now() < until;)
        usleep(5000);
    CHECK_THAT(is_so(), "%s: %zu records are done", what, (size_t)done);
}

static bool is_at_gate(void) {
    return at_gate && done > 0;
}
static bool is_left_behind(void) {
    return left_behind > 0;
}
static bool has_failed(void) {
    return errors > 0;
}
static bool is_done(void) {
    return done >= RECORDS;
}

static void begin(struct cluster *cluster, checker_log_t *accepted) {
    /* Of what brokers keep for themselves each partition is on one of them: the coordinator has no substitute. */
    setenv("KAFKA_PROPERTIES", "offsets.topic.replication.factor=1 transaction.state.log.replication.factor=1 "
                               "transaction.state.log.min.isr=1", 1);
    cluster_open(cluster, BROKERS);
    scene_name(&in, "coordinator");
    snprintf(out.topic, sizeof out.topic, "%.70s-out", in.topic);
    snprintf(out.group, sizeof out.group, "%.80s-out", in.group);
    scene_create(&in);
    scene_create(&out);
    find_names();
    fill(accepted);
}

static void freeze(const struct cluster *cluster, int broker) {
    cluster_signal(cluster, broker, SIGSTOP);
}

static void thaw(const struct cluster *cluster, int broker) {
    cluster_signal(cluster, broker, SIGCONT);
}

typedef void happening(const struct cluster *cluster, int broker);

static void play(happening *goes, bool (*is_given_up)(void), happening *comes_back) {
    struct cluster cluster;
    pthread_t thread;
    unsalt_relay_stats_t stats;
    checker_log_t *accepted = checker_log_new();
    begin(&cluster, accepted);
    unsalt_relay_t *relay = open_relay();
    CHECK_I64(pthread_create(&thread, NULL, poll_it, relay), 0);
    wait_until("half of the work isn't done", is_at_gate);
    goes(&cluster, COORDINATOR);
    open_gate = true;
    wait_until("the batch is not given up", is_given_up);
    CHECK(done < RECORDS);
    comes_back(&cluster, COORDINATOR);
    wait_until("the rest is not done", is_done);
    over = true;
    pthread_join(thread, NULL);
    CHECK_U64(done, RECORDS);
    CHECK_I64(unsalt_relay_stats(relay, &stats, sizeof stats), 0);
    CHECK_U64(stats.relayed, RECORDS);
    judge(accepted);
    unsalt_relay_destroy(relay);
    checker_log_free(accepted);
    cluster_close(&cluster);
}

Test(relay_coordinator, one_that_stops_and_starts, .timeout = 280) {
    play(cluster_stop, is_left_behind, cluster_start);
}

Test(relay_coordinator, one_that_is_frozen, .timeout = 280) {
    play(freeze, has_failed, thaw);
}
