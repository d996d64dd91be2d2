/* SPDX-License-Identifier: BSD-2-Clause */
/* A relay on the mock cluster: what is refused, what the callback is given and gives, what becomes of failures. */
#include <stdatomic.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { WAIT_MS = 30000 };

struct play {
    struct mock mock;
    struct heard heard;
    unsalt_relay_t *relay;
    size_t done;            /* inputs that transactions cover */
    atomic_int calls, made, released, letters; /* `made`: results that are to be released */
    atomic_uint attempts;   /* the most of one record */
    uint64_t fails;         /* a number that fails .. */
    int times;              /* .. so often; -1: always */
    atomic_int failures;    /* so far */
    char reason[32], error[64]; /* of the last dead letter */
    uint64_t buried;        /* its number */
    unsigned letter_attempts;
    atomic_int refusals;    /* so many letters are not stored */
};

static struct play *now_playing; /* for what has no opaque */

static void release(void *payload) {
    now_playing->released++;
    free(payload);
}

/* Payload "seen N"; a header of its own for even numbers. Number 5 is dropped, and what has no number and says so. */
static unsalt_relay_res_t work(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                               unsalt_relay_out_t *out) {
    struct play *play = opaque;
    play->calls++;
    if (info->attempt > play->attempts)
        play->attempts = info->attempt;
    if (info->seq == play->fails && (play->times < 0 || play->failures < play->times)) {
        play->failures++;
        CHECK_STR(info->errstr, "");
        snprintf(info->errstr, info->errstr_size, "failed at attempt %u", info->attempt);
        return UNSALT_RELAY_FAILED;
    }
    if (info->seq == 5 || (!info->session && message->len == 4 && memcmp(message->payload, "drop", 4) == 0))
        return UNSALT_RELAY_DROP;
    if (!info->session)
        return UNSALT_RELAY_DONE; /* as it is */
    char *text = malloc(32);
    if (!text)
        return UNSALT_RELAY_FAILED;
    out->len = (size_t)snprintf(text, 32, "seen %d", (int)info->seq);
    out->payload = text;
    out->release = release;
    play->made++;
    if (info->seq % 2 == 0) {
        out->headers = rd_kafka_headers_new(1);
        rd_kafka_header_add(out->headers, "even", -1, "yes", -1);
    }
    return UNSALT_RELAY_DONE;
}

static unsalt_pipeline_res_t on_letter(void *opaque, const rd_kafka_message_t *message, const unsalt_relay_info_t *info,
                                       const unsalt_pipeline_failure_t *failure) {
    struct play *play = opaque;
    (void)message;
    play->letters++;
    play->buried = info->seq;
    play->letter_attempts = failure->attempts;
    CHECK_I64(failure->phase, UNSALT_PIPELINE_PREPARE);
    CHECK_U64(failure->cursor, UNSALT_NO_SEQ);
    CHECK(!info->errstr);
    snprintf(play->reason, sizeof play->reason, "%s", unsalt_pipeline_reason_name(failure->reason));
    snprintf(play->error, sizeof play->error, "%s", failure->error);
    return play->refusals-- > 0 ? UNSALT_PIPELINE_RETRY : UNSALT_PIPELINE_OK;
}

static rd_kafka_conf_t *writes_of(const struct mock *mock) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    mock_rd_set(conf, "bootstrap.servers", mock->bootstraps);
    return conf;
}

/* settings: of the input; NULL in `reads`, for one that is left as it is. */
static unsalt_relay_t *make(struct play *play, rd_kafka_conf_t *reads, const char *settings, const char *result,
                            bool letters, char *errstr, size_t size) {
    rd_kafka_conf_t *writes = writes_of(&play->mock);
    unsalt_conf_t *input = mock_conf(settings, &play->heard), *to = mock_conf(result, NULL);
    unsalt_conf_set_relay_cb(input, work, play);
    if (letters)
        unsalt_conf_set_relay_dead_letter_cb(input, on_letter, play);
    unsalt_relay_t *relay = unsalt_relay_new(reads, input, writes, to, errstr, size);
    if (!relay) { /* they are still ours */
        rd_kafka_conf_destroy(reads);
        rd_kafka_conf_destroy(writes);
        unsalt_conf_destroy(input);
        unsalt_conf_destroy(to);
    }
    return relay;
}

static void play_open(struct play *play) {
    now_playing = play;
    heard_init(&play->heard);
    mock_open(&play->mock, 1);
    mock_topic(&play->mock, "in", 2);
    mock_topic(&play->mock, "out", 2);
    mock_topic(&play->mock, "out.lane-1", 2);
}

static void play_begin(struct play *play, const char *settings, bool letters) {
    char errstr[512];
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    play->relay = make(play, mock_rd_conf(&play->mock, "relay"), settings,
                       "relay.topic=out layout=topics partitions=2 lanes=2", letters, errstr, sizeof errstr);
    CHECK_THAT(play->relay, "%s", errstr);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(play->relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
}

static void play_close(struct play *play) {
    unsalt_relay_destroy(play->relay);
    mock_close(&play->mock);
}

static unsalt_relay_stats_t stats_of(const struct play *play) {
    unsalt_relay_stats_t stats;
    CHECK_I64(unsalt_relay_stats(play->relay, &stats, sizeof stats), 0);
    return stats;
}

/*
 * Polls until so many inputs are done in all, in batches as they come. Returns the code of the last error; NO_ERROR:
 * there was none. The callbacks are called at least once for each record: how often exactly is not to be judged.
 */
static rd_kafka_resp_err_t relay(struct play *play, size_t inputs, bool until_error) {
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    size_t n;
    for (uint64_t until = now_ms() + WAIT_MS; play->done < inputs && !(err && until_error) && now_ms() < until;) {
        rd_kafka_error_t *error = unsalt_relay_poll(play->relay, 100, &n);
        play->done += n;
        if (error) {
            err = rd_kafka_error_code(error);
            fprintf(stderr, "%s\n", rd_kafka_error_string(error));
            CHECK_U64(n, 0);
        }
        rd_kafka_error_destroy(error);
    }
    CHECK_THAT((err && until_error) || play->done == inputs, "%d of %d inputs are done", (int)play->done, (int)inputs);
    CHECK_I64(play->released, play->made);
    return err;
}

/* Numbers 1..8 of a session over two lanes; lane k stands in partition k. */
static void write_session(struct play *play) {
    for (uint64_t seq = 1; seq <= 8; seq++)
        mock_send(&play->mock, "in", (int32_t)(seq % 2), "room", seq, 2);
    mock_flush(&play->mock);
}

static unsalt_t *open_merger(const struct play *play, struct heard *heard) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
    heard_init(heard);
    unsalt_t *u = mock_consumer(&play->mock, "merging",
                                "layout=topics partitions=2 lanes=2 gap.timeout.ms=-1 seq.source=unsalt", heard);
    for (int p = 0; p < 2; p++) {
        rd_kafka_topic_partition_list_add(list, "out", p)->offset = RD_KAFKA_OFFSET_BEGINNING;
        rd_kafka_topic_partition_list_add(list, "out.lane-1", p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    }
    CHECK_I64(unsalt_assign(u, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
    return u;
}

/* Takes what comes in order; `without`: numbers that must not come, others up to 8 must, with their payload. */
static void check_merged(const struct play *play, uint64_t without) {
    struct heard heard;
    unsalt_t *u = open_merger(play, &heard);
    for (uint64_t seq = 1; seq <= 8; seq++) {
        char text[32];
        rd_kafka_message_t *message = NULL;
        if (without >> seq & 1)
            continue;
        for (uint64_t until = now_ms() + WAIT_MS; !message && now_ms() < until;)
            message = unsalt_consumer_poll(u, 100);
        unsalt_message_info_t info = {.size = sizeof info};
        CHECK_THAT(message && !message->err, "number %d doesn't come", (int)seq);
        CHECK_I64(unsalt_message_info(u, message, &info), 0);
        CHECK_U64(info.seq, seq);
        CHECK_BYTES(info.session, info.session_len, "room", 4);
        snprintf(text, sizeof text, "seen %d", (int)seq);
        CHECK_BYTES(message->payload, message->len, text, strlen(text));
        const void *value;
        size_t size;
        rd_kafka_headers_t *headers;
        CHECK_I64(rd_kafka_message_headers(message, &headers), 0);
        CHECK_I64(rd_kafka_header_get_last(headers, "even", &value, &size) == 0, seq % 2 == 0);
        rd_kafka_message_destroy(message);
    }
    take_nothing(u, 200);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_DUPLICATE), 0);
    mock_done(u);
}

/* ---- what is refused */

static void refused(const char *name, const char *value, const char *settings, const char *result, const char *why) {
    struct play play = {.mock = {.cluster = NULL}};
    char errstr[512] = "";
    heard_init(&play.heard);
    rd_kafka_conf_t *reads = rd_kafka_conf_new();
    if (strcmp(name, "group.id") != 0)
        mock_rd_set(reads, "group.id", "g");
    if (value)
        mock_rd_set(reads, name, value);
    play.mock.bootstraps = "127.0.0.1:1";
    CHECK_THAT(!make(&play, reads, settings, result, false, errstr, sizeof errstr), "%s is not refused", why);
    CHECK_THAT(strstr(errstr, why), "\"%s\" says nothing of %s", errstr, why);
}

TEST(mock_relay, what_is_refused) {
    static const char good[] = "relay.topic=out partitions=2 lanes=2";
    refused("group.id", NULL, "", good, "group.id");
    refused("isolation.level", "read_uncommitted", "", good, "isolation.level=read_uncommitted");
    refused("client.id", "c", "", "partitions=2 lanes=2", "relay.topic");
    refused("client.id", "c", "", "relay.topic=out lanes=2", "partitions");
    refused("client.id", "c", "", "relay.topic=out layout=topics partitions=2 lane.topics=a,b", "lane.topics");
    refused("client.id", "c", "seq.first=0", good, "seq.first=0");
    refused("client.id", "c", "relay.failure=dead-letter", good, "relay.failure=dead-letter");
    refused("client.id", "c", "malformed=dead-letter", good, "malformed=dead-letter");
    refused("client.id", "c", "layout=topics", good, "partitions");
}

/* A key on the configuration that doesn't read it would be taken in silence. */
TEST(mock_relay, keys_in_the_wrong_place_are_refused) {
    static const char *const of_input[] = {"relay.threads=4",  "relay.batch.records=10", "relay.batch.bytes=10",
                                           "relay.batch.ms=1", "relay.retries=1",        "relay.retry.ms=1",
                                           "relay.failure=skip", "relay.dead.letter.topic=dead",
                                           "relay.timeout.ms=2000"};
    static const char good[] = "relay.topic=out partitions=2 lanes=2";
    char settings[120], why[120];
    for (size_t i = 0; i < sizeof of_input / sizeof *of_input; i++) {
        snprintf(settings, sizeof settings, "%s %s", good, of_input[i]);
        snprintf(why, sizeof why, "%.*s is set on the relay's result", (int)strcspn(of_input[i], "="), of_input[i]);
        refused("client.id", "c", "", settings, why);
        refused("client.id", "c", "", settings, "it belongs to its input");
    }
    refused("client.id", "c", "relay.topic=out", good, "relay.topic is set on the relay's input");
    refused("client.id", "c", "relay.topic=out", good, "it belongs to its result");
    refused("client.id", "c", "relay.topic=out", "partitions=2 lanes=2", "it belongs to its result");
}

TEST(mock_relay, callbacks_in_the_wrong_place_are_refused) {
    for (int i = 0; i < 2; i++) {
        char errstr[512] = "";
        rd_kafka_conf_t *reads = rd_kafka_conf_new(), *writes = rd_kafka_conf_new();
        unsalt_conf_t *input = mock_conf("", NULL), *result = mock_conf("relay.topic=out partitions=2 lanes=2", NULL);
        if (i == 0)
            unsalt_conf_set_relay_cb(result, work, NULL);
        else
            unsalt_conf_set_relay_dead_letter_cb(result, on_letter, NULL);
        mock_rd_set(reads, "group.id", "g");
        CHECK(!unsalt_relay_new(reads, input, writes, result, errstr, sizeof errstr));
        CHECK_THAT(strstr(errstr, i == 0 ? "set_relay_cb() " : "set_relay_dead_letter_cb() "), "%s", errstr);
        rd_kafka_conf_destroy(reads);
        rd_kafka_conf_destroy(writes);
        unsalt_conf_destroy(input);
        unsalt_conf_destroy(result);
    }
}

/* ---- what goes through */

Test(mock_relay, results_under_the_numbers_of_their_records, .timeout = 120) {
    struct play play = {.fails = UINT64_MAX};
    play_open(&play);
    write_session(&play);
    play_begin(&play, "relay.threads=3", false);
    CHECK_I64(relay(&play, 8, false), 0);
    CHECK_U64(stats_of(&play).relayed, 7);
    CHECK_U64(stats_of(&play).dropped, 1);
    CHECK_U64(stats_of(&play).markers, 1);
    CHECK_U64(stats_of(&play).relaned, 0);
    CHECK(play.calls >= 8);
    CHECK(play.released >= 7);
    check_merged(&play, 1 << 5);
    play_close(&play);
}

/* Without a number, malformed, heartbeats. On the thread that polls. */
Test(mock_relay, what_has_no_number, .timeout = 120) {
    struct play play = {.fails = UINT64_MAX};
    const unsalt_header_t beat = {.flags = UNSALT_F_HEARTBEAT, .lanes = 2};
    play_open(&play);
    mock_write(&play.mock, "in", 0, "key", "plain", 5, NULL, NULL, 0);
    mock_write(&play.mock, "in", 0, NULL, "none", 4, NULL, NULL, 0);
    mock_write(&play.mock, "in", 0, "key", "drop", 4, NULL, NULL, 0);
    mock_write(&play.mock, "in", 0, "key", "odd", 3, "unsalt", "short", 5);
    mock_send_header(&play.mock, "in", 1, "room", &beat);
    mock_flush(&play.mock);
    play_begin(&play, "relay.threads=0", false);
    CHECK_I64(relay(&play, 5, false), 0);
    unsalt_relay_stats_t stats = stats_of(&play);
    CHECK_U64(stats.relayed, 3);
    CHECK_U64(stats.unsequenced, 3);
    CHECK_U64(stats.dropped, 1);
    CHECK(stats.malformed >= 1);
    CHECK_U64(stats.heartbeats, 1);
    CHECK_U64(stats.markers, 0);
    CHECK_U64(heard_count(&play.heard, UNSALT_EVENT_MALFORMED), stats.malformed);
    struct heard heard;
    unsalt_t *u = open_merger(&play, &heard);
    struct takings takings = {0};
    CHECK(take(u, &takings, 3, WAIT_MS));
    for (size_t i = 0; i < 3; i++)
        CHECK_I64(takings.got[i].state, UNSALT_STATE_UNSEQUENCED);
    CHECK_U64(heard_count(&heard, UNSALT_EVENT_MALFORMED), 0); /* its header has not gone on */
    takings_free(&takings);
    mock_done(u);
    play_close(&play);
}

Test(mock_relay, malformed_to_the_callback, .timeout = 120) {
    struct play play = {.fails = UINT64_MAX};
    play_open(&play);
    mock_write(&play.mock, "in", 0, "key", "odd", 3, "unsalt", "short", 5);
    mock_flush(&play.mock);
    play_begin(&play, "malformed=dead-letter", true);
    CHECK_I64(relay(&play, 1, false), 0);
    CHECK(play.letters >= 1);
    CHECK_STR(play.reason, "malformed");
    CHECK_THAT(play.error[0], "no word on what is wrong with it");
    CHECK_U64(play.letter_attempts, 0);
    CHECK_U64(play.buried, UNSALT_NO_SEQ);
    CHECK_I64(play.calls, 0);
    CHECK_U64(stats_of(&play).relayed, 0);
    play_close(&play);
}

/* ---- failures */

Test(mock_relay, what_fails_is_tried_again, .timeout = 120) {
    struct play play = {.fails = 3, .times = 2};
    play_open(&play);
    write_session(&play);
    play_begin(&play, "relay.retry.ms=1", false);
    CHECK_I64(relay(&play, 8, false), 0);
    CHECK_U64(stats_of(&play).retries, 2);
    CHECK_U64(stats_of(&play).failed, 0);
    CHECK_U64(play.attempts, 3); /* both times in a row: nothing gives the batch up in between */
    check_merged(&play, 1 << 5);
    play_close(&play);
}

/* The batch comes again with each call, until it can be done. Nothing of it was written before. */
Test(mock_relay, halt, .timeout = 120) {
    struct play play = {.fails = 3, .times = 4};
    play_open(&play);
    write_session(&play);
    play_begin(&play, "relay.retries=1 relay.retry.ms=1", false);
    CHECK_I64(relay(&play, 8, true), RD_KAFKA_RESP_ERR__APPLICATION);
    relay(&play, 8, false);
    CHECK_U64(stats_of(&play).failed, 2);
    CHECK(stats_of(&play).aborts >= 2);
    check_merged(&play, 1 << 5);
    play_close(&play);
}

/* No record is passed over in silence: it is told once, though its batch may have been worked on more than once. */
static void check_told(struct play *play, unsalt_event_type_t type, uint64_t seq, const char *how) {
    CHECK_U64(heard_count(&play->heard, type), 1);
    CHECK_U64(play->heard.first[type], seq);
    CHECK_THAT(strstr(play->heard.text[type], how), "%s", play->heard.text[type]);
}

Test(mock_relay, dead_letter, .timeout = 120) {
    struct play play = {.fails = 3, .times = -1};
    play_open(&play);
    write_session(&play);
    play_begin(&play, "relay.failure=dead-letter relay.retries=1 relay.retry.ms=1", true);
    CHECK_I64(relay(&play, 8, false), 0);
    CHECK(play.letters >= 1);
    CHECK_STR(play.reason, "exhausted");
    CHECK_STR(play.error, "failed at attempt 2");
    CHECK_U64(play.letter_attempts, 2);
    CHECK_U64(play.buried, 3);
    CHECK_U64(stats_of(&play).markers, 2);
    check_told(&play, UNSALT_EVENT_PIPELINE_BURIED, 3,
               "exhausted, 2 calls), stored as a dead letter: failed at attempt 2");
    check_merged(&play, 1 << 5 | 1 << 3);
    play_close(&play);
}

/* A record whose dead letter can't be stored is not passed over. */
Test(mock_relay, dead_letter_that_is_not_stored, .timeout = 120) {
    struct play play = {.fails = 3, .times = -1, .refusals = 2};
    play_open(&play);
    write_session(&play);
    play_begin(&play, "relay.failure=dead-letter relay.retries=0", true);
    CHECK_I64(relay(&play, 8, true), RD_KAFKA_RESP_ERR__APPLICATION);
    relay(&play, 8, false);
    CHECK_I64(play.letters, 3);
    CHECK(stats_of(&play).aborts >= 2);
    CHECK_U64(heard_count(&play.heard, UNSALT_EVENT_PIPELINE_BURIED), 1);
    play_close(&play);
}

Test(mock_relay, skip, .timeout = 120) {
    struct play play = {.fails = 4, .times = -1};
    play_open(&play);
    write_session(&play);
    play_begin(&play, "relay.failure=skip relay.retries=0", false);
    CHECK_I64(relay(&play, 8, false), 0);
    CHECK(play.failures >= 1);
    CHECK_U64(stats_of(&play).failed, (uint64_t)play.failures);
    CHECK_U64(stats_of(&play).retries, 0);
    check_told(&play, UNSALT_EVENT_PIPELINE_SKIPPED, 4, "exhausted, 1 calls), skipped: failed at attempt 1");
    check_merged(&play, 1 << 5 | 1 << 4);
    play_close(&play);
}

/* ---- threads */

static rd_kafka_resp_err_t poll_once(unsalt_relay_t *relay, int timeout_ms) {
    rd_kafka_error_t *error = unsalt_relay_poll(relay, timeout_ms, NULL);
    rd_kafka_resp_err_t err = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_error_destroy(error);
    return err;
}

struct poller {
    unsalt_relay_t *relay;
    atomic_bool ends;
};

/* Nothing comes. */
static void *poll_long(void *opaque) {
    struct poller *poller = opaque;
    while (!poller->ends)
        poll_once(poller->relay, 500);
    return NULL;
}

Test(mock_relay, one_thread_polls, .timeout = 120) {
    struct play play = {.fails = UINT64_MAX};
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    pthread_t thread;
    play_open(&play);
    play_begin(&play, "", false);
    struct poller poller = {.relay = play.relay};
    CHECK_I64(pthread_create(&thread, NULL, poll_long, &poller), 0);
    for (uint64_t until = now_ms() + WAIT_MS; err != RD_KAFKA_RESP_ERR__CONFLICT && now_ms() < until;)
        err = poll_once(play.relay, 0);
    poller.ends = true;
    pthread_join(thread, NULL);
    CHECK_I64(err, RD_KAFKA_RESP_ERR__CONFLICT);
    play_close(&play);
}
