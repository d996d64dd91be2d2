/* SPDX-License-Identifier: BSD-2-Clause */
/* What the application's callback says, and that nothing it says can do harm. */
#include <unit/fixture/record.h>

/* What the callback answers, and what it was given. */
static unsalt_extract_t answer;
static int result;
static unsigned calls;
static unsalt_extract_t given;
static const rd_kafka_message_t *seen;

static unsalt_extract_res_t extract(void *opaque, const rd_kafka_message_t *message, unsalt_extract_t *found) {
    CHECK(opaque == &answer);
    calls++;
    given = *found;
    seen = message;
    size_t size = found->size;
    *found = answer;
    found->size = size;
    return (unsalt_extract_res_t)result;
}

static struct scene *asking(const char *settings, int res, unsalt_extract_t says) {
    struct scene *s = scene(settings);
    result = res;
    answer = says;
    unsalt_conf_set_extract_cb(s->conf, extract, &answer);
    key(s, "room");
    return s;
}

#define SOURCE "seq.source=callback"

TEST(extract_callback, it_begins_with_nothing_known) {
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_FOUND, (unsalt_extract_t){.seq = 17});
    check_sequenced(s, "room", 17, 0, 0);
    CHECK_U64(calls, 1);
    CHECK(seen == &s->record.message);
    CHECK_U64(given.size, sizeof given);
    CHECK(!given.session && given.session_len == 0 && !given.fault);
    CHECK(given.seq == UNSALT_NO_SEQ && given.epoch == 0 && given.lane == 0 && given.lanes == 0 && given.flags == 0);
    CHECK_U64(s->in.since, UNSALT_NO_SEQ);
    CHECK_U64(parsed, 0);
    done(s);
}

TEST(extract_callback, every_field_is_taken) {
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_FOUND,
                             (unsalt_extract_t){.seq = 17, .epoch = 9, .lane = 1, .lanes = 4,
                                                .flags = UNSALT_F_FIRST | UNSALT_F_LAST});
    key(s, "room#1"); /* its lane is evidence for the salt */
    check_sequenced(s, "room", 17, 1, 4);
    CHECK_U64(s->in.epoch, 9);
    CHECK_U64(s->in.flags, UNSALT_F_FIRST | UNSALT_F_LAST);
    CHECK_U64(s->in.since, 17); /* S of this record, nothing is said of others */
    CHECK_U64(s->in.una, UNSALT_NO_SEQ);
    key(s, "room#3");
    check_sequenced(s, "room#3", 17, 1, 4);
    done(s);
    s = asking(SOURCE, UNSALT_EXTRACT_FOUND, (unsalt_extract_t){.seq = UINT64_MAX - 1, .lane = 7});
    check_sequenced(s, "room", UINT64_MAX - 1, 0, 0); /* a lane without lanes says nothing */
    done(s);
}

/* Lanes that it doesn't tell are those of any plain sequence. */
TEST(extract_callback, lanes_it_does_not_tell) {
    struct scene *s = asking(SOURCE " lanes=4", UNSALT_EXTRACT_FOUND, (unsalt_extract_t){.seq = 17});
    key(s, "room#1");
    check_sequenced(s, "room", 17, 1, 4);
    CHECK_U64(s->in.since, 0);
    key(s, "room");
    check_sequenced(s, "room", 17, 0, 0);
    CHECK_U64(s->in.since, 0);
    done(s);
    s = asking(SOURCE " lanes=4", UNSALT_EXTRACT_FOUND, (unsalt_extract_t){.seq = 17, .lane = 1, .lanes = 8});
    check_sequenced(s, "room", 17, 1, 8);
    CHECK_U64(s->in.since, 17);
    done(s);
}

TEST(extract_callback, the_session_it_tells) {
    static const char elsewhere[] = "other";
    static char text[] = "the room is here";
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_FOUND,
                             (unsalt_extract_t){.seq = 1, .session = elsewhere, .session_len = 5});
    check_sequenced(s, "other", 1, 0, 0);
    CHECK(s->borrowed && s->in.session == elsewhere);
    s->record.message.payload = text;
    s->record.message.len = 16;
    answer.session = text + 4;
    answer.session_len = 4;
    check_sequenced(s, "room", 1, 0, 0);
    CHECK(!s->borrowed);
    answer.session_len = 12; /* up to the last byte */
    check_sequenced(s, "room is here", 1, 0, 0);
    CHECK(!s->borrowed);
    key_bytes(s, text, 8);
    s->record.message.payload = NULL;
    s->record.message.len = 0;
    answer.session_len = 4;
    check_sequenced(s, "room", 1, 0, 0);
    CHECK(!s->borrowed);
    done(s);
}

/* A borrowed id of one record must not leave a mark on the next. */
TEST(extract_callback, borrowed_is_said_per_record) {
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_FOUND,
                             (unsalt_extract_t){.seq = 1, .session = "other", .session_len = 5});
    check_sequenced(s, "other", 1, 0, 0);
    CHECK(s->borrowed);
    answer.session = NULL;
    answer.session_len = 0;
    check_sequenced(s, "room", 1, 0, 0);
    CHECK(!s->borrowed);
    done(s);
}

static void check_nonsense(unsalt_extract_t says, const char *fault) {
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_FOUND, says);
    check_unsequenced(s, fault);
    done(s);
}

TEST(extract_callback, nonsense_is_malformed) {
    static char far[4097];
    static const unsalt_extract_t untouched = {.seq = UNSALT_NO_SEQ};
    check_nonsense(untouched, "no sequence");
    check_nonsense((unsalt_extract_t){.seq = 5, .lane = 4, .lanes = 4}, "not below lanes");
    check_nonsense((unsalt_extract_t){.seq = 5, .lane = 65535, .lanes = 1}, "not below lanes");
    check_nonsense((unsalt_extract_t){.seq = 5, .lane = 2, .lanes = 4}, "seq mod lanes");
    check_nonsense((unsalt_extract_t){.seq = 5, .flags = UNSALT_F_MARKER}, "flags");
    check_nonsense((unsalt_extract_t){.seq = 5, .flags = UNSALT_F_HEARTBEAT}, "flags");
    check_nonsense((unsalt_extract_t){.seq = 5, .flags = UNSALT_F_LAST | 0x8000}, "flags");
    check_nonsense((unsalt_extract_t){.seq = 5, .session = "s", .session_len = 0}, "empty session");
    check_nonsense((unsalt_extract_t){.seq = 5, .session = NULL, .session_len = 3}, "no session");
    check_nonsense((unsalt_extract_t){.seq = 5, .session = far, .session_len = 257}, "session.id.max");
    check_nonsense((unsalt_extract_t){.seq = 5, .session = far, .session_len = SIZE_MAX}, "session.id.max");
}

TEST(extract_callback, a_session_that_ends_behind_the_message) {
    static char text[] = "room";
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_FOUND,
                             (unsalt_extract_t){.seq = 1, .session = text + 2, .session_len = 3});
    s->record.message.payload = text;
    s->record.message.len = 4;
    check_unsequenced(s, "ends behind it");
    s->record.message.payload = NULL;
    s->record.message.len = 0;
    key_bytes(s, text, 4);
    check_unsequenced(s, "ends behind it");
    answer.session_len = 2;
    check_sequenced(s, "om", 1, 0, 0);
    done(s);
}

TEST(extract_callback, results) {
    static const int unknown[] = {-1, 3, 255, INT32_MAX, INT32_MIN};
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_NONE, (unsalt_extract_t){.seq = 5, .session = "x", .flags = 99});
    check_unsequenced(s, NULL); /* whatever stands in the fields */
    done(s);
    s = asking(SOURCE, UNSALT_EXTRACT_MALFORMED, (unsalt_extract_t){.seq = 5, .fault = "the moon is full"});
    check_unsequenced(s, "the moon is full");
    answer.fault = NULL;
    check_unsequenced(s, "calls it malformed");
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        result = unknown[i];
        check_unsequenced(s, "a value that it doesn't have");
    }
    done(s);
}

/* The last of the sources in `auto`, the only one with its own; not asked with others. */
TEST(extract_callback, its_place_among_the_sources) {
    const unsalt_extract_t says = {.seq = 17};
    struct scene *s = asking("seq.key=decimal seq.key.digits=2", UNSALT_EXTRACT_FOUND, says);
    check_sequenced(s, "room", 17, 0, 0);
    CHECK_U64(calls, 1);
    key(s, "room05");
    check_sequenced(s, "room", 5, 0, 0);
    payload(s, "{\"globalSeq\":3}");
    check_sequenced(s, "room05", 3, 0, 0);
    header(s, "seq", "7", -1);
    check_sequenced(s, "room05", 7, 0, 0);
    CHECK_U64(calls, 1);
    done(s);
    s = asking(SOURCE, UNSALT_EXTRACT_FOUND, says);
    payload(s, "{\"globalSeq\":3}");
    header(s, "seq", "7", -1);
    header(s, UNSALT_HEADER_NAME, "rubbish", -1);
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
    static const char *const others[] = {"seq.source=unsalt", "seq.source=header", "seq.source=json",
                                         "seq.source=key seq.key=decimal"};
    for (size_t i = 0; i < 4; i++) {
        s = asking(others[i], UNSALT_EXTRACT_FOUND, says);
        calls = 0;
        run(s);
        CHECK(calls == 0 && s->in.kind != UNSALT_KIND_SEQUENCED);
        done(s);
    }
    s = asking("", UNSALT_EXTRACT_MALFORMED, (unsalt_extract_t){.fault = "no"});
    check_unsequenced(s, "no");
    result = UNSALT_EXTRACT_NONE;
    check_unsequenced(s, NULL);
    done(s);
}

TEST(extract_callback, a_record_without_a_key) {
    struct scene *s = asking(SOURCE, UNSALT_EXTRACT_FOUND, (unsalt_extract_t){.seq = 17});
    key(s, NULL);
    check_unsequenced(s, "without a key");
    payload(s, "{\"sessionId\":\"other\"}");
    check_sequenced(s, "other", 17, 0, 0);
    answer.session = "mine";
    answer.session_len = 4;
    check_sequenced(s, "mine", 17, 0, 0);
    done(s);
}
