/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers read where they stand, between a record and its neighbour in the batch; and when librdkafka is asked. */
#include <unit/fixture/record.h>

/* Two records as they lie in a batch: key, value length, value, headers, framing, key. */
struct batch {
    unsigned char *bytes; /* of its own, so that a sanitizer sees each look outside */
    size_t size;
    rd_kafka_message_t next;
};

static void append(struct batch *b, const void *bytes, size_t size) {
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

/* Lays the scene's record out, with one header, and puts its neighbour behind it. */
static struct batch lay(struct scene *s, const char *name, const void *value, size_t size) {
    struct batch b = {.bytes = calloc(1, 256)};
    unsigned char lengths[] = {2, (unsigned char)(2 * strlen(name)), (unsigned char)(2 * size)};
    size_t key_at = b.size, payload_at;
    append(&b, "room#3", 6);
    append(&b, "\x06", 1);
    payload_at = b.size;
    append(&b, "abc", 3);
    append(&b, lengths, 2);
    append(&b, name, strlen(name));
    append(&b, lengths + 2, 1);
    append(&b, value, size);
    append(&b, "\xd8\x04\x00\x0e\x04\x0c", 6);
    b.next.key_len = 6;
    append(&b, "room#0", 6);
    b.bytes = realloc(b.bytes, b.size);
    b.next.key = b.bytes + b.size - 6;
    key_bytes(s, b.bytes + key_at, 6);
    s->record.message.payload = b.bytes + payload_at;
    s->record.message.len = 3;
    return b;
}

static struct batch lay_stamped(struct scene *s, unsalt_header_t fields) {
    unsigned char bytes[UNSALT_HEADER_SIZE];
    CHECK(unsalt_header_write(&fields, bytes) == UNSALT_HEADER_OK);
    stamp(s, fields); /* what librdkafka would tell */
    return lay(s, UNSALT_HEADER_NAME, bytes, sizeof bytes);
}

static const unsalt_header_t third = {.lane = 3, .lanes = 4, .epoch = 9, .seq = 7, .since = 2, .una = 5,
                                      .flags = UNSALT_F_RESEND};

TEST(extract_place, the_header_is_read_where_it_stands) {
    struct scene *s = scene("seq.source=unsalt");
    struct batch b = lay_stamped(s, third);
    unsalt_core_in_t asked;
    check_sequenced(s, "room", 7, 3, 4);
    CHECK_U64(parsed, 1);
    asked = s->in;
    s->extractor.next = &b.next;
    check_sequenced(s, "room", 7, 3, 4);
    CHECK_U64(parsed, 1);
    CHECK(memcmp(&asked, &s->in, sizeof asked) == 0);
    free(b.bytes);
    done(s);
}

TEST(extract_place, a_plain_one_as_well) {
    struct scene *s = scene("salt.trust=true");
    struct batch b = lay(s, "seq", "4711", 4);
    s->extractor.next = &b.next;
    check_sequenced(s, "room", 4711, 0, 0);
    CHECK_U64(parsed, 0);
    free(b.bytes);
    done(s);
}

TEST(extract_place, a_malformed_one_is_told) {
    struct scene *s = scene("seq.source=unsalt");
    struct batch b = lay(s, UNSALT_HEADER_NAME, "short", 5);
    s->extractor.next = &b.next;
    check_unsequenced(s, "shorter");
    CHECK_U64(parsed, 0);
    free(b.bytes);
    done(s);
}

/* Whatever is not as it should be: librdkafka is asked, and right. */
TEST(extract_place, in_doubt_librdkafka_is_asked) {
    struct scene *s = scene("seq.source=unsalt");
    struct batch b = lay_stamped(s, third);
    rd_kafka_message_t elsewhere = b.next, wrong = b.next, failed = b.next, keyless = b.next;
    elsewhere.key = s->record.message.key; /* in front of it */
    wrong.key_len = 5;
    failed.err = RD_KAFKA_RESP_ERR__PARTITION_EOF;
    keyless.key = NULL;
    const rd_kafka_message_t *others[] = {NULL, &elsewhere, &wrong, &failed, &keyless};
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
        s->extractor.next = others[i];
        check_sequenced(s, "room", 7, 3, 4);
        CHECK_U64(parsed, i + 1);
    }
    free(b.bytes);
    done(s);
}

/* A session header is one more that must be found. */
TEST(extract_place, with_a_session_header_librdkafka_is_asked) {
    struct scene *s = scene("seq.source=unsalt session.header=who");
    struct batch b = lay_stamped(s, third);
    header(s, "who", "kitchen", -1);
    s->extractor.next = &b.next;
    check_sequenced(s, "kitchen", 7, 3, 4);
    CHECK_U64(parsed, 1);
    free(b.bytes);
    done(s);
}
