/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * max.poll.interval.ms: holding records never makes a member fall out as long as the application polls; an application
 * that hangs falls out, is told so, touches nothing of its old assignment any more, and comes back.
 */
#include <broker/fixture/reader.h>
#include <broker/fixture/sender.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/passes.h>

enum { SESSIONS = 12, ROUNDS = 20 };

struct member {
    unsigned number;
    struct reader reader;
    struct passes *passes; /* of all members */
    int calls[4];          /* by unsalt_assignment_t */
    unsalt_token_t first;  /* of the first record of the last batch */
};

static void on_assignment(void *opaque, unsalt_assignment_t what, const rd_kafka_topic_partition_list_t *partitions) {
    struct member *member = opaque;
    (void)partitions;
    member->calls[what]++;
}

static void open_member(struct member *member, const struct scene *scene, unsigned number, struct passes *passes,
                        checker_log_t *log, const char *revoke_ms, const char *strategy) {
    rd_kafka_conf_t *conf = scene_consumer_conf(scene);
    unsalt_conf_t *mine = scene_unsalt_conf(scene, 0);
    memset(member, 0, sizeof *member);
    member->number = number;
    member->passes = passes;
    scene_set(conf, "session.timeout.ms", "1500");
    scene_set(conf, "partition.assignment.strategy", strategy);
    scene_set(conf, "heartbeat.interval.ms", "100");
    scene_set(conf, "max.poll.interval.ms", "2500");
    scene_set(conf, "auto.commit.interval.ms", "50");
    scene_unsalt_set(mine, "gap.timeout.ms", "-1");
    scene_unsalt_set(mine, "ack", "manual");
    scene_unsalt_set(mine, "revoke.timeout.ms", revoke_ms);
    unsalt_conf_set_assignment_cb(mine, on_assignment, member);
    reader_open(&member->reader, scene, conf, mine, log);
}

/* A batch; acknowledged unless `keep`. Returns the number of records; that the member was thrown out is no record. */
static uint64_t poll_member(struct member *member, int timeout_ms, bool keep) {
    rd_kafka_message_t *messages[100];
    uint64_t count = 0;
    ssize_t n = unsalt_consume_batch(member->reader.consumer, timeout_ms, messages, 100);
    CHECK_THAT(n >= 0, "batch: %s", rd_kafka_err2str(unsalt_last_error()));
    for (ssize_t i = 0; i < n; i++) {
        unsalt_message_info_t info = {.size = sizeof info};
        struct checker_record record;
        char name[PASSES_NAME];
        if (messages[i]->err) {
            CHECK_I64(messages[i]->err, RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED);
            rd_kafka_message_destroy(messages[i]);
            continue;
        }
        CHECK(!unsalt_message_info(member->reader.consumer, messages[i], &info));
        reader_record(member->reader.scene, messages[i], &record);
        snprintf(name, sizeof name, "%.*s", (int)record.session_len, record.session);
        passes_add(member->passes, member->number, name, record.seq, info.token.generation, record.partition,
                   record.offset);
        if (count++ == 0)
            member->first = info.token;
        if (!keep)
            unsalt_ack(member->reader.consumer, info.token);
        rd_kafka_message_destroy(messages[i]);
    }
    return count;
}

static void name_of(int session, char *name, size_t size) {
    snprintf(name, size, "s%d", session);
}

/* Numbers first..last of each session; one is sent when the one before was acknowledged. */
static void send_rounds(struct sender *sender, uint64_t first, uint64_t last) {
    char name[16];
    for (uint64_t seq = first; seq <= last; seq++) {
        for (int i = 0; i < SESSIONS; i++) {
            name_of(i, name, sizeof name);
            sender_send(sender, name, seq);
        }
        sender_flush(sender);
    }
}

static bool all_came(const struct passes *passes, uint64_t seq) {
    char name[16];
    bool all = true;
    for (int i = 0; i < SESSIONS; i++) {
        name_of(i, name, sizeof name);
        all &= passes_highest(passes, name) >= seq;
    }
    return all;
}

static void close_member(struct member *member) {
    unsalt_stats_t stats;
    CHECK_I64(unsalt_consumer_close(member->reader.consumer), 0);
    stats = reader_stats(&member->reader);
    CHECK(stats.conserved);
    CHECK_U64(stats.unacked, 0);
    CHECK_U64(stats.state[UNSALT_STATE_HELD], 0);
    reader_close(&member->reader);
}

/* All lanes but one deliver, so everything waits for a gap, three times as long as max.poll.interval.ms. */
Test(rebalance_poll, holding_records_keeps_the_member_in, .timeout = 60) {
    struct scene scene = {.layout = "topics", .partitions = 4, .lanes = 2};
    struct passes *passes = passes_new();
    checker_log_t *log = checker_log_new();
    struct member member;
    char name[16];
    scene_open(&scene, "hold");
    struct sender *sender = sender_open(&scene, SENDER_STAMPED, 2, log);
    open_member(&member, &scene, 0, passes, log, "500", "range");
    send_rounds(sender, 1, 2);
    for (double until = scene_now() + 20; scene_now() < until && !all_came(passes, 2);)
        poll_member(&member, 100, false);
    CHECK(all_came(passes, 2));
    for (uint64_t seq = 4; seq <= 60; seq++) {
        for (int i = 0; i < SESSIONS; i++) {
            name_of(i, name, sizeof name);
            sender_send(sender, name, seq); /* 3 is missing */
        }
    }
    sender_flush(sender);
    unsalt_stats_t stats;
    for (double until = scene_now() + 20; scene_now() < until;) {
        CHECK_U64(poll_member(&member, 20, false), 0);
        stats = reader_stats(&member.reader);
        if (stats.state[UNSALT_STATE_HELD] == SESSIONS * 57)
            break;
    }
    CHECK_U64(stats.state[UNSALT_STATE_HELD], SESSIONS * 57);
    int assigned = member.calls[UNSALT_ASSIGNED];
    double began = scene_now();
    CHECK_U64(poll_member(&member, 4000, false), 0); /* one call that waits longer than the interval */
    while (scene_now() - began < 7.5)
        CHECK_U64(poll_member(&member, 50, false), 0); /* and many short ones */
    stats = reader_stats(&member.reader);
    CHECK_U64(stats.state[UNSALT_STATE_HELD], SESSIONS * 57);
    CHECK_I64(member.calls[UNSALT_LOST], 0);
    CHECK_I64(member.calls[UNSALT_ASSIGNED], assigned);
    send_rounds(sender, 3, 3);
    for (double until = scene_now() + 20; scene_now() < until && !all_came(passes, 60);)
        poll_member(&member, 100, false);
    CHECK(all_came(passes, 60));
    CHECK_U64(passes->again, 0);
    close_member(&member);
    sender_close(sender);
    checker_log_free(log);
    free(passes);
    scene_close(&scene);
}

/* What the group has; no member's commit may take it back. */
static uint64_t committed(const struct scene *scene) {
    checker_log_t *log = checker_log_new();
    uint64_t sum = scene_log_committed(scene, log).sum;
    checker_log_free(log);
    return sum;
}

/* Until each of two has half of the partitions, and all of the first rounds has come. */
static void share(struct member members[2], const struct passes *passes) {
    for (double until = scene_now() + 30; scene_now() < until;) {
        poll_member(&members[0], 50, false);
        poll_member(&members[1], 50, false);
        if (all_came(passes, ROUNDS) && reader_stats(&members[0].reader).partitions == 4 &&
            reader_stats(&members[1].reader).partitions == 4)
            break;
    }
    CHECK(all_came(passes, ROUNDS));
    CHECK_U64(reader_stats(&members[0].reader).partitions, 4);
}

/* Two members; the first hangs for longer than the interval with records in its hands and in its buffer. */
Test(rebalance_poll, a_hung_application_falls_out_and_comes_back, .timeout = 90) {
    struct scene scene = {.layout = "topics", .partitions = 4, .lanes = 2};
    struct passes *passes = passes_new();
    checker_log_t *log = checker_log_new();
    struct member members[2];
    scene_open(&scene, "hang");
    struct sender *sender = sender_open(&scene, SENDER_STAMPED, 2, log);
    for (unsigned i = 0; i < 2; i++)
        open_member(&members[i], &scene, i, passes, log, "500", "range");
    send_rounds(sender, 1, ROUNDS);
    share(members, passes);
    /* The first takes some, keeps them, and hangs. */
    send_rounds(sender, ROUNDS + 1, 2 * ROUNDS);
    for (double until = scene_now() + 20; scene_now() < until && poll_member(&members[0], 50, true) == 0;)
        poll_member(&members[1], 0, false);
    unsalt_token_t kept = members[0].first;
    int lost = members[0].calls[UNSALT_LOST];
    /* The second takes everything over, and has what the first had kept, too. */
    for (double until = scene_now() + 20; scene_now() < until && reader_stats(&members[1].reader).partitions < 8;)
        poll_member(&members[1], 50, false);
    CHECK_U64(reader_stats(&members[1].reader).partitions, 8);
    for (double until = scene_now() + 10; scene_now() < until && committed(&scene) < 2 * ROUNDS * SESSIONS;)
        poll_member(&members[1], 50, false);
    CHECK_U64(committed(&scene), 2 * ROUNDS * SESSIONS);
    CHECK(all_came(passes, 2 * ROUNDS));
    CHECK(passes->again > 0);
    /* It comes back to itself: acknowledges and commits, which must not reach the group; then it polls. */
    unsalt_ack(members[0].reader.consumer, kept);
    CHECK_I64(unsalt_commit(members[0].reader.consumer, 0), RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST);
    for (double until = scene_now() + 20; scene_now() < until && members[0].calls[UNSALT_LOST] == lost;)
        CHECK_U64(poll_member(&members[0], 50, false), 0);
    CHECK_I64(members[0].calls[UNSALT_LOST], lost + 1);
    CHECK(members[0].reader.events[UNSALT_EVENT_ASSIGNMENT_LOST] > 0);
    CHECK_I64(unsalt_ack(members[0].reader.consumer, kept), RD_KAFKA_RESP_ERR__STATE);
    unsalt_stats_t stats = reader_stats(&members[0].reader);
    CHECK_U64(stats.unacked, 0);
    CHECK(stats.conserved);
    CHECK_U64(committed(&scene), 2 * ROUNDS * SESSIONS);
    uint64_t before = passes->by_member[0];
    for (uint64_t seq = 2 * ROUNDS + 1; seq <= 2 * ROUNDS + 400 && passes->by_member[0] == before; seq++) {
        send_rounds(sender, seq, seq);
        for (double until = scene_now() + 20; scene_now() < until && !all_came(passes, seq);) {
            poll_member(&members[0], 20, false);
            poll_member(&members[1], 20, false);
        }
        CHECK(all_came(passes, seq));
    }
    CHECK(passes->by_member[0] > before);
    close_member(&members[0]);
    close_member(&members[1]);
    sender_close(sender);
    checker_log_free(log);
    free(passes);
    scene_close(&scene);
}

/* ---- hangs amid a rebalance: librdkafka leaves the group then without saying so, for it is busy with the rebalance */

struct play {
    struct scene scene;
    struct passes *passes;
    checker_log_t *log;
    struct sender *sender;
    struct member members[2];
    unsalt_token_t kept;
    const char *strategy;
    int parts; /* in which the partitions are lost */
    int lost;  /* calls of the first member before the hang: on a slow machine a session may run out by itself */
};

/* The first member has everything, and has committed it, but for one batch that it holds. */
static void play_open(struct play *play, const char *word) {
    struct member *first = &play->members[0];
    play->passes = passes_new();
    play->log = checker_log_new();
    scene_open(&play->scene, word);
    play->sender = sender_open(&play->scene, SENDER_STAMPED, play->scene.lanes, play->log);
    open_member(first, &play->scene, 0, play->passes, play->log, "30000", play->strategy);
    send_rounds(play->sender, 1, ROUNDS);
    for (double until = scene_now() + 20; scene_now() < until && !all_came(play->passes, ROUNDS);)
        poll_member(first, 50, false);
    for (double until = scene_now() + 20; scene_now() < until && committed(&play->scene) < ROUNDS * SESSIONS;)
        poll_member(first, 50, false);
    CHECK_U64(committed(&play->scene), ROUNDS * SESSIONS);
    send_rounds(play->sender, ROUNDS + 1, 2 * ROUNDS);
    for (double until = scene_now() + 20; scene_now() < until && poll_member(first, 50, true) == 0;) {
    }
    play->kept = first->first;
    CHECK_I64(first->calls[UNSALT_REVOKING], 0);
}

/* While the first hangs, the second gets everything, for longer than the interval anyway; what it had is committed. */
static void play_hang(struct play *play) {
    struct member *second = &play->members[1];
    double began = scene_now();
    play->lost = play->members[0].calls[UNSALT_LOST];
    while (scene_now() < began + 30 &&
           (scene_now() < began + 3.75 || reader_stats(&second->reader).partitions < 8 ||
            !all_came(play->passes, 2 * ROUNDS)))
        poll_member(second, 50, false);
    for (double until = scene_now() + 10; scene_now() < until && committed(&play->scene) < 2 * ROUNDS * SESSIONS;)
        poll_member(second, 50, false);
    CHECK_U64(committed(&play->scene), 2 * ROUNDS * SESSIONS);
}

/*
 * The first comes back: it hears that all is lost, its old assignment commits nothing any more, not even into a group
 * that is empty, which takes commits from anybody; then it goes on as a new member.
 */
static void play_back(struct play *play) {
    struct member *first = &play->members[0];
    close_member(&play->members[1]);
    int revoked = first->calls[UNSALT_REVOKED], revoking = first->calls[UNSALT_REVOKING];
    unsalt_ack(first->reader.consumer, play->kept);
    CHECK_I64(unsalt_commit(first->reader.consumer, 0), RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST);
    for (double until = scene_now() + 20; scene_now() < until && first->calls[UNSALT_LOST] < play->lost + play->parts;)
        CHECK_U64(poll_member(first, 50, false), 0);
    CHECK_I64(first->calls[UNSALT_LOST], play->lost + play->parts);
    CHECK_I64(first->calls[UNSALT_REVOKING], revoking);
    CHECK_I64(first->calls[UNSALT_REVOKED], revoked);
    CHECK(first->reader.events[UNSALT_EVENT_ASSIGNMENT_LOST] > 0);
    CHECK_I64(unsalt_ack(first->reader.consumer, play->kept), RD_KAFKA_RESP_ERR__STATE);
    CHECK_U64(committed(&play->scene), 2 * ROUNDS * SESSIONS);
    uint64_t before = play->passes->by_member[0], again = play->passes->again;
    send_rounds(play->sender, 2 * ROUNDS + 1, 2 * ROUNDS + 5);
    for (double until = scene_now() + 30; scene_now() < until && !all_came(play->passes, 2 * ROUNDS + 5);)
        poll_member(first, 50, false);
    CHECK(all_came(play->passes, 2 * ROUNDS + 5));
    CHECK_U64(play->passes->by_member[0], before + 5 * SESSIONS);
    CHECK_U64(play->passes->again, again);
    close_member(first);
    sender_close(play->sender);
    checker_log_free(play->log);
    free(play->passes);
    scene_close(&play->scene);
}

#define EAGER {.scene = {.layout = "topics", .partitions = 4, .lanes = 2}, .strategy = "range", .parts = 1}
/* Half of the partitions is revoked, the other half is found to be lost after that. */
#define INCREMENTAL \
    {.scene = {.layout = "topics", .partitions = 8, .lanes = 1}, .strategy = "cooperative-sticky", .parts = 2}

/* A revoke waits for acknowledgements when the hang begins. */
static void hang_while_a_revoke_waits(struct play play) {
    play_open(&play, "waits");
    open_member(&play.members[1], &play.scene, 1, play.passes, play.log, "500", play.strategy);
    for (double until = scene_now() + 20; scene_now() < until && play.members[0].calls[UNSALT_REVOKING] == 0;) {
        poll_member(&play.members[0], 20, true);
        poll_member(&play.members[1], 20, false);
    }
    CHECK_I64(play.members[0].calls[UNSALT_REVOKING], 1);
    poll_member(&play.members[0], 20, true);
    CHECK_I64(play.members[0].calls[UNSALT_REVOKED], 0);
    play_hang(&play);
    play_back(&play);
}

Test(rebalance_poll, a_hang_while_a_revoke_waits, .timeout = 90) {
    hang_while_a_revoke_waits((struct play)EAGER);
}

Test(rebalance_poll, a_hang_while_a_revoke_of_some_waits, .timeout = 90) {
    hang_while_a_revoke_waits((struct play)INCREMENTAL);
}

/* The revoke comes while the application hangs already, so it is found when it is over. */
static void revoke_in_the_queue(struct play play) {
    play_open(&play, "queue");
    open_member(&play.members[1], &play.scene, 1, play.passes, play.log, "500", play.strategy);
    play_hang(&play);
    play_back(&play);
}

Test(rebalance_poll, a_revoke_in_the_queue_of_a_member_that_hung, .timeout = 90) {
    revoke_in_the_queue((struct play)EAGER);
}

Test(rebalance_poll, a_revoke_of_some_in_the_queue_of_a_member_that_hung, .timeout = 90) {
    revoke_in_the_queue((struct play)INCREMENTAL);
}
