/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waits to be sent again: records that librdkafka gave up, and gap markers for those that are abandoned. Both
 * are made from the message of a delivery report. They are bounded by what was in flight: while anything waits that
 * librdkafka's queue has no room for, new records are refused.
 */
#ifndef US_KAFKA_PRODUCER_AGAIN_H
#define US_KAFKA_PRODUCER_AGAIN_H
#include <kafka/producer_sessions.h>
#include <librdkafka/rdkafka.h>
#include <unsalt/wire.h>

/* One record or marker (sent->marker) that waits. Owned by the list it is in, or by who took it out. */
struct us_again {
    struct us_again *next;
    struct us_sent *sent;
    unsalt_header_t header;      /* a record's `una` is filled in when it is sent; a marker's is right for ever */
    rd_kafka_headers_t *headers; /* owned; NULL: none were kept */
    int64_t timestamp;           /* a record's creation time in ms; 0: now */
    int32_t partition;
    rd_kafka_resp_err_t err;     /* what became of the last attempt */
    const char *topic;
    void *key, *payload;         /* NULL: none */
    size_t key_len, len;
    const char *name;            /* of the session, to find neighbours of a marker; NULL: not known any more */
    size_t name_size;
    char bytes[];                /* what the pointers above point to */
};

/* Reads our header out of a delivery report's message. Returns false if it has none that is well formed. */
bool us_sent_header(const rd_kafka_message_t *message, unsalt_header_t *header);
/* Copies what is needed. Returns NULL: out of memory, or the message has no header of ours. */
struct us_again *us_again_make(const rd_kafka_message_t *message, struct us_sent *sent);
/* Takes the headers out of the message that it was made from: nobody else will see that. */
void us_again_take_headers(struct us_again *again, rd_kafka_message_t *message);
/* Turns a record, whose number is settled and whose session's una is given, into the marker of that number. */
void us_again_to_marker(struct us_again *again, uint64_t una);
void us_again_free(struct us_again *again);

struct us_agains {
    pthread_mutex_t lock;
    struct us_again *first, *last; /* records, in the order in which they failed */
    struct us_again *markers;      /* joined and in order if `joined` */
    bool joined;
    uint64_t records_at_ms;        /* no record is sent before: errors that come at once would come again at once */
    uint64_t markers_at_ms;        /* no marker is sent before: more of its neighbours may come */
    atomic_bool abandoning;        /* by some thread */
    atomic_uint_fast64_t waiting;  /* in the lists, or just taken out of them to be sent */
};

void us_agains_init(struct us_agains *agains);
void us_agains_destroy(struct us_agains *agains); /* nothing waits */

struct unsalt_producer;

/* All calls below: any thread, no lock held. Puts a record or marker into its list, and takes it. */
void us_again_keep(struct unsalt_producer *p, struct us_again *again);
/*
 * Sends what waits, and abandons what can't be sent: *told rises by the reports that the application got. Only one
 * thread abandons at a time, and not from within a report of that: their callbacks may poll. told NULL, from a produce
 * call: no report may go to the application, and it takes no longer than some milliseconds. Does nothing when the
 * producer is being destroyed. Returns NO_ERROR: nothing waits for room any more, or it is in the hands of other
 * threads; __QUEUE_FULL: something does, or records have a pause; __FATAL.
 */
rd_kafka_resp_err_t us_again_send(struct unsalt_producer *p, int *told);
/* In how many ms there will be something to send; 0: now, or other threads have it; UINT64_MAX: nothing waits. */
uint64_t us_again_due(struct unsalt_producer *p);
/* The producer is being destroyed: abandons all that waits; the application gets its reports. */
void us_again_abandon(struct unsalt_producer *p);

/* ---- producer_marker.c */

/* Joins markers of neighbouring numbers of the same session; those that are saved are put into *saved. */
struct us_again *us_markers_join(struct us_again *markers, struct us_again **saved);
#endif
