/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A producer of a chaos run: sends until SIGTERM comes, then flushes. It may be killed and started again.
 *
 *   producer log=FILE slot=K mode=unsalt|raw [epoch=E] [rate=R] [seed=S]
 *
 * Its sessions are its own: two hot ones over all lanes, two that change their S, many cold ones. mode=raw is a plain
 * producer that writes the number as a header of its own; it has no epochs, so a restarted one goes on behind the last
 * number that its journal shows.
 */
#include "journal.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unsalt/unsalt.h>

enum { HOT = 2, WARM = 2, COLD = 40, SESSIONS = HOT + WARM + COLD, PAYLOAD = 100, FLUSH_MS = 60000, FATAL = 4 };

struct session {
    char name[CHAOS_SESSION_MAX];
    uint64_t next;
    int lanes;
};

struct producer {
    struct session sessions[SESSIONS];
    uint64_t run, random;
    unsalt_producer_t *stamping; /* with mode=unsalt */
    rd_kafka_t *rk;
    rd_kafka_topic_t *topics[CHAOS_LANES]; /* with mode=raw */
};

static volatile sig_atomic_t ended;

static void end(int signal) {
    (void)signal;
    ended = 1;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    struct chaos_name name;
    (void)rk;
    (void)opaque;
    if (chaos_parse(message->payload, message->len, &name) != 0)
        chaos_die("a delivery report with an unknown payload");
    if (message->err)
        journal_now("F", "%s %" PRIu64 " %" PRIu64 " %s", name.session, name.run, name.number,
                    rd_kafka_err2name(message->err));
    else
        journal_now("A", "%s %" PRIu64 " %" PRIu64 " %d %d %" PRId64, name.session, name.run, name.number,
                    chaos_lane(rd_kafka_topic_name(message->rkt)), (int)message->partition, message->offset);
}

static void name_sessions(struct producer *producer, int slot) {
    for (int i = 0; i < SESSIONS; i++) {
        struct session *session = &producer->sessions[i];
        session->next = 1;
        session->lanes = i < HOT ? CHAOS_LANES : 1;
        if (i < HOT)
            snprintf(session->name, sizeof session->name, "p%d-hot%d", slot, i);
        else if (i < HOT + WARM)
            snprintf(session->name, sizeof session->name, "p%d-warm%d", slot, i - HOT);
        else
            snprintf(session->name, sizeof session->name, "p%d-cold%d", slot, i - HOT - WARM);
    }
}

/* Behind the numbers that earlier runs may have sent. */
static void go_on(struct producer *producer, const char *path) {
    FILE *file = fopen(path, "r");
    char line[256], name[CHAOS_SESSION_MAX];
    uint64_t number;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "S %*u %31s %*u %" SCNu64, name, &number) != 2)
            continue;
        for (int i = 0; i < SESSIONS; i++)
            if (strcmp(producer->sessions[i].name, name) == 0 && producer->sessions[i].next <= number)
                producer->sessions[i].next = number + 1;
    }
    if (file)
        fclose(file);
}

static rd_kafka_conf_t *kafka_conf(void) {
    rd_kafka_conf_t *conf = chaos_conf();
    chaos_set(conf, "enable.idempotence", "true");
    chaos_set(conf, "linger.ms", "5");
    chaos_set(conf, "delivery.timeout.ms", "30000");
    chaos_set(conf, "socket.timeout.ms", "10000");
    chaos_set(conf, "topic.metadata.refresh.interval.ms", "2000");
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    return conf;
}

static void open_stamping(struct producer *producer, char **argv) {
    char errstr[512], number[24];
    /* Topics gain partitions in a run, so their number is not checked. */
    const char *settings[][2] = {{"layout", "topics"}, {"partitions", number}, {"lanes", number + 12},
                                 {"producer.check.ms", "0"}, {"producer.epoch", chaos_argument(argv, "epoch", "0")}};
    unsalt_producer_stats_t stats;
    unsalt_conf_t *conf = unsalt_conf_new();
    snprintf(number, 12, "%d", CHAOS_PARTITIONS);
    snprintf(number + 12, 12, "%d", CHAOS_LANES);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (unsalt_conf_set(conf, settings[i][0], settings[i][1], errstr, sizeof errstr) != UNSALT_CONF_OK)
            chaos_die("%s", errstr);
    producer->stamping = unsalt_producer_new(kafka_conf(), conf, errstr, sizeof errstr);
    if (!producer->stamping)
        chaos_die("%s", errstr);
    producer->rk = unsalt_producer_handle(producer->stamping);
    unsalt_producer_stats(producer->stamping, &stats, sizeof stats);
    producer->run = stats.epoch;
}

static void open_raw(struct producer *producer, const char *path) {
    char errstr[512], name[64];
    producer->rk = rd_kafka_new(RD_KAFKA_PRODUCER, kafka_conf(), errstr, sizeof errstr);
    if (!producer->rk)
        chaos_die("%s", errstr);
    for (int lane = 0; lane < CHAOS_LANES; lane++)
        producer->topics[lane] = rd_kafka_topic_new(producer->rk, chaos_topic(lane, name, sizeof name), NULL);
    go_on(producer, path);
}

static void poll_reports(const struct producer *producer, int timeout_ms) {
    if (producer->stamping)
        unsalt_producer_poll(producer->stamping, timeout_ms);
    else
        rd_kafka_poll(producer->rk, timeout_ms);
}

static rd_kafka_resp_err_t send_stamped(const struct producer *producer, const struct session *session,
                                        const char *payload) {
    unsalt_record_t record = {.size = sizeof record, .topic = CHAOS_TOPIC, .session = session->name,
                              .session_len = strlen(session->name), .payload = payload, .len = PAYLOAD,
                              .lanes = (uint16_t)session->lanes};
    return unsalt_produce_record(producer->stamping, &record);
}

static rd_kafka_resp_err_t send_raw(const struct producer *producer, const struct session *session,
                                    const char *payload) {
    size_t len = strlen(session->name);
    char number[24], name[64];
    int digits = snprintf(number, sizeof number, "%" PRIu64, session->next);
    int lane = (int)(session->next % (uint64_t)session->lanes);
    int32_t partition = rd_kafka_msg_partitioner_murmur2(NULL, session->name, len, CHAOS_PARTITIONS, NULL, NULL);
    return rd_kafka_producev(producer->rk, RD_KAFKA_V_TOPIC(chaos_topic(lane, name, sizeof name)),
                             RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(session->name, len),
                             RD_KAFKA_V_VALUE((void *)(uintptr_t)payload, PAYLOAD),
                             RD_KAFKA_V_HEADER("seq", number, digits), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                             RD_KAFKA_V_END);
}

/* The line stands in the journal before the record can be anywhere else. */
static void send_one(struct producer *producer, struct session *session) {
    struct chaos_name name = {.number = session->next, .run = producer->run};
    char payload[PAYLOAD];
    rd_kafka_resp_err_t err;
    memcpy(name.session, session->name, sizeof name.session);
    chaos_payload(payload, sizeof payload, &name);
    journal_now("S", "%s %" PRIu64 " %" PRIu64 " %d", name.session, name.run, name.number, session->lanes);
    while ((err = producer->stamping ? send_stamped(producer, session, payload)
                                     : send_raw(producer, session, payload)) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (err == RD_KAFKA_RESP_ERR__FATAL || rd_kafka_fatal_error(producer->rk, NULL, 0)) {
            journal_now("W", "fatal");
            _exit(FATAL);
        }
        if (ended)
            chaos_die("%s number %" PRIu64 " can't be sent: %s", name.session, name.number, rd_kafka_err2str(err));
        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            journal_now("W", "%s", rd_kafka_err2name(err));
        poll_reports(producer, 50);
    }
    session->next++;
}

static struct session *choose(struct producer *producer) {
    uint64_t dice = chaos_random(&producer->random) >> 32;
    struct session *session;
    if (dice % 100 < 60)
        return &producer->sessions[dice / 100 % HOT];
    if (dice % 100 < 75) {
        session = &producer->sessions[HOT + dice / 100 % WARM];
        if (dice / 1000 % 40 == 0)
            session->lanes = 1 + (int)(dice / 100000 % CHAOS_LANES);
        return session;
    }
    return &producer->sessions[HOT + WARM + dice / 100 % COLD];
}

static rd_kafka_resp_err_t flush(const struct producer *producer) {
    return producer->stamping ? unsalt_producer_flush(producer->stamping, FLUSH_MS)
                              : rd_kafka_flush(producer->rk, FLUSH_MS);
}

static void close_all(struct producer *producer) {
    if (producer->stamping) {
        unsalt_producer_destroy(producer->stamping);
        return;
    }
    for (int lane = 0; lane < CHAOS_LANES; lane++)
        rd_kafka_topic_destroy(producer->topics[lane]);
    rd_kafka_destroy(producer->rk);
}

int main(int argc, char **argv) {
    static struct producer producer;
    uint64_t rate = (uint64_t)chaos_number(argv, "rate", 300);
    const char *path = chaos_argument(argv, "log", "producer.log");
    rd_kafka_resp_err_t err;
    (void)argc;
    producer.random = (uint64_t)chaos_number(argv, "seed", 1) * 2 + 1;
    name_sessions(&producer, (int)chaos_number(argv, "slot", 0));
    journal_open(path);
    signal(SIGTERM, end);
    if (strcmp(chaos_argument(argv, "mode", "unsalt"), "raw") == 0)
        open_raw(&producer, path);
    else
        open_stamping(&producer, argv);
    journal_now("I", "run %" PRIu64, producer.run);
    uint64_t began = chaos_clock(), sent = 0;
    while (!ended) {
        /* What an outage kept from being sent isn't made up for: the rate is an upper bound. */
        uint64_t now = chaos_clock(), due = began + sent * 1000000 / rate;
        if (now + 1000 < due) {
            poll_reports(&producer, (int)((due - now) / 1000));
            continue;
        }
        if (now > due + 1000000)
            began = now - sent * 1000000 / rate;
        send_one(&producer, choose(&producer));
        sent++;
        poll_reports(&producer, 0);
    }
    err = flush(&producer);
    journal_now("E", "flush %s", rd_kafka_err2name(err));
    if (rd_kafka_fatal_error(producer.rk, NULL, 0))
        _exit(FATAL);
    close_all(&producer);
    return err ? 3 : 0;
}
