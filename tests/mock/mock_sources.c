/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of the sequence and the session that need no `unsalt` header, from the broker to the application. */
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

#define LANES 4

struct scene {
    struct mock mock;
    struct heard heard;
    struct takings takings;
    unsalt_conf_t *conf;
    unsalt_t *u;
};

static void begin(struct scene *s, const char *settings) {
    memset(s, 0, sizeof(*s));
    mock_open(&s->mock, 1);
    mock_topic(&s->mock, "t", LANES);
    heard_init(&s->heard);
    s->conf = mock_conf(settings, &s->heard);
}

static void start(struct scene *s) {
    mock_flush(&s->mock);
    s->u = mock_consumer_of(mock_rd_conf(&s->mock, "g"), s->conf);
    CHECK(!mock_assign(s->u, "t", LANES, RD_KAFKA_OFFSET_BEGINNING));
}

static unsalt_stats_t stats_of(const struct scene *s) {
    unsalt_stats_t stats;
    CHECK_I64(unsalt_stats(s->u, &stats, sizeof(stats)), 0);
    CHECK(stats.conserved);
    return stats;
}

static void end(struct scene *s) {
    stats_of(s);
    takings_free(&s->takings);
    mock_done(s->u);
    mock_close(&s->mock);
}

TEST(sources, a_trailer_in_the_key) {
    struct scene s;
    begin(&s, "seq.source=key seq.key=decimal seq.key.digits=6 lanes=4");
    for (int lane = LANES - 1; lane >= 0; lane--) { /* the last lane first */
        for (uint64_t seq = 1; seq <= 200; seq++) {
            char key[32];
            size_t len = (size_t)sprintf(key, "hot#%d", lane);
            CHECK_U64(unsalt_key_trailer_write(seq, 6, key + len, sizeof(key) - len), 6);
            key[len + 6] = 0;
            if (seq % LANES == (uint64_t)lane) {
                mock_write(&s.mock, "t", lane, key, "x", 1, NULL, NULL, 0);
            }
        }
    }
    mock_write(&s.mock, "t", 0, NULL, "x", 1, NULL, NULL, 0);
    mock_write(&s.mock, "t", 0, "short", "x", 1, NULL, NULL, 0);
    start(&s);
    CHECK(take(s.u, &s.takings, 202, 15000));
    CHECK_U64(check_order(&s.takings, 1), 200);
    CHECK_U64(stats_of(&s).state[UNSALT_STATE_UNSEQUENCED], 2);
    CHECK_U64(stats_of(&s).malformed, 1); /* a null key is no fault */
    CHECK_U64(stats_of(&s).gaps[UNSALT_GAP_TIMEOUT], 0);
    for (size_t i = 0; i < s.takings.count; i++) {
        const struct got *got = &s.takings.got[i];
        CHECK(got->state != UNSALT_STATE_RELEASED || (!strcmp(got->session, "hot") && got->lane == got->partition));
    }
    end(&s);
}

/* ---- the callback */

static unsigned answers;

/*
 * The payload is "<session> <number>". The id is copied to the same place for every record, filled up to a length at
 * which not all ids of a chunk find room: who used it after the next call would find another session.
 */
static unsalt_extract_res_t from_payload(void *opaque, const rd_kafka_message_t *message, unsalt_extract_t *found) {
    static char id[200];
    char text[64];
    CHECK(opaque == &answers && found->size >= sizeof(*found) && message->len < sizeof(text));
    memcpy(text, message->payload, message->len);
    text[message->len] = 0;
    const char *space = strchr(text, ' ');
    if (!space) {
        return UNSALT_EXTRACT_NONE;
    }
    memset(id, '.', sizeof(id));
    memcpy(id, text, (size_t)(space - text));
    found->session = id;
    found->session_len = sizeof(id);
    found->seq = strtoull(space + 1, NULL, 10);
    answers++;
    return found->seq == 666 ? UNSALT_EXTRACT_MALFORMED : UNSALT_EXTRACT_FOUND;
}

TEST(sources, a_callback) {
    struct scene s;
    begin(&s, "seq.source=callback");
    unsalt_conf_set_extract_cb(s.conf, from_payload, &answers);
    for (int partition = LANES - 1; partition >= 0; partition--) {
        for (uint64_t seq = 1; seq <= 200; seq++) {
            for (char session = 'a'; session <= 'c'; session++) {
                char text[32];
                int len = sprintf(text, "%c %" PRIu64, session, seq);
                if (seq % LANES == (uint64_t)partition) {
                    mock_write(&s.mock, "t", partition, NULL, text, (size_t)len, NULL, NULL, 0);
                }
            }
        }
    }
    mock_write(&s.mock, "t", 0, "key", "plain", 5, NULL, NULL, 0);
    mock_write(&s.mock, "t", 0, "key", "d 666", 5, NULL, NULL, 0);
    start(&s);
    CHECK(take(s.u, &s.takings, 602, 15000));
    CHECK_U64(check_order(&s.takings, 1), 600);
    CHECK_U64(stats_of(&s).state[UNSALT_STATE_UNSEQUENCED], 2);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_MALFORMED), 1);
    CHECK(strstr(s.heard.text[UNSALT_EVENT_MALFORMED], "calls it malformed"));
    end(&s);
}

static unsalt_extract_res_t nonsense(void *opaque, const rd_kafka_message_t *message, unsalt_extract_t *found) {
    unsigned *calls = opaque;
    (void)message;
    memset((char *)found + sizeof(found->size), 0xff, sizeof(*found) - sizeof(found->size));
    found->session = (*calls % 2) ? NULL : "s";
    found->fault = NULL;
    return (unsalt_extract_res_t)((int)(*calls)++ - 3);
}

TEST(sources, a_callback_that_talks_nonsense) {
    struct scene s;
    unsigned calls = 0;
    begin(&s, "");
    unsalt_conf_set_extract_cb(s.conf, nonsense, &calls);
    for (int i = 0; i < 40; i++) {
        mock_write(&s.mock, "t", 0, "key", "x", 1, NULL, NULL, 0);
    }
    start(&s);
    CHECK(take(s.u, &s.takings, 40, 15000));
    CHECK_U64(stats_of(&s).state[UNSALT_STATE_UNSEQUENCED], 40);
    CHECK(stats_of(&s).malformed >= 39); /* one of the values is NONE */
    end(&s);
}

/* ---- session header */

TEST(sources, a_session_header) {
    struct scene s;
    begin(&s, "session.header=who seq.json=/meta/n");
    for (uint64_t seq = 200; seq >= 1; seq--) {
        char text[64];
        int len = sprintf(text, "{\"meta\":{\"n\":%" PRIu64 "},\"sessionId\":\"same for all\"}", seq);
        mock_write(&s.mock, "t", (int32_t)(seq % LANES), "same", text, (size_t)len, "who", seq % 2 ? "a" : "bcd",
                   seq % 2 ? 1 : 3);
    }
    start(&s);
    size_t of[2] = {0};
    for (uint64_t until = now_ms() + 15000; of[0] + of[1] < 200 && now_ms() < until;) {
        rd_kafka_message_t *message = unsalt_consumer_poll(s.u, 100);
        unsalt_message_info_t info = {.size = sizeof(info)};
        rd_kafka_headers_t *headers;
        const void *value;
        size_t size;
        if (!message) {
            continue;
        }
        CHECK_I64(unsalt_message_info(s.u, message, &info), 0);
        CHECK_U64(info.state, UNSALT_STATE_RELEASED);
        /* The application finds its headers, before and after it asked about the message. */
        CHECK(!rd_kafka_message_headers(message, &headers));
        CHECK(!rd_kafka_header_get_last(headers, "who", &value, &size));
        CHECK_BYTES(info.session, info.session_len, value, size);
        of[size == 1]++;
        rd_kafka_message_destroy(message);
    }
    CHECK(of[0] == 100 && of[1] == 100);
    CHECK_U64(stats_of(&s).sessions, 2);
    end(&s);
}

/* ---- dead letters */

static int dead;

static void on_dead_letter(void *opaque, const struct rd_kafka_message_s *message, const char *reason) {
    CHECK(opaque == &dead && message->len > 0);
    CHECK_STR(reason, "malformed");
    dead++;
}

TEST(sources, malformed_records_are_dead_letters) {
    struct scene s;
    begin(&s, "malformed=dead-letter");
    unsalt_conf_set_dead_letter_cb(s.conf, on_dead_letter, &dead);
    mock_write(&s.mock, "t", 0, "a", "x", 1, UNSALT_HEADER_NAME, "rubbish", 7);
    mock_write(&s.mock, "t", 0, "a", "{\"globalSeq\":-1}", 16, NULL, NULL, 0);
    mock_write(&s.mock, "t", 0, "a", "{\"globalSeq\":0}", 15, NULL, NULL, 0); /* below seq.first */
    mock_write(&s.mock, "t", 0, "", "{\"globalSeq\":1}", 15, NULL, NULL, 0);
    mock_write(&s.mock, "t", 0, "a", "plain", 5, NULL, NULL, 0);
    mock_write(&s.mock, "t", 0, "a", "{\"globalSeq\":1}", 15, NULL, NULL, 0);
    start(&s);
    CHECK(take(s.u, &s.takings, 2, 15000));
    CHECK(s.takings.got[0].state == UNSALT_STATE_UNSEQUENCED && s.takings.got[0].offset == 4);
    CHECK(s.takings.got[1].state == UNSALT_STATE_RELEASED && s.takings.got[1].offset == 5);
    take_nothing(s.u, 100);
    CHECK_I64(dead, 4);
    CHECK_U64(stats_of(&s).state[UNSALT_STATE_DEAD_LETTERED], 4);
    CHECK_U64(stats_of(&s).malformed, 4);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_MALFORMED), 4);
    end(&s);
}

TEST(sources, what_a_configuration_lacks_is_said) {
    static const char *const settings[] = {"seq.source=callback", "malformed=dead-letter", "seq.source=key"};
    static const char *const wanted[] = {"unsalt_conf_set_extract_cb", "unsalt_conf_set_dead_letter_cb", "seq.key"};
    for (int i = 0; i < 3; i++) {
        char err[256] = "";
        rd_kafka_conf_t *rd_conf = rd_kafka_conf_new();
        unsalt_conf_t *conf = mock_conf(settings[i], NULL);
        mock_rd_set(rd_conf, "group.id", "g");
        CHECK(!unsalt_new(rd_conf, conf, err, sizeof(err)));
        CHECK_THAT(strstr(err, wanted[i]), "%s: %s", settings[i], err);
        unsalt_conf_destroy(conf);
        rd_kafka_conf_destroy(rd_conf);
    }
}

/* ---- collisions */

TEST(sources, lanes_that_share_a_partition) {
    struct scene s;
    begin(&s, "");
    for (int i = 0; i < 5; i++) {
        char session[16];
        sprintf(session, "s%d", i);
        for (uint64_t seq = 1; seq <= 20; seq++) { /* lanes 1 and 3 of four meet in partition 1 */
            mock_send(&s.mock, "t", seq % 2 ? 1 : (int32_t)(seq % 4), session, seq, 4);
        }
        mock_send(&s.mock, "t", 3, "cold", (uint64_t)i + 1, 1);
    }
    start(&s);
    CHECK(take(s.u, &s.takings, 105, 15000));
    CHECK_U64(check_order(&s.takings, 1), 105);
    CHECK_U64(stats_of(&s).collisions, 5);
    CHECK_U64(heard_count(&s.heard, UNSALT_EVENT_COLLISION), 3); /* the 1st, 2nd and 4th */
    const char *text = s.heard.text[UNSALT_EVENT_COLLISION];
    CHECK_THAT(strstr(text, "session \"s3\" has lanes 1 and 3 in one partition, 4 such sessions") &&
                   strstr(text, "t [1]"), "%s", text);
    end(&s);
}
