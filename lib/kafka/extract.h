/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a message to what the core needs to know: session, sequence, lane. Only translates; meaning stands in codec/.
 */
#ifndef US_KAFKA_EXTRACT_H
#define US_KAFKA_EXTRACT_H
#include <codec/json.h>
#include <kafka/conf.h>
#include <librdkafka/rdkafka.h>

struct us_extractor {
    const struct unsalt_conf *conf; /* borrowed */
    struct us_salt_pattern pattern;
    struct us_json *json;           /* owned; NULL if no source needs it */
    char *named;                    /* owned: the id in the last record's session header; NULL without session.header */
    uint16_t lanes;                 /* S of the configuration; 0 = unknown */
    /*
     * The record behind the one that is looked at, as it came from the same queue; alive. NULL: unknown. With it a
     * header can be read where it stands, see extract_headers.c.
     */
    const rd_kafka_message_t *next;
    bool keep_headers;              /* the application has the message: leave its parsed headers alone */
};

/* Returns false with errstr (out of memory, or a pattern that doesn't parse): nothing is left to destroy. */
bool us_extractor_init(struct us_extractor *x, const struct unsalt_conf *conf, char *errstr, size_t size);
void us_extractor_destroy(struct us_extractor *x);

/*
 * Fills session, session_len, seq, epoch, since, una, timestamp, offset, lane, lanes, flags, kind, msg and bytes of
 * `in` (not `part`). `session` points into the key or payload of the message; only if *session_borrowed is set true it
 * points elsewhere, and must be consumed or copied before the next us_extract().
 *
 * The session is, by precedence: what the callback says; the header `session.header`; for a sequence in the payload,
 * or a record without a key, the JSON field; the key, without a trailer that the sequence was read from, and without
 * its salt. In the layouts `topics` and `block` keys carry no salt unless salt.trust says so.
 *
 * Lanes are those of the `unsalt` header, or the callback's (then `since` is the record's own number). A record with
 * neither, with a configured S: in layout `hash` `lanes` is S and `since` 0 if its key is the session with the salt seq
 * mod S, or if S is 1; else the session may be unsalted: `lanes` and `since` are 0, and S must not be assumed. In
 * `block` S is only the most there may be, so the same holds, and a salt proves nothing. In layout `topics` `lanes` is
 * 0 and `since` UNSALT_NO_SEQ: the lane is that of the partition.
 *
 * Returns us_extract_nomem when out of memory: the record wasn't looked through and should be tried again. Otherwise
 * returns NULL, or the text of what is wrong with a record that should have a sequence: kind is MALFORMED then (of a
 * marker whose session can't be used CONTROL: it is never for the application), and the caller raises the event. With
 * seq.source=json every record should have one, with seq.source=key every one that has a key; with the others a record
 * without any sign of a sequence is UNSEQUENCED without a fault. One thread at a time.
 */
extern const char us_extract_nomem[];
const char *us_extract(struct us_extractor *x, const rd_kafka_message_t *message, unsalt_core_in_t *in,
                       bool *session_borrowed);

/*
 * The base key of a record without a sequence: how much of its key is not its salt. Without a number only salt.trust
 * is evidence for one. Any thread.
 */
uint32_t us_extract_base_key(const struct us_extractor *x, const rd_kafka_message_t *message);

/* Estimate of the memory that a held message pins: payload, key, and librdkafka's own around them. */
uint32_t us_pinned_bytes(const rd_kafka_message_t *message);
#endif
