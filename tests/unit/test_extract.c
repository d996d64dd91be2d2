/* SPDX-License-Identifier: BSD-2-Clause */
/* What is read from a record: headers, payload, key. The other sources have files of their own. */
#include <unit/fixture/record.h>

TEST(extract, unsalt_header_with_salted_key) {
    struct scene *s = scene("");
    key(s, "room#3");
    payload(s, "x");
    stamp(s, (unsalt_header_t){.lane = 3, .lanes = 4, .epoch = 9, .seq = 7, .since = 2, .una = 5,
                               .flags = UNSALT_F_RESEND});
    check_sequenced(s, "room", 7, 3, 4);
    CHECK_U64(s->in.epoch, 9);
    CHECK_U64(s->in.since, 2);
    CHECK_U64(s->in.una, 5);
    CHECK_U64(s->in.flags, UNSALT_F_RESEND);
    CHECK_I64(s->in.timestamp, 123456);
    CHECK(s->in.session == s->record.message.key && !s->borrowed);
    CHECK_U64(s->in.bytes, us_pinned_bytes(&s->record.message));
    CHECK(s->in.bytes > 7);
    done(s);
}

TEST(extract, unsalt_header_with_raw_keys) {
    struct scene *s = scene("");
    key(s, "room#0");
    stamp(s, (unsalt_header_t){.lane = 0, .lanes = 1, .seq = 7, .since = 1, .una = 7});
    check_sequenced(s, "room#0", 7, 0, 1);
    done(s);
    s = scene(""); /* salted in the choice of partition only */
    key(s, "room");
    stamp(s, (unsalt_header_t){.lane = 3, .lanes = 4, .seq = 7, .since = 1, .una = 7});
    check_sequenced(s, "room", 7, 3, 4);
    done(s);
}

/* The keys of lane topics carry no salt: a number at the end belongs to the id, also where it equals the lane. */
TEST(extract, lane_topics_have_raw_keys) {
    struct scene *s = scene("layout=topics partitions=7 lanes=4");
    key(s, "room#3");
    stamp(s, (unsalt_header_t){.lane = 3, .lanes = 4, .seq = 7, .since = 1, .una = 7});
    check_sequenced(s, "room#3", 7, 3, 4);
    done(s);
    s = scene("layout=topics partitions=7 lanes=4 salt.trust=true");
    key(s, "room#3");
    stamp(s, (unsalt_header_t){.lane = 3, .lanes = 4, .seq = 7, .since = 1, .una = 7});
    check_sequenced(s, "room", 7, 3, 4);
    done(s);
}

TEST(extract, a_tombstone_with_header_is_sequenced) {
    struct scene *s = scene("");
    key(s, "room");
    payload(s, NULL);
    stamp(s, (unsalt_header_t){.lane = 0, .lanes = 1, .seq = 7, .since = 1, .una = 7});
    check_sequenced(s, "room", 7, 0, 1);
    done(s);
}

TEST(extract, the_last_of_several_headers_counts) {
    struct scene *s = scene("");
    key(s, "room");
    stamp(s, (unsalt_header_t){.lane = 0, .lanes = 1, .seq = 1, .since = 1, .una = 1});
    stamp(s, (unsalt_header_t){.lane = 0, .lanes = 1, .seq = 2, .since = 1, .una = 2});
    check_sequenced(s, "room", 2, 0, 1);
    done(s);
}

TEST(extract, markers_and_heartbeats_are_control) {
    struct scene *s = scene("");
    key(s, "room#1");
    payload(s, "m");
    stamp(s, (unsalt_header_t){.lane = 1, .lanes = 4, .epoch = 3, .seq = 9, .since = 5, .una = 9,
                               .flags = UNSALT_F_MARKER});
    run(s);
    CHECK(!s->fault);
    CHECK_U64(s->in.kind, UNSALT_KIND_CONTROL);
    CHECK_U64(s->in.since, 5);
    CHECK_U64(s->in.seq, 9);
    CHECK_BYTES(s->in.session, s->in.session_len, "room", 4);
    done(s);
    s = scene("");
    stamp(s, (unsalt_header_t){.lane = 1, .lanes = 4, .flags = UNSALT_F_HEARTBEAT});
    run(s);
    CHECK(!s->fault);
    CHECK_U64(s->in.kind, UNSALT_KIND_CONTROL);
    CHECK_U64(s->in.seq, UNSALT_NO_SEQ);
    done(s);
}

TEST(extract, malformed_unsalt_headers) {
    uint8_t good[UNSALT_HEADER_SIZE];
    const unsalt_header_t fields = {.lane = 3, .lanes = 4, .seq = 7, .since = 1, .una = 7};
    static const struct {
        size_t at;
        uint8_t value;
        const char *fault;
    } cases[] = {{0, 2, "version"}, {0, 0, "version"}, {3, 4, "lane"},
                 {5, 0, "lane"},    {5, 5, "lane"},    {31, 9, "since"}};
    CHECK(unsalt_header_write(&fields, good) == UNSALT_HEADER_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene *s = scene("");
        uint8_t bad[UNSALT_HEADER_SIZE];
        memcpy(bad, good, sizeof bad);
        bad[cases[i].at] = cases[i].value;
        key(s, "room#3");
        header(s, UNSALT_HEADER_NAME, bad, sizeof bad);
        check_unsequenced(s, cases[i].fault);
        done(s);
    }
    for (ssize_t size = 0; size < UNSALT_HEADER_SIZE; size += 13) {
        struct scene *s = scene("");
        key(s, "room#3");
        header(s, UNSALT_HEADER_NAME, good, size);
        check_unsequenced(s, "shorter");
        done(s);
    }
    struct scene *s = scene("");
    key(s, "room#3");
    header(s, UNSALT_HEADER_NAME, NULL, 0);
    check_unsequenced(s, "shorter");
    done(s);
}

TEST(extract, reserved_sequences_in_the_header) {
    uint8_t bytes[UNSALT_HEADER_SIZE];
    const unsalt_header_t fields = {.lane = 0, .lanes = 1, .seq = 7, .since = 0, .una = 0};
    CHECK(unsalt_header_write(&fields, bytes) == UNSALT_HEADER_OK);
    for (int round = 0; round < 2; round++) {
        struct scene *s = scene("");
        memset(bytes + 16, round ? 0xff : 0, 8);
        key(s, "room");
        header(s, UNSALT_HEADER_NAME, bytes, sizeof bytes);
        check_unsequenced(s, "sequence");
        done(s);
    }
}

TEST(extract, headers_that_cannot_be_parsed) {
    struct scene *s = scene("");
    key(s, "room");
    s->record.headers_err = RD_KAFKA_RESP_ERR__BAD_MSG;
    check_unsequenced(s, "headers");
    done(s);
}

TEST(extract, plain_headers) {
    static const uint8_t binary[8] = {0, 0, 0, 0, 0, 0, 1, 2};
    struct scene *s = scene("lanes=4");
    key(s, "room#2");
    header(s, "seq", binary, 8);
    check_sequenced(s, "room", 258, 2, 4);
    CHECK_U64(s->in.epoch, 0);
    CHECK_U64(s->in.since, 0);
    CHECK_U64(s->in.una, UNSALT_NO_SEQ);
    done(s);
    s = scene("seq.source=header seq.header=n");
    key(s, "room#2");
    header(s, "n", "18446744073709551614", -1);
    check_sequenced(s, "room#2", UINT64_MAX - 1, 0, 0); /* S unknown: no evidence for a salt */
    CHECK_U64(s->in.since, UNSALT_NO_SEQ);
    done(s);
    s = scene("lanes=4");
    key(s, "room#1"); /* not seq mod 4 */
    header(s, "seq", "6", -1);
    check_sequenced(s, "room#1", 6, 0, 0);
    CHECK_U64(s->in.since, 0); /* may be an unsalted session: S is not to be assumed */
    done(s);
    s = scene("salt.trust=true");
    key(s, "room#1");
    header(s, "seq", "6", -1);
    check_sequenced(s, "room", 6, 0, 0);
    done(s);
}

TEST(extract, impossible_plain_headers) {
    static const char *const values[] = {"18446744073709551615", "99999999999999999999", "-1", "1.5", "", "seven",
                                         " 7"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct scene *s = scene("");
        key(s, "room");
        header(s, "seq", values[i], -1);
        check_unsequenced(s, "sequence header");
        done(s);
    }
}

TEST(extract, json_has_precedence_over_the_key) {
    struct scene *s = scene("lanes=4");
    key(s, "other#3");
    payload(s, "{\"sessionId\":\"room\",\"globalSeq\":17}");
    check_sequenced(s, "room", 17, 0, 0);
    CHECK_U64(s->in.since, 0);
    CHECK(!s->borrowed);
    done(s);
    s = scene("lanes=4"); /* the salt of the key is evidence if the session stands before it */
    key(s, "room#1");
    payload(s, "{\"sessionId\":\"room\",\"globalSeq\":17}");
    check_sequenced(s, "room", 17, 1, 4);
    CHECK_U64(s->in.since, 0);
    key(s, "other#1");
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
    s = scene("seq.source=json");
    payload(s, "{\"globalSeq\":18446744073709551614,\"sessionId\":12}");
    check_sequenced(s, "12", UINT64_MAX - 1, 0, 0);
    done(s);
}

TEST(extract, a_json_id_with_escapes_is_borrowed) {
    struct scene *s = scene("");
    payload(s, "{\"sessionId\":\"r\\u00f6om\",\"globalSeq\":17}");
    check_sequenced(s, "r\xc3\xb6om", 17, 0, 0);
    CHECK(s->borrowed);
    done(s);
}

TEST(extract, a_json_sequence_with_the_session_in_the_key) {
    struct scene *s = scene("lanes=4");
    key(s, "room#1");
    payload(s, "{\"globalSeq\":17}");
    check_sequenced(s, "room", 17, 1, 4);
    done(s);
    s = scene("session.json= lanes=4");
    key(s, "room#1");
    payload(s, "{\"sessionId\":\"other\",\"globalSeq\":17}");
    check_sequenced(s, "room", 17, 1, 4);
    done(s);
}

TEST(extract, headers_go_before_json) {
    struct scene *s = scene("");
    key(s, "room");
    payload(s, "{\"sessionId\":\"other\",\"globalSeq\":17}");
    header(s, "seq", "3", -1);
    check_sequenced(s, "room", 3, 0, 0);
    done(s);
    s = scene("seq.source=json");
    key(s, "room");
    payload(s, "{\"sessionId\":\"other\",\"globalSeq\":17}");
    header(s, "seq", "3", -1);
    check_sequenced(s, "other", 17, 0, 0);
    done(s);
    s = scene(""); /* without a key the payload may know the session */
    payload(s, "{\"sessionId\":\"other\"}");
    header(s, "seq", "3", -1);
    check_sequenced(s, "other", 3, 0, 0);
    done(s);
}

/* With `auto` a plain topic is no fault; with `json` every record should have a sequence. */
TEST(extract, records_without_a_sequence) {
    static const struct {
        const char *payload, *fault;
    } cases[] = {
        {"plain text", "not a JSON object"},
        {"", "not a JSON object"},
        {"[1,2]", "not a JSON object"},
        {"{\"globalSeq\":17", "not a JSON object"},
        {"{\"sessionId\":\"room\"}", "missing"},
        {NULL, "without a payload"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene *s = scene("");
        key(s, "room");
        payload(s, cases[i].payload);
        check_unsequenced(s, NULL);
        done(s);
        s = scene("seq.source=json");
        key(s, "room");
        payload(s, cases[i].payload);
        check_unsequenced(s, cases[i].fault);
        done(s);
    }
}

TEST(extract, other_sources_are_not_looked_at) {
    struct scene *s = scene("seq.source=unsalt");
    key(s, "room");
    payload(s, "{\"globalSeq\":17}");
    header(s, "seq", "3", -1);
    check_unsequenced(s, NULL);
    done(s);
    s = scene("seq.source=header");
    key(s, "room");
    payload(s, "{\"globalSeq\":17}");
    header(s, UNSALT_HEADER_NAME, "rubbish", -1);
    check_unsequenced(s, NULL);
    done(s);
}

/* A sign of a sequence that can't be used is a fault also with `auto`. */
TEST(extract, impossible_json_numbers) {
    static const char *const payloads[] = {
        "{\"globalSeq\":\"17\"}", "{\"globalSeq\":-1}",   "{\"globalSeq\":1.5}",
        "{\"globalSeq\":1e3}",    "{\"globalSeq\":null}", "{\"globalSeq\":18446744073709551615}",
    };
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        struct scene *s = scene("");
        key(s, "room");
        payload(s, payloads[i]);
        check_unsequenced(s, "sequence");
        done(s);
    }
}

TEST(extract, json_over_the_limit_of_tokens_is_told) {
    char text[4096] = "{\"a\":[";
    for (int i = 0; i < 100; i++)
        strcat(text, "1,");
    strcat(text, "1],\"globalSeq\":1}");
    struct scene *s = scene("json.tokens.max=50");
    key(s, "room");
    payload(s, text);
    check_unsequenced(s, "limit");
    done(s);
}

TEST(extract, json_nested_10000_deep) {
    enum { DEPTH = 10000 };
    char *text = malloc(2 * DEPTH + 64);
    CHECK(text);
    size_t n = (size_t)sprintf(text, "{\"globalSeq\":5,\"x\":");
    memset(text + n, '[', DEPTH);
    memset(text + n + DEPTH, ']', DEPTH);
    strcpy(text + n + 2 * DEPTH, "}");
    struct scene *s = scene("");
    key(s, "room");
    payload(s, text);
    check_unsequenced(s, "nesting");
    text[n + DEPTH] = '\0'; /* cut off */
    payload(s, text);
    check_unsequenced(s, "nesting");
    text[0] = '['; /* no object, so nothing was missed in it */
    check_unsequenced(s, NULL);
    done(s);
    free(text);
}

TEST(extract, sessions_that_cannot_be) {
    struct scene *s = scene("");
    header(s, "seq", "3", -1);
    check_unsequenced(s, "without a key");
    key(s, "");
    check_unsequenced(s, "empty");
    done(s);
    s = scene("");
    key(s, "room");
    payload(s, "{\"sessionId\":\"\",\"globalSeq\":17}");
    check_unsequenced(s, "empty");
    payload(s, "{\"sessionId\":[1],\"globalSeq\":17}");
    check_unsequenced(s, "session");
    done(s);
}

TEST(extract, a_session_id_of_1_mib) {
    enum { SIZE = 1 << 20 };
    char *id = malloc(SIZE + 1);
    CHECK(id);
    memset(id, 's', SIZE);
    id[SIZE] = '\0';
    struct scene *s = scene("");
    key(s, id);
    header(s, "seq", "3", -1);
    check_unsequenced(s, "session.id.max");
    id[256] = '\0'; /* the longest that is allowed */
    key(s, id);
    check_sequenced(s, id, 3, 0, 0);
    done(s);
    free(id);
}

TEST(extract, only_the_time_of_creation_is_taken) {
    struct scene *s = scene("");
    s->record.time_type = RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME;
    run(s);
    CHECK_I64(s->in.timestamp, -1);
    s->record.time_type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    run(s);
    CHECK_I64(s->in.timestamp, -1);
    done(s);
}

TEST(extract, pinned_bytes_do_not_overflow) {
    rd_kafka_message_t message = {.len = SIZE_MAX / 2, .key_len = 3};
    CHECK_U64(us_pinned_bytes(&message), UINT32_MAX);
}

/* In lane topics the partition knows the lane, and S is the most there may be. */
TEST(extract, lane_topics_leave_the_lane_open) {
    static const char *const settings[] = {"layout=topics partitions=3 lane.topics=a,b,c",
                                           "layout=topics partitions=3 lanes=3",
                                           "layout=topics partitions=3 lanes=3 salt.trust=true"};
    for (int i = 0; i < 3; i++) {
        struct scene *s = scene(settings[i]);
        key(s, i == 2 ? "room#2" : "room");
        header(s, "seq", "5", -1);
        check_sequenced(s, "room", 5, 0, 0);
        CHECK_U64(s->in.since, UNSALT_NO_SEQ);
        done(s);
    }
}

TEST(extract, lanes_of_raw_keys_are_unknown) {
    struct scene *s = scene("lanes=4");
    key(s, "room");
    header(s, "seq", "5", -1);
    check_sequenced(s, "room", 5, 0, 0);
    CHECK_U64(s->in.since, 0);
    done(s);
    s = scene("lanes=4 salt.trust=true"); /* stripped, but it doesn't fit S */
    key(s, "room#7");
    header(s, "seq", "5", -1);
    check_sequenced(s, "room", 5, 0, 0);
    CHECK_U64(s->in.since, 0);
    done(s);
    s = scene("lanes=1"); /* where there is one lane, every session has one */
    key(s, "room");
    header(s, "seq", "5", -1);
    check_sequenced(s, "room", 5, 0, 1);
    CHECK_U64(s->in.since, 0);
    done(s);
}

static bool no_memory;

static void *scarce_alloc(void *opaque, size_t size) {
    (void)opaque;
    return no_memory ? NULL : malloc(size);
}

static void *scarce_realloc(void *opaque, void *p, size_t size) {
    (void)opaque;
    return no_memory ? NULL : realloc(p, size);
}

static void scarce_free(void *opaque, void *p) {
    (void)opaque;
    free(p);
}

/* A record that couldn't be looked through for want of memory is not one without a sequence. */
TEST(extract, out_of_memory_is_told_apart) {
    char text[16384] = "{\"a\":[";
    for (int i = 0; i < 2000; i++)
        strcat(text, "1,");
    strcat(text, "1],\"globalSeq\":1,\"sessionId\":\"room\"}");
    struct unsalt_mem mem = {.alloc = scarce_alloc, .resize = scarce_realloc, .release = scarce_free};
    struct scene *s = scene("");
    us_json_destroy(s->extractor.json);
    s->extractor.json = us_json_new(&mem, "globalSeq", "sessionId", 65536);
    payload(s, text);
    no_memory = true;
    run(s);
    CHECK(s->fault == us_extract_nomem);
    no_memory = false;
    check_sequenced(s, "room", 1, 0, 0);
    done(s);
}

/* A block carries lanes of hot sessions and any cold one, so only a header tells; keys carry no salt. */
TEST(extract, blocks_never_assume_lanes) {
    struct scene *s = scene("layout=block partitions=6 lanes=3");
    key(s, "room#2");
    header(s, "seq", "5", -1);
    check_sequenced(s, "room#2", 5, 0, 0);
    CHECK_U64(s->in.since, 0);
    stamp(s, (unsalt_header_t){.lane = 2, .lanes = 3, .seq = 5, .since = 4, .una = 4});
    check_sequenced(s, "room#2", 5, 2, 3);
    CHECK_U64(s->in.since, 4);
    done(s);
    s = scene("layout=block partitions=6 lanes=3 salt.trust=true"); /* stripped, but it tells no lane */
    key(s, "room#2");
    header(s, "seq", "5", -1);
    check_sequenced(s, "room", 5, 0, 0);
    CHECK_U64(s->in.since, 0);
    done(s);
    s = scene("layout=block partitions=6 lanes=1");
    key(s, "room");
    header(s, "seq", "5", -1);
    check_sequenced(s, "room", 5, 0, 1);
    done(s);
}
