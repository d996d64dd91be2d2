/* SPDX-License-Identifier: BSD-2-Clause */
/* A sequence at the end of the record key: session id, salt if any, trailer. */
#include <unit/fixture/record.h>

#define DECIMAL "seq.source=key seq.key=decimal"
#define BINARY "seq.source=key seq.key=binary"

TEST(extract_key, decimal_and_binary) {
    struct scene *s = scene(DECIMAL);
    key(s, "room00000000000000000017");
    check_sequenced(s, "room", 17, 0, 0);
    CHECK(s->in.session == s->record.message.key && !s->borrowed);
    CHECK_U64(s->in.since, UNSALT_NO_SEQ);
    CHECK_U64(s->in.epoch, 0);
    CHECK_U64(parsed, 0); /* the point of it: no header is looked at */
    key(s, "room18446744073709551614");
    check_sequenced(s, "room", UINT64_MAX - 1, 0, 0);
    done(s);
    s = scene(DECIMAL " seq.key.digits=3");
    key(s, "room1017");
    check_sequenced(s, "room1", 17, 0, 0);
    done(s);
    s = scene(BINARY);
    key_bytes(s, "room\0\0\0\0\0\0\1\2", 12);
    check_sequenced(s, "room", 258, 0, 0);
    done(s);
}

/* The salt is looked for in what is left of the key, by the rules for any plain sequence. */
TEST(extract_key, the_salt_stands_before_the_trailer) {
    struct scene *s = scene(DECIMAL " lanes=4 seq.key.digits=2");
    key(s, "room#117"); /* 17 mod 4 = 1 */
    check_sequenced(s, "room", 17, 1, 4);
    CHECK_U64(s->in.since, 0);
    key(s, "room#217");
    check_sequenced(s, "room#2", 17, 0, 0);
    key(s, "room17");
    check_sequenced(s, "room", 17, 0, 0);
    CHECK_U64(s->in.since, 0);
    done(s);
    s = scene(BINARY " lanes=4 salt.pattern=_SALT_<k>");
    key_bytes(s, "room_SALT_2\0\0\0\0\0\0\1\2", 19);
    check_sequenced(s, "room", 258, 2, 4);
    done(s);
    s = scene(DECIMAL " salt.trust=true");
    key(s, "room#900000000000000000017");
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
    s = scene(DECIMAL " layout=topics partitions=3 lanes=4");
    key(s, "room#100000000000000000017");
    check_sequenced(s, "room#1", 17, 0, 0);
    done(s);
}

TEST(extract_key, keys_that_have_no_trailer) {
    static const char *const keys[] = {"room", "0000000000000000017", "room0000000000000000001x",
                                       "room-0000000000000000017", "room 0000000000000000017", ""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct scene *s = scene(DECIMAL);
        key(s, keys[i]);
        check_unsequenced(s, "doesn't end with a sequence");
        done(s);
        s = scene("seq.key=decimal");
        key(s, keys[i]);
        check_unsequenced(s, NULL);
        done(s);
    }
    struct scene *s = scene(BINARY);
    key_bytes(s, "1234567", 7);
    check_unsequenced(s, "doesn't end with a sequence");
    key_bytes(s, "", 0);
    check_unsequenced(s, "doesn't end with a sequence");
    done(s);
}

/* Null keys pass through, also where every key should have a trailer. */
TEST(extract_key, no_key_is_no_fault) {
    static const char *const settings[] = {DECIMAL, BINARY, "seq.key=decimal", "seq.key=binary"};
    for (size_t i = 0; i < 4; i++) {
        struct scene *s = scene(settings[i]);
        check_unsequenced(s, NULL);
        payload(s, "{\"sessionId\":\"room\"}");
        check_unsequenced(s, NULL);
        done(s);
    }
}

TEST(extract_key, impossible_numbers) {
    static const char *const numbers[] = {"18446744073709551615", "18446744073709551616", "99999999999999999999"};
    static const char *const settings[] = {DECIMAL, "seq.key=decimal"};
    for (size_t i = 0; i < 6; i++) {
        char text[64] = "room";
        struct scene *s = scene(settings[i % 2]);
        key(s, strcat(text, numbers[i / 2]));
        check_unsequenced(s, "above 2^64 - 2");
        done(s);
    }
    struct scene *s = scene(BINARY);
    key_bytes(s, "room\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    check_unsequenced(s, "above 2^64 - 2");
    done(s);
}

TEST(extract_key, a_trailer_alone_names_no_session) {
    struct scene *s = scene(DECIMAL);
    key(s, "00000000000000000017");
    check_unsequenced(s, "empty");
    done(s);
    s = scene(BINARY " session.header=who");
    key_bytes(s, "\0\0\0\0\0\0\0\21", 8);
    header(s, "who", "room", -1);
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
}

TEST(extract_key, an_id_over_the_limit) {
    struct scene *s = scene(DECIMAL " session.id.max=4");
    key(s, "rooms00000000000000000017");
    check_unsequenced(s, "session.id.max");
    key(s, "room00000000000000000017");
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
}

/* In `auto` the key comes behind headers and payload, and only with seq.key. */
TEST(extract_key, its_place_among_the_sources) {
    struct scene *s = scene("seq.key=decimal seq.key.digits=2");
    key(s, "room17");
    check_sequenced(s, "room", 17, 0, 0);
    payload(s, "{\"globalSeq\":3}");
    check_sequenced(s, "room17", 3, 0, 0);
    payload(s, "{\"globalSeq\":\"3\"}");
    check_unsequenced(s, "not a number");
    header(s, "seq", "5", -1);
    check_sequenced(s, "room17", 5, 0, 0);
    done(s);
    s = scene("");
    key(s, "room00000000000000000017");
    check_unsequenced(s, NULL);
    done(s);
    s = scene(DECIMAL);
    key(s, "room00000000000000000017");
    payload(s, "{\"globalSeq\":3,\"sessionId\":\"other\"}");
    header(s, "seq", "5", -1);
    header(s, UNSALT_HEADER_NAME, "rubbish", -1);
    check_sequenced(s, "room", 17, 0, 0);
    done(s);
}
