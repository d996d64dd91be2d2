/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What relays have in hand when the group takes partitions away, or when they end, on threads of this process: sessions
 * outlast any delay of the machine here, so that nobody is thrown out, and the number of calls is exact.
 */
#include <broker/fixture/copies.h>
#include <broker/fixture/stamper.h>
#include <checker/log.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>
#include <unistd.h>

enum { PARTITIONS = 2, LANES = 2, RECORDS = 400, RELAYS = 2, PATIENCE = 60 /* seconds, of a wait */ };

static struct scene in = {.layout = "hash", .partitions = PARTITIONS, .lanes = LANES};
static struct scene out = {.layout = "hash", .partitions = PARTITIONS, .lanes = LANES};
static atomic_size_t calls, done;
static atomic_bool open_gate, over;
static atomic_int joined_anew; /* lines of the log that say so */
static const char *max_poll_ms = "300000", *session_ms = "45000", *timeout_ms = "10000"; /* of relays */

static void begin_empty(const char *word) {
    scene_name(&in, word);
    snprintf(out.topic, sizeof out.topic, "%.70s-out", in.topic);
    snprintf(out.group, sizeof out.group, "%.80s-out", in.group);
    scene_create(&in);
    scene_create(&out);
}

static void fill(void) {
    checker_log_t *accepted = checker_log_new();
    struct stamper stamper;
    stamper_open(&stamper, &in, NULL, NULL, accepted);
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        stamper_send(&stamper, "room", seq);
    stamper_close(&stamper);
    checker_log_free(accepted);
}

static void begin(const char *word) {
    begin_empty(word);
    fill();
}

static void end(void) {
    scene_close(&in);
    scene_close(&out);
}

/* Nothing is done before the gate is open. */
static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *result) {
    (void)opaque;
    (void)message;
    (void)info;
    (void)result;
    calls++;
    for (double until = scene_now() + PATIENCE; !open_gate && scene_now() < until;)
        usleep(1000);
    return UNSALT_RELAY_DONE;
}

static void on_log(void *opaque, int level, const char *facility, const char *text) {
    (void)opaque;
    fprintf(stderr, "%d %s %s\n", level, facility, text);
    joined_anew += strstr(text, "it joins anew") != NULL;
}

static unsalt_relay_t *open_relay(const char *assignor) {
    char errstr[512];
    rd_kafka_conf_t *reads = scene_conf();
    unsalt_conf_t *input = scene_unsalt_conf(&in, 0), *result = scene_unsalt_conf(&out, 0);
    scene_set(reads, "group.id", in.group);
    scene_set(reads, "heartbeat.interval.ms", "200");
    scene_set(reads, "session.timeout.ms", session_ms);
    scene_set(reads, "max.poll.interval.ms", max_poll_ms);
    scene_set(reads, "partition.assignment.strategy", assignor);
    scene_unsalt_set(input, "relay.batch.records", "40");
    scene_unsalt_set(input, "relay.timeout.ms", timeout_ms);
    unsalt_conf_set_relay_cb(input, work, NULL);
    unsalt_conf_set_log_cb(input, on_log, NULL);
    scene_unsalt_set(result, "relay.topic", out.topic);
    unsalt_relay_t *relay = unsalt_relay_new(reads, input, scene_conf(), result, errstr, sizeof errstr);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, in.topic, RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return relay;
}

static int partitions_of(const unsalt_relay_t *relay) {
    rd_kafka_topic_partition_list_t *list = NULL;
    int count = 0;
    if (!rd_kafka_assignment(unsalt_relay_consumer(relay), &list)) {
        count = list->cnt;
        rd_kafka_topic_partition_list_destroy(list);
    }
    return count;
}

static unsalt_relay_stats_t stats_of(const unsalt_relay_t *relay) {
    unsalt_relay_stats_t stats;
    CHECK_I64(unsalt_relay_stats(relay, &stats, sizeof stats), 0);
    return stats;
}

static void *poll_it(void *relay) {
    while (!over) {
        size_t n;
        rd_kafka_error_t *error = unsalt_relay_poll(relay, 100, &n);
        CHECK_THAT(!error, "%s", rd_kafka_error_string(error));
        done += n;
    }
    return NULL;
}

/* What the input has, the result has once. */
static void check_result(void) {
    CHECK_U64(copies_in(&out), 0);
}

/*
 * The first relay has batches in hand when a second one joins, and the work is done only when that is so. It answers
 * when the batch at work is committed; nobody works on a record twice, and both have a share in the end. With a
 * cooperative assignor the group's generation may go on unasked between two steps of a commit, which is refused then:
 * such a batch is worked on again.
 */
static void join_while_it_works(const char *word, const char *assignor, bool exact) {
    pthread_t threads[RELAYS];
    unsalt_relay_t *relays[RELAYS];
    begin(word);
    relays[0] = open_relay(assignor);
    CHECK_I64(pthread_create(&threads[0], NULL, poll_it, relays[0]), 0);
    for (double until = scene_now() + PATIENCE; stats_of(relays[0]).received < 80 && scene_now() < until;)
        usleep(1000);
    CHECK_THAT(stats_of(relays[0]).received >= 80, "two batches are not read");
    relays[1] = open_relay(assignor);
    CHECK_I64(pthread_create(&threads[1], NULL, poll_it, relays[1]), 0);
    usleep(1500000); /* by now the first one is asked, most likely: if not yet, it will be, and the same must hold */
    open_gate = true;
    for (double until = scene_now() + PATIENCE; scene_now() < until; usleep(5000))
        if (done >= RECORDS && partitions_of(relays[0]) == 1 && partitions_of(relays[1]) == 1)
            break;
    over = true;
    for (int i = 0; i < RELAYS; i++)
        pthread_join(threads[i], NULL);
    CHECK_U64(done, RECORDS);
    CHECK_THAT(exact ? calls == RECORDS : calls >= RECORDS, "%d calls", (int)calls);
    CHECK_U64(stats_of(relays[0]).relayed + stats_of(relays[1]).relayed, RECORDS);
    check_result();
    for (int i = 0; i < RELAYS; i++)
        unsalt_relay_destroy(relays[i]);
    end();
}

Test(relay_revoke, all_partitions_go, .timeout = 200) {
    join_while_it_works("eager", "roundrobin", true);
}

Test(relay_revoke, one_partition_goes, .timeout = 200) {
    join_while_it_works("stays", "cooperative-sticky", false);
}

/* The same, when there may be errors: what can't be asked in time. */
static void *poll_until_over(void *relay) {
    while (!over) {
        size_t n;
        rd_kafka_error_destroy(unsalt_relay_poll(relay, 100, &n));
        done += n;
    }
    return NULL;
}

static rd_kafka_t *open_transaction(void) {
    char errstr[512];
    rd_kafka_conf_t *conf = scene_conf();
    scene_set(conf, "transactional.id", in.topic);
    scene_set(conf, "transaction.timeout.ms", "60000");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(PARTITIONS);
    rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata_new(in.group);
    CHECK_THAT(rk, "%s", errstr);
    for (int32_t p = 0; p < PARTITIONS; p++)
        rd_kafka_topic_partition_list_add(offsets, in.topic, p)->offset = 1;
    CHECK(!rd_kafka_init_transactions(rk, PATIENCE * 1000));
    CHECK(!rd_kafka_begin_transaction(rk));
    CHECK(!rd_kafka_send_offsets_to_transaction(rk, offsets, metadata, PATIENCE * 1000));
    rd_kafka_topic_partition_list_destroy(offsets);
    rd_kafka_consumer_group_metadata_destroy(metadata);
    return rk;
}

/*
 * Offsets in an open transaction, of a member that was killed perhaps, and two rebalances before it is over. librdkafka
 * (2.16.1, which puts questions off for up to a second) takes the answer to its first question, that the offset isn't
 * stable, for that to the second one, and begins where auto.offset.reset says: what was relayed would be relayed again.
 */
Test(relay_revoke, two_rebalances_while_a_transaction_is_open, .timeout = 200) {
    enum { ALL = 3 };
    pthread_t threads[ALL];
    unsalt_relay_t *relays[ALL];
    begin("open");
    open_gate = true;
    relays[0] = open_relay("roundrobin");
    CHECK_I64(pthread_create(&threads[0], NULL, poll_it, relays[0]), 0);
    for (double until = scene_now() + PATIENCE; done < RECORDS && scene_now() < until;)
        usleep(5000);
    CHECK_U64(done, RECORDS);
    rd_kafka_t *rk = open_transaction();
    for (int i = 1; i < ALL; i++) {
        relays[i] = open_relay("roundrobin");
        CHECK_I64(pthread_create(&threads[i], NULL, poll_it, relays[i]), 0);
        usleep(2500000); /* a rebalance, most likely; if not yet, there is less to be seen */
    }
    CHECK(!rd_kafka_abort_transaction(rk, PATIENCE * 1000));
    rd_kafka_destroy(rk);
    for (double until = scene_now() + PATIENCE; scene_now() < until; usleep(5000))
        if (partitions_of(relays[0]) + partitions_of(relays[1]) + partitions_of(relays[2]) == PARTITIONS)
            break;
    usleep(1500000); /* what should not come */
    over = true;
    for (int i = 0; i < ALL; i++) {
        pthread_join(threads[i], NULL);
        unsalt_relay_destroy(relays[i]);
    }
    CHECK_U64(done, RECORDS);
    check_result();
    end();
}

/*
 * An assignment comes while a transaction with offsets of its partitions is open, and stays so: the relay waits for its
 * end, but not as long as such a wait may get by its configuration (20 minutes here): nobody would answer the group.
 */
Test(relay_revoke, an_assignment_while_a_transaction_stays_open, .timeout = 200) {
    pthread_t thread;
    begin("stays-open");
    open_gate = true;
    rd_kafka_t *rk = open_transaction();
    max_poll_ms = session_ms = "30000";
    timeout_ms = "600000";
    unsalt_relay_t *relay = open_relay("roundrobin");
    CHECK_I64(pthread_create(&thread, NULL, poll_until_over, relay), 0);
    for (double until = scene_now() + PATIENCE; partitions_of(relay) < PARTITIONS && scene_now() < until;)
        usleep(5000);
    CHECK_THAT(partitions_of(relay) == PARTITIONS, "the assignment isn't answered in %d s", PATIENCE);
    CHECK_U64(done, 0); /* nothing is read before it is known from where */
    rd_kafka_error_destroy(rd_kafka_abort_transaction(rk, PATIENCE * 1000)); /* it may have come to its time limit */
    rd_kafka_destroy(rk);
    for (double until = scene_now() + PATIENCE; done < RECORDS && scene_now() < until;)
        usleep(5000);
    CHECK_U64(done, RECORDS);
    over = true;
    pthread_join(thread, NULL);
    unsalt_relay_destroy(relay);
    check_result();
    end();
}

static bool has_id(const unsalt_relay_t *relay) {
    char *id = rd_kafka_memberid(unsalt_relay_consumer(relay));
    bool has = id && id[0];
    if (id)
        rd_kafka_mem_free(unsalt_relay_consumer(relay), id);
    return has;
}

/* Polls, without waiting, until it has so many partitions. What it has to say is passed over. */
static void poll_until_it_has(unsalt_relay_t *relay, int partitions) {
    for (double until = scene_now() + PATIENCE; partitions_of(relay) != partitions && scene_now() < until;) {
        rd_kafka_error_destroy(unsalt_relay_poll(relay, 0, NULL));
        usleep(1000);
    }
    CHECK_I64(partitions_of(relay), partitions);
}

/*
 * The application doesn't poll for longer than max.poll.interval.ms while an assignment waits in the queue. librdkafka
 * has left the group by then, and takes nothing away: what it has been given is nobody's. No batch of it may be
 * committed, and the relay finds its way back into the group by itself: it doesn't give up batches until its session is
 * over.
 */
Test(relay_revoke, an_assignment_of_a_member_that_is_none_any_more, .timeout = 280) {
    begin_empty("nobody");
    open_gate = true;
    max_poll_ms = session_ms = "15000";
    unsalt_relay_t *relay = open_relay("roundrobin");
    poll_until_it_has(relay, PARTITIONS);
    unsalt_relay_t *other = open_relay("roundrobin"); /* never polled */
    poll_until_it_has(relay, 0);                      /* it joins again, and isn't polled */
    for (double until = scene_now() + PATIENCE; has_id(relay) && scene_now() < until;)
        usleep(5000);
    CHECK_THAT(!has_id(relay), "it is still a member");
    unsalt_relay_destroy(other);
    fill();
    for (double until = scene_now() + PATIENCE; done < RECORDS && scene_now() < until;) {
        size_t n;
        rd_kafka_error_destroy(unsalt_relay_poll(relay, 100, &n)); /* that it was thrown out, perhaps */
        done += n;
    }
    CHECK_U64(done, RECORDS);
    CHECK_I64(joined_anew, 1);
    unsalt_relay_destroy(relay);
    check_result();
    end();
}

/* What a relay has in hand when it ends is worked on by the next one, once. */
Test(relay_revoke, ends_with_batches_in_hand, .timeout = 200) {
    begin("ended");
    open_gate = true;
    for (int turn = 0; turn < 20 && done < RECORDS; turn++) {
        unsalt_relay_t *relay = open_relay("roundrobin");
        size_t n = 0;
        bool last = turn > 2;
        double until = scene_now() + PATIENCE;
        for (; (n == 0 || last) && done < RECORDS && scene_now() < until; done += n) {
            rd_kafka_error_t *error = unsalt_relay_poll(relay, 100, &n);
            CHECK_THAT(!error, "%s", rd_kafka_error_string(error));
        }
        unsalt_relay_destroy(relay);
    }
    CHECK_U64(done, RECORDS);
    CHECK_THAT(calls >= RECORDS, "%d calls", (int)calls);
    check_result();
    end();
}
