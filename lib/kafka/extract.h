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
    uint16_t lanes;                 /* S of the configuration; 0 = unknown */
    bool keep_headers;              /* the application has the message: leave its parsed headers alone */
};

/* Returns false with errstr (out of memory, or a pattern that doesn't parse): nothing is left to destroy. */
bool us_extractor_init(struct us_extractor *x, const struct unsalt_conf *conf, char *errstr, size_t size);
void us_extractor_destroy(struct us_extractor *x);

/*
 * Fills session, session_len, seq, epoch, since, una, timestamp, offset, lane, lanes, flags, kind, msg and bytes of
 * `in` (not `part`). `session` points into the message; only if *session_borrowed is set true it points into the
 * extractor, and must be consumed or copied before the next us_extract().
 *
 * The session of a record whose sequence is in its payload: the JSON field, else the key without its salt. Of one
 * whose sequence is in a header: the key without its salt; without a key, the JSON field. In layout `topics` keys
 * carry no salt unless salt.trust says so: the lane is the topic.
 *
 * Lanes are those of the header. A record without one, with a configured S: in layout `hash` `lanes` is S and `since`
 * 0 if its key is the session with the salt seq mod S, or if S is 1; else the session may be unsalted: `lanes` and
 * `since` are 0, and S must not be assumed. In layout `topics` `lanes` is 0 and `since` UNSALT_NO_SEQ: the lane is that
 * of the partition.
 *
 * Returns us_extract_nomem when out of memory: the record wasn't looked through and should be tried again. Otherwise
 * returns NULL, or the text of what is wrong with a record that should have a sequence (kind is UNSEQUENCED then,
 * and the caller raises MALFORMED). With seq.source=json every record should have one; with the others a record
 * without any sign of a sequence is UNSEQUENCED without a fault. One thread at a time.
 */
extern const char us_extract_nomem[];
const char *us_extract(struct us_extractor *x, const rd_kafka_message_t *message, unsalt_core_in_t *in,
                       bool *session_borrowed);

/* Estimate of the memory that a held message pins: payload, key, and librdkafka's own around them. */
uint32_t us_pinned_bytes(const rd_kafka_message_t *message);
#endif
