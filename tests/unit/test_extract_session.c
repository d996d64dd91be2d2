/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of several session ids counts: the callback's, then the header's, then the JSON field's, then the key's. */
#include <unit/fixture/record.h>

enum { CALLBACK = 1, HEADER = 2, JSON = 4, KEY = 8, ALL = 16 };

static bool tells_session;

static unsalt_extract_res_t extract(void *opaque, const rd_kafka_message_t *message, unsalt_extract_t *found) {
    (void)opaque;
    (void)message;
    found->seq = 17;
    if (tells_session) {
        found->session = "by-callback";
        found->session_len = 11;
    }
    return UNSALT_EXTRACT_FOUND;
}

static const char *const sources[] = {"unsalt", "header", "json", "key", "callback", "auto"};

/* A record whose sequence 17 stands where the source looks, with the sessions that are in `ids`. */
static struct scene *record_of(const char *source, unsigned ids) {
    char settings[128];
    bool in_key = strcmp(source, "key") == 0, in_json = strcmp(source, "json") == 0;
    snprintf(settings, sizeof settings, "session.header=who seq.source=%s%s", source,
             in_key ? " seq.key=decimal seq.key.digits=2" : "");
    struct scene *s = scene(settings);
    unsalt_conf_set_extract_cb(s->conf, extract, NULL);
    tells_session = ids & CALLBACK;
    if (ids & KEY)
        key(s, in_key ? "by-key17" : "by-key");
    else if (in_key)
        key(s, "17");
    if (ids & HEADER)
        header(s, "who", "by-header", -1);
    if (strcmp(source, "unsalt") == 0 || strcmp(source, "auto") == 0)
        stamp(s, (unsalt_header_t){.lane = 0, .lanes = 1, .seq = 17, .since = 1, .una = 17});
    if (strcmp(source, "header") == 0)
        header(s, "seq", "17", -1);
    if (in_json)
        payload(s, ids & JSON ? "{\"globalSeq\":17,\"sessionId\":\"by-json\"}" : "{\"globalSeq\":17}");
    else
        payload(s, ids & JSON ? "{\"sessionId\":\"by-json\"}" : "text");
    return s;
}

/* The rule once more, in its own words. NULL: none is left. */
static const char *wanted(const char *source, unsigned ids) {
    bool callback = strcmp(source, "callback") == 0, in_json = strcmp(source, "json") == 0;
    bool has_key = (ids & KEY) || strcmp(source, "key") == 0;
    if (callback && (ids & CALLBACK))
        return "by-callback";
    if (ids & HEADER)
        return "by-header";
    if ((ids & JSON) && (in_json || !has_key))
        return "by-json";
    return ids & KEY ? "by-key" : NULL;
}

TEST(extract_session, every_combination) {
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        for (unsigned ids = 0; ids < ALL; ids++) {
            struct scene *s = record_of(sources[i], ids);
            const char *id = wanted(sources[i], ids);
            parsed = 0;
            run(s);
            CHECK_THAT(!s->fault == (id != NULL), "source %s, ids %u: %s", sources[i], ids,
                       s->fault ? s->fault : "a session");
            CHECK_THAT(!id || (s->in.session_len == strlen(id) && memcmp(s->in.session, id, strlen(id)) == 0),
                       "source %s, ids %u: \"%.*s\", not \"%s\"", sources[i], ids, (int)s->in.session_len,
                       (const char *)s->in.session, id);
            CHECK_THAT(id || s->in.kind == UNSALT_KIND_MALFORMED, "source %s, ids %u", sources[i], ids);
            CHECK_THAT(parsed <= 1, "source %s, ids %u: headers parsed %u times", sources[i], ids, parsed);
            done(s);
        }
    }
}

TEST(extract_session, a_header_is_borrowed_and_stays_within_its_room) {
    struct scene *s = scene("seq.source=header session.header=who session.id.max=4");
    key(s, "key");
    header(s, "seq", "17", -1);
    header(s, "who", "room", -1);
    check_sequenced(s, "room", 17, 0, 0);
    CHECK(s->borrowed);
    done(s);
    s = scene("seq.source=header session.header=who session.id.max=4");
    key(s, "key");
    header(s, "seq", "17", -1);
    header(s, "who", "rooms", -1);
    check_unsequenced(s, "longer than session.id.max");
    done(s);
}

/* A header that can't be used is told, and doesn't leave the record to another session. */
TEST(extract_session, headers_that_cannot_be) {
    struct scene *s = scene("session.header=who");
    key(s, "key");
    header(s, "seq", "17", -1);
    header(s, "who", "", 0);
    check_unsequenced(s, "session header is empty");
    done(s);
    s = scene("session.header=who seq.source=json");
    key(s, "key");
    payload(s, "{\"globalSeq\":17,\"sessionId\":\"room\"}");
    header(s, "who", NULL, 0);
    check_unsequenced(s, "session header is empty");
    done(s);
    s = scene("session.header=who seq.source=json");
    payload(s, "{\"globalSeq\":17,\"sessionId\":\"room\"}");
    s->record.headers_err = RD_KAFKA_RESP_ERR__BAD_MSG;
    check_unsequenced(s, "headers can't be parsed");
    done(s);
    s = scene("session.header=who seq.source=json"); /* no headers at all: no fault */
    payload(s, "{\"globalSeq\":17,\"sessionId\":\"room\"}");
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
    s = scene("session.header=who"); /* without a sequence nobody asks for a session */
    key(s, "key");
    header(s, "who", "", 0);
    check_unsequenced(s, NULL);
    done(s);
}

TEST(extract_session, the_last_of_several_headers_counts) {
    struct scene *s = scene("session.header=who");
    key(s, "key");
    header(s, "seq", "17", -1);
    header(s, "who", "", 0);
    header(s, "who", "a", -1);
    header(s, "who", "room", -1);
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
}

/* One record's header is not the next one's. */
TEST(extract_session, nothing_stays_from_the_record_before) {
    struct scene *s = scene("session.header=who");
    key(s, "key");
    header(s, "seq", "17", -1);
    header(s, "who", "room", -1);
    check_sequenced(s, "room", 17, 0, 0);
    rd_kafka_headers_destroy(s->record.headers);
    s->record.headers = NULL;
    header(s, "seq", "18", -1);
    check_sequenced(s, "key", 18, 0, 0);
    CHECK(!s->borrowed);
    done(s);
}

TEST(extract_session, of_markers_too) {
    struct scene *s = scene("session.header=who");
    key(s, "key");
    header(s, "who", "room", -1);
    stamp(s, (unsalt_header_t){.lane = 1, .lanes = 4, .seq = 9, .since = 5, .una = 9, .flags = UNSALT_F_MARKER});
    run(s);
    CHECK_U64(s->in.kind, UNSALT_KIND_CONTROL);
    CHECK_BYTES(s->in.session, s->in.session_len, "room", 4);
    done(s);
}

/* A marker is not for the application, even if its session is refused. */
TEST(extract_session, a_marker_of_a_refused_session) {
    struct scene *s = scene("session.id.max=3");
    key(s, "longer");
    stamp(s, (unsalt_header_t){.lane = 0, .lanes = 1, .seq = 9, .since = 5, .una = 9, .flags = UNSALT_F_MARKER});
    run(s);
    CHECK(s->fault);
    CHECK_U64(s->in.kind, UNSALT_KIND_CONTROL);
    CHECK(s->in.flags == 0 && !s->in.session);
    key(s, NULL);
    run(s);
    CHECK(s->fault);
    CHECK_U64(s->in.kind, UNSALT_KIND_CONTROL);
    done(s);
}

/* The salt of the key tells the lane if the header's session stands before it. */
TEST(extract_session, the_key_may_tell_the_lane) {
    struct scene *s = scene("session.header=who lanes=4");
    header(s, "seq", "17", -1);
    header(s, "who", "room", -1);
    key(s, "room#1");
    check_sequenced(s, "room", 17, 1, 4);
    key(s, "other#1");
    check_sequenced(s, "room", 17, 0, 0);
    CHECK_U64(s->in.since, 0);
    key(s, NULL);
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
}

/* While the application has the message, its headers are not taken away. */
TEST(extract_session, kept_headers) {
    struct scene *s = scene("session.header=who");
    s->extractor.keep_headers = true;
    key(s, "key");
    header(s, "seq", "17", -1);
    header(s, "who", "room", -1);
    check_sequenced(s, "room", 17, 0, 0);
    CHECK(s->borrowed);
    CHECK_U64(rd_kafka_header_cnt(s->record.headers), 2);
    done(s);
}

TEST(extract_session, nested_fields) {
    struct scene *s = scene("seq.json=/meta/n session.json=/meta/who");
    key(s, "key");
    payload(s, "{\"meta\":{\"who\":\"room\",\"n\":17},\"globalSeq\":1,\"sessionId\":\"other\"}");
    check_sequenced(s, "room", 17, 0, 0);
    payload(s, "{\"meta\":{\"n\":17}}");
    check_sequenced(s, "key", 17, 0, 0);
    payload(s, "{\"meta\":[17],\"globalSeq\":1}");
    check_unsequenced(s, NULL);
    payload(s, "{\"meta\":{\"n\":\"17\"}}");
    check_unsequenced(s, "not a number");
    done(s);
    s = scene("seq.source=json seq.json=/meta/n");
    key(s, "key");
    payload(s, "{\"meta\":{\"n\" 17}}");
    check_unsequenced(s, "not a JSON object");
    payload(s, "{\"meta\":5}");
    check_unsequenced(s, "missing");
    done(s);
}
