/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member of the group of a chaos run: consumes until SIGTERM comes, then closes. It may be killed at any moment.
 *
 *   member log=FILE [ack=auto|manual] [commit=sync|async|auto] [batch=N] [static=ID] [seed=S] [checkpoint=none|topic]
 *          [protocol=classic|consumer] [hook=0|1]
 *
 * Everything that it is handed stands in its journal before it counts as processed, and that it counts as processed
 * before the library hears of it. SIGUSR1: the handler is slow for a while. SIGUSR2: it hangs for longer than
 * max.poll.interval.ms.
 */
#include "journal.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unsalt/unsalt.h>

enum { BATCH_MAX = 256, SLOW_US = 4000000, SLOW_EACH_US = 8000, HANG_US = 9500000, COMMIT_EVERY_US = 150000,
       GAP_TIMEOUT_US = 500000, SUBSCRIBE_US = 60000000 };

struct member {
    unsalt_t *consumer;
    uint64_t random;
    int manual, sync, explicit_commits;
    size_t batch;
    uint64_t handed; /* records, in the order of the journal */
    uint64_t slow_until, commit_at, stats_at;
};

/* A record that was handed out: its token, and which line of the journal it is. */
struct handed {
    unsalt_token_t token;
    uint64_t line;
};

static volatile sig_atomic_t ended, slow, hang;

static void on_signal(int signal) {
    ended |= signal == SIGTERM;
    slow |= signal == SIGUSR1;
    hang |= signal == SIGUSR2;
}

/* ---- what librdkafka and the library tell */

static size_t list_text(const rd_kafka_topic_partition_list_t *list, int offsets, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; list && i < list->cnt && used + 64 < size; i++) {
        const rd_kafka_topic_partition_t *one = &list->elems[i];
        int n = snprintf(text + used, size - used, " %d/%d", chaos_lane(one->topic), (int)one->partition);
        used += (size_t)n;
        if (offsets)
            used += (size_t)snprintf(text + used, size - used, ":%" PRId64 ":%d", one->offset, (int)one->err);
    }
    return used;
}

/* The generation that the member has in the group; -1: it isn't in it. */
static int generation(rd_kafka_t *rk) {
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(rk);
    void *text = NULL;
    size_t size;
    int32_t number = -1;
    /* There is no accessor: "CGMDv<version>:", the generation, then names. */
    if (group && !rd_kafka_consumer_group_metadata_write(group, &text, &size)) {
        const char *colon = memchr(text, ':', size);
        if (colon && (size_t)(colon + 1 - (const char *)text) + sizeof number <= size)
            memcpy(&number, colon + 1, sizeof number);
        rd_kafka_mem_free(NULL, text);
    }
    if (group)
        rd_kafka_consumer_group_metadata_destroy(group);
    return number;
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    char text[3000];
    (void)opaque;
    list_text(list, 0, text, sizeof text);
    if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        journal_now("G", "%d %d %s%s", generation(rk), rd_kafka_assignment_lost(rk), rd_kafka_rebalance_protocol(rk),
                    text);
    else
        journal_now("V", "%d%s", rd_kafka_assignment_lost(rk), text);
}

/* `covered` records of the journal count as processed in the library's eyes too. */
static void commit_now(const struct member *member, uint64_t covered) {
    rd_kafka_resp_err_t err;
    journal_now("C", "%" PRIu64 " %s", covered, member->sync ? "sync" : "async");
    err = unsalt_commit(member->consumer, !member->sync);
    journal_now("E", "%" PRIu64 " %s", covered, rd_kafka_err2name(err));
}

/* A member that commits itself has its last chance before its partitions go. */
static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *list) {
    const struct member *member = opaque;
    (void)list;
    if (what == UNSALT_REVOKING && member->explicit_commits && member->consumer)
        commit_now(member, member->handed);
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *list, void *opaque) {
    char text[3000];
    (void)rk;
    (void)opaque;
    list_text(list, 1, text, sizeof text);
    journal_now("O", "%s%s", rd_kafka_err2name(err), text);
}

static void on_event(void *opaque, const unsalt_event_t *event) {
    char session[CHAOS_SESSION_MAX] = "-";
    const char *reason = "-";
    uint64_t now = chaos_clock(), due = now - event->overdue_ns / 1000;
    (void)opaque;
    if (event->session && event->session_len < sizeof session) {
        memcpy(session, event->session, event->session_len);
        session[event->session_len] = '\0';
    }
    if (event->type == UNSALT_EVENT_GAP || event->type == UNSALT_EVENT_RESUMED)
        reason = unsalt_gap_reason_name(event->reason);
    if (event->type == UNSALT_EVENT_START) /* first sight */
        due = now - event->waited_ns / 1000;
    if (event->type == UNSALT_EVENT_RESUMED) /* which doesn't tell its due time */
        due = now - event->waited_ns / 1000 + GAP_TIMEOUT_US;
    journal("T", "%s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d/%d %s", unsalt_event_name(event->type),
            reason, session, event->epoch, event->first, event->last, due,
            event->topic ? chaos_lane(event->topic) : -1, (int)event->partition, event->text);
}

static void on_log(void *opaque, int level, const char *fac, const char *buf) {
    (void)opaque;
    fprintf(stderr, "%" PRIu64 " %d %s %s\n", chaos_clock(), level, fac, buf);
}

/* ---- set-up */

static rd_kafka_conf_t *kafka_conf(char **argv, const char *commit) {
    rd_kafka_conf_t *conf = chaos_conf();
    const char *id = chaos_argument(argv, "static", NULL);
    chaos_set(conf, "group.id", CHAOS_GROUP);
    if (strcmp(chaos_argument(argv, "protocol", "classic"), "consumer") == 0) {
        chaos_set(conf, "group.protocol", "consumer");
        chaos_set(conf, "group.remote.assignor", "range");
    } else {
        chaos_set(conf, "partition.assignment.strategy", "range");
        chaos_set(conf, "session.timeout.ms", "6000");
        chaos_set(conf, "heartbeat.interval.ms", "500");
    }
    if (id)
        chaos_set(conf, "group.instance.id", id);
    chaos_set(conf, "max.poll.interval.ms", "7000");
    chaos_set(conf, "auto.offset.reset", "earliest");
    chaos_set(conf, "enable.auto.commit", strcmp(commit, "auto") == 0 ? "true" : "false");
    chaos_set(conf, "auto.commit.interval.ms", "300");
    chaos_set(conf, "fetch.wait.max.ms", "50");
    chaos_set(conf, "topic.metadata.refresh.interval.ms", "2000");
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    return conf;
}

static unsalt_conf_t *unsalt_conf(struct member *member, char **argv) {
    unsalt_conf_t *conf = unsalt_conf_new();
    char partitions[12], lanes[12], errstr[512];
    const char *checkpoint = chaos_argument(argv, "checkpoint", "none");
    const char *settings[][2] = {
        {"layout", "topics"}, {"partitions", partitions}, {"lanes", lanes},
        {"ack", chaos_argument(argv, "ack", "auto")},
        {"revoke.timeout.ms", "2000"}, {"checkpoint", checkpoint}, {"checkpoint.timeout.ms", "3000"}};
    snprintf(partitions, sizeof partitions, "%d", CHAOS_PARTITIONS);
    snprintf(lanes, sizeof lanes, "%d", CHAOS_LANES);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (unsalt_conf_set(conf, settings[i][0], settings[i][1], errstr, sizeof errstr) != UNSALT_CONF_OK)
            chaos_die("%s", errstr);
    }
    unsalt_conf_set_event_cb(conf, on_event, NULL);
    unsalt_conf_set_log_cb(conf, on_log, NULL);
    if (chaos_number(argv, "hook", 0))
        unsalt_conf_set_assignment_cb(conf, on_assignment, member);
    return conf;
}

static void open_consumer(struct member *member, char **argv) {
    const char *commit = chaos_argument(argv, "commit", "sync");
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    char errstr[512];
    member->manual = strcmp(chaos_argument(argv, "ack", "auto"), "manual") == 0;
    member->sync = strcmp(commit, "sync") == 0;
    member->explicit_commits = strcmp(commit, "auto") != 0;
    member->batch = (size_t)chaos_number(argv, "batch", 32);
    member->random = (uint64_t)chaos_number(argv, "seed", 1) * 2 + 1;
    if (member->batch < 1 || member->batch > BATCH_MAX)
        chaos_die("batch=%zu is not in 1..%d", member->batch, BATCH_MAX);
    member->consumer = unsalt_new(kafka_conf(argv, commit), unsalt_conf(member, argv), errstr, sizeof errstr);
    if (!member->consumer)
        chaos_die("%s", errstr);
    rd_kafka_topic_partition_list_add(topics, CHAOS_TOPIC, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t err;
    uint64_t until = chaos_clock() + SUBSCRIBE_US;
    /* With a checkpoint that asks for its topic, and may come into an outage. */
    while ((err = unsalt_subscribe(member->consumer, topics)) != 0 && !ended && chaos_clock() < until) {
        journal_now("W", "%s subscribe", rd_kafka_err2name(err));
        chaos_sleep(100000);
    }
    rd_kafka_topic_partition_list_destroy(topics);
    if (err && !ended)
        chaos_die("subscribe: %s", rd_kafka_err2str(err));
}

/* ---- work */

static void write_stats(struct member *member, const char *word) {
    unsalt_stats_t stats;
    char json[8192];
    unsalt_stats(member->consumer, &stats, sizeof stats);
    unsalt_stats_json(&stats, sizeof stats, json, sizeof json);
    journal_now(word, "%d %.3900s", stats.conserved, json);
}

/* One line for each record that was handed out; messages that carry an error leave the batch. */
static size_t note(struct member *member, rd_kafka_message_t **messages, struct handed *handed, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        unsalt_message_info_t info = {.size = sizeof info};
        rd_kafka_message_t *message = messages[i];
        struct chaos_name name = {.session = "?"};
        if (message->err) {
            journal("W", "%s %s", rd_kafka_err2name(message->err), rd_kafka_message_errstr(message));
            rd_kafka_message_destroy(message);
            continue;
        }
        if (unsalt_message_info(member->consumer, message, &info) != 0)
            chaos_die("nothing is known of a message that was handed out");
        chaos_parse(message->payload, message->len, &name);
        journal("D", "%" PRIu64 " %d/%d %" PRId64 " %s %.*s %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIu64,
                member->handed + kept, chaos_lane(rd_kafka_topic_name(message->rkt)), (int)message->partition,
                message->offset, unsalt_state_name(info.state), info.session ? (int)info.session_len : 1,
                info.session ? (const char *)info.session : "?", info.epoch, info.seq, name.session, name.run,
                name.number);
        handed[kept] = (struct handed){info.token, member->handed + kept};
        messages[kept++] = message;
    }
    member->handed += kept;
    if (kept > 0 && rd_kafka_assignment_lost(unsalt_handle(member->consumer)))
        journal("Q", "%zu records were handed out, and the assignment is lost", kept);
    journal_flush();
    return kept;
}

static void work(struct member *member, size_t n) {
    uint64_t now = chaos_clock();
    if (slow) {
        slow = 0;
        member->slow_until = now + SLOW_US;
        journal_now("H", "slow");
    }
    for (size_t i = 0; i < n && now < member->slow_until && !ended; i++) {
        chaos_sleep(SLOW_EACH_US);
        now = chaos_clock();
    }
    if (hang) {
        uint64_t until = now + HANG_US;
        hang = 0;
        journal_now("H", "hang");
        while ((now = chaos_clock()) < until)
            chaos_sleep(until - now);
        journal_now("H", "goes on");
    }
}

/* With ack=manual, in any order. */
static void acknowledge(struct member *member, struct handed *handed, size_t n) {
    if (n == 0)
        return;
    journal_now("K", "%" PRIu64, member->handed);
    for (size_t i = n; member->manual && i > 0; i--) {
        size_t other = (size_t)(chaos_random(&member->random) >> 33) % i;
        struct handed one = handed[other];
        rd_kafka_resp_err_t err = unsalt_ack(member->consumer, one.token);
        handed[other] = handed[i - 1];
        if (err)
            journal_now("N", "%" PRIu64 " %s", one.line, rd_kafka_err2name(err));
    }
}

static void commit(struct member *member, uint64_t covered) {
    if (!member->explicit_commits || chaos_clock() < member->commit_at)
        return;
    commit_now(member, covered);
    member->commit_at = chaos_clock() + COMMIT_EVERY_US;
}

static void turn(struct member *member) {
    rd_kafka_message_t *messages[BATCH_MAX];
    struct handed handed[BATCH_MAX];
    uint64_t before = member->handed, now;
    size_t i, kept;
    ssize_t n = unsalt_consume_batch(member->consumer, 100, messages, member->batch);
    if (n < 0)
        chaos_die("consume: %s", rd_kafka_err2str(unsalt_last_error()));
    kept = note(member, messages, handed, (size_t)n);
    work(member, kept);
    acknowledge(member, handed, kept);
    for (i = 0; i < kept; i++)
        rd_kafka_message_destroy(messages[i]);
    commit(member, member->manual ? member->handed : before);
    now = chaos_clock();
    if (now >= member->stats_at) {
        member->stats_at = now + 1000000;
        write_stats(member, "S");
    }
}

int main(int argc, char **argv) {
    static struct member member;
    struct sigaction action = {.sa_handler = on_signal};
    rd_kafka_resp_err_t err;
    char errstr[256];
    (void)argc;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    journal_open(chaos_argument(argv, "log", "member.log"));
    journal_now("I", "%s %s", rd_kafka_version_str(), chaos_argument(argv, "static", "-"));
    open_consumer(&member, argv);
    while (!ended) {
        turn(&member);
        if (rd_kafka_fatal_error(unsalt_handle(member.consumer), errstr, sizeof errstr)) {
            journal_now("W", "fatal %s", errstr);
            break;
        }
    }
    err = unsalt_consumer_close(member.consumer);
    journal_now("L", "%s", rd_kafka_err2name(err));
    write_stats(&member, "Z");
    unsalt_destroy(member.consumer);
    journal_now("X", "0");
    return ended ? 0 : 4;
}
