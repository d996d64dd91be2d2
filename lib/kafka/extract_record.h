/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One record that is being looked through. One file per place to look:
 *
 *   extract.c           the order of the sources; payload and key
 *   extract_headers.c   the `unsalt` header, the plain header, the session header
 *   extract_callback.c  what the application's callback says
 *   extract_session.c   which of several session ids counts, the salt, the lanes of records that don't tell them
 */
#ifndef US_KAFKA_EXTRACT_RECORD_H
#define US_KAFKA_EXTRACT_RECORD_H
#include <kafka/extract.h>

/* Where a record's sequence was found. */
enum us_place {
    US_NOWHERE,
    US_IN_HEADER,
    US_IN_PAYLOAD,
    US_IN_KEY,
    US_FROM_CALLBACK,
    US_UNREAD, /* out of memory */
    US_FAULTY  /* there is a sign of one, but unusable: `fault` says why */
};

struct us_record {
    struct us_extractor *x;
    const rd_kafka_message_t *message;
    unsalt_core_in_t *in;
    const char *fault;
    size_t key_len;             /* of the key without its trailer */
    const void *told;           /* session of the callback; NULL: it leaves that to others */
    uint32_t told_len, named_len; /* named: the id of the session header, in x->named; 0: there is none */
    const char *named_fault;    /* or what is wrong with it */
    bool headers_read;
    bool borrowed;              /* the session found stands neither in key nor payload */
    bool was_split;             /* the session is the key by `split` */
    struct us_salted_key split; /* on evidence alone, not on trust */
    struct us_json_found found; /* in the payload, if the sequence stands there; set only with x->json. Stands last */
};

/*
 * Looks for everything that is wanted of the headers, in one go, since a record's headers are parsed only once; call
 * it once. Returns US_IN_HEADER (in->lanes is above 0 for the `unsalt` header), US_NOWHERE or US_FAULTY.
 */
enum us_place us_record_headers(struct us_record *r);

/* Asks the callback. Returns US_FROM_CALLBACK, US_NOWHERE or US_FAULTY. Nothing that it says is trusted. */
enum us_place us_record_callback(struct us_record *r);

/* Fills the session. Returns NULL, or what is wrong, or us_extract_nomem. */
const char *us_record_session(struct us_record *r, enum us_place place);

/* Fills the lanes of a record that doesn't tell them; its session is found. */
void us_record_lanes(const struct us_record *r);
#endif
