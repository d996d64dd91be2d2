/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <kafka/producer.h>
#include <kafka/producer_fate.h>
#include <string.h>

/* After an error that comes at once, not after a time-out. */
#define PAUSE_MS 100
/* librdkafka reports one partition after the other: so long a marker waits for its neighbours in other lanes. */
#define JOIN_MS 100
/* The most that one call to produce sends for others: some milliseconds of work. */
#define SENDS_MAX 1000

/* ---- one of them */

bool us_sent_header(const rd_kafka_message_t *message, unsalt_header_t *header) {
    rd_kafka_headers_t *headers;
    const void *value;
    size_t size;
    return !rd_kafka_message_headers(message, &headers) &&
           !rd_kafka_header_get_last(headers, UNSALT_HEADER_NAME, &value, &size) &&
           unsalt_header_read(value, size, header) == UNSALT_HEADER_OK;
}

/* A message with an error hides its timestamp; it is librdkafka's copy for this call, so it can be shown without. */
static int64_t timestamp_of(const rd_kafka_message_t *message) {
    rd_kafka_message_t *bare = (rd_kafka_message_t *)message;
    rd_kafka_resp_err_t err = bare->err;
    bare->err = RD_KAFKA_RESP_ERR_NO_ERROR;
    int64_t timestamp = rd_kafka_message_timestamp(bare, NULL);
    bare->err = err;
    return timestamp > 0 ? timestamp : 0;
}

/* Copies bytes to *at, which moves on. NULL stays NULL. */
static void *put(char **at, const void *bytes, size_t size) {
    char *copy = *at;
    if (!bytes)
        return NULL;
    if (size)
        memcpy(copy, bytes, size);
    *at += size;
    return copy;
}

struct us_again *us_again_make(const rd_kafka_message_t *message, struct us_sent *sent) {
    const char *topic = rd_kafka_topic_name(message->rkt);
    size_t topic_size = strlen(topic) + 1, name_size = 0;
    const void *name = sent->sender ? us_sent_name(sent, &name_size) : NULL;
    unsalt_header_t header;
    if (!us_sent_header(message, &header))
        return NULL;
    struct us_again *again = us_alloc(
        &us_mem_default, sizeof *again + topic_size + message->key_len + message->len + name_size);
    if (!again)
        return NULL;
    char *at = again->bytes;
    *again = (struct us_again){
        .sent = sent,
        .header = header,
        .timestamp = timestamp_of(message),
        .partition = message->partition,
        .err = message->err,
        .topic = put(&at, topic, topic_size),
        .key = put(&at, message->key, message->key_len),
        .key_len = message->key_len,
        .payload = put(&at, message->payload, message->len),
        .len = message->len,
        .name = put(&at, name, name_size),
        .name_size = name_size,
    };
    if (!sent->marker)
        again->header.flags |= UNSALT_F_RESEND;
    return again;
}

void us_again_take_headers(struct us_again *again, rd_kafka_message_t *message) {
    rd_kafka_message_detach_headers(message, &again->headers);
}

void us_again_to_marker(struct us_again *again, uint64_t una) {
    static char text[] = "gap"; /* not empty: a compacted lane would take it for a tombstone */
    again->header.flags = UNSALT_F_MARKER;
    again->header.since = again->header.seq;
    again->header.una = una;
    again->payload = text;
    again->len = sizeof text - 1;
    again->timestamp = 0;
    again->sent->marker = true;
    again->sent->maybe = false;
    again->sent->failed_at_ms = 0;
}

void us_again_free(struct us_again *again) {
    if (again->headers)
        rd_kafka_headers_destroy(again->headers);
    us_free(&us_mem_default, again);
}

/* ---- the lists */

void us_agains_init(struct us_agains *agains) {
    memset(agains, 0, sizeof *agains);
    pthread_mutex_init(&agains->lock, NULL);
}

void us_agains_destroy(struct us_agains *agains) {
    pthread_mutex_destroy(&agains->lock);
}

static bool is_time_out(rd_kafka_resp_err_t err) {
    return err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || err == RD_KAFKA_RESP_ERR__TIMED_OUT ||
           err == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE;
}

/* The lists are locked. */
static void add_marker(struct us_agains *all, struct us_again *again) {
    if (!all->markers)
        all->markers_at_ms = us_clock_ms() + JOIN_MS;
    again->next = all->markers;
    all->markers = again;
    all->joined = false;
}

static void add_record(struct us_agains *all, struct us_again *again) {
    if (us_fate_is_passing(again->err) && !is_time_out(again->err))
        all->records_at_ms = us_clock_ms() + PAUSE_MS;
    again->next = NULL;
    *(all->last ? &all->last->next : &all->first) = again;
    all->last = again;
}

void us_again_keep(struct unsalt_producer *p, struct us_again *again) {
    struct us_agains *all = &p->agains;
    pthread_mutex_lock(&all->lock);
    if (again->sent->marker)
        add_marker(all, again);
    else
        add_record(all, again);
    atomic_fetch_add(&all->waiting, 1);
    pthread_mutex_unlock(&all->lock);
}

static struct us_again *take_record(struct us_agains *all) {
    struct us_again *again = all->first;
    all->first = again->next;
    all->last = all->first ? all->last : NULL;
    return again;
}

/* The markers that joining saved go to *saved. */
static struct us_again *take_marker(struct us_agains *all, struct us_again **saved) {
    if (!all->joined)
        all->markers = us_markers_join(all->markers, saved);
    all->joined = true;
    struct us_again *again = all->markers;
    all->markers = again->next;
    return again;
}

/* Markers that are not needed any more. */
static void drop_markers(struct unsalt_producer *p, struct us_again *markers) {
    while (markers) {
        struct us_again *again = markers;
        struct us_shard *shard = again->sent->shard;
        markers = again->next;
        pthread_mutex_lock(&shard->lock);
        us_shard_release(shard, again->sent);
        pthread_mutex_unlock(&shard->lock);
        us_again_free(again);
        atomic_fetch_sub(&p->agains.waiting, 1);
        atomic_fetch_sub(&p->open, 1);
    }
}

/* Takes the next one whose time has come: records before markers. NULL: there is none, or records have a pause. */
static struct us_again *take(struct unsalt_producer *p, uint64_t now, bool *paused) {
    struct us_agains *all = &p->agains;
    struct us_again *again = NULL, *saved = NULL;
    pthread_mutex_lock(&all->lock);
    *paused = all->first && now < all->records_at_ms;
    if (all->first && !*paused)
        again = take_record(all);
    else if (!*paused && all->markers && now >= all->markers_at_ms)
        again = take_marker(all, &saved);
    pthread_mutex_unlock(&all->lock);
    drop_markers(p, saved);
    return again;
}

static void put_back(struct us_agains *all, struct us_again *again) {
    pthread_mutex_lock(&all->lock);
    struct us_again **list = again->sent->marker ? &all->markers : &all->first;
    again->next = *list;
    *list = again;
    if (!again->sent->marker && !all->last)
        all->last = again;
    pthread_mutex_unlock(&all->lock);
}

uint64_t us_again_due(struct unsalt_producer *p) {
    struct us_agains *all = &p->agains;
    uint64_t now = us_clock_ms(), at = 0;
    if (atomic_load(&all->waiting) == 0)
        return UINT64_MAX;
    pthread_mutex_lock(&all->lock);
    if (all->first)
        at = all->records_at_ms;
    else if (all->markers)
        at = all->markers_at_ms;
    pthread_mutex_unlock(&all->lock);
    return at > now ? at - now : 0;
}

/* ---- sending */

static rd_kafka_resp_err_t enqueue(struct unsalt_producer *p, const struct us_again *again) {
    const struct us_outgoing out = {again->topic,   again->partition, again->key,       again->payload, again->key_len,
                                    again->len,     again->headers,   again->timestamp, &again->header};
    return us_enqueue(p, &out, again->sent);
}

/* In one step, as for a new record: a later one of its lane may not overtake it with a higher `una`. */
static rd_kafka_resp_err_t stamp_and_enqueue(struct unsalt_producer *p, struct us_again *again) {
    struct us_shard *shard = again->sent->shard;
    pthread_mutex_lock(&shard->lock);
    again->header.una = us_shard_una(again->sent);
    rd_kafka_resp_err_t err = enqueue(p, again);
    pthread_mutex_unlock(&shard->lock);
    return err;
}

/* On success `again` is gone, and its delivery report may have come already. */
static rd_kafka_resp_err_t send_one(struct unsalt_producer *p, struct us_again *again) {
    bool marker = again->sent->marker;
    if (us_is_purged(p, again->sent))
        return RD_KAFKA_RESP_ERR__PURGE_QUEUE;
    if (!again->headers)
        again->headers = rd_kafka_headers_new(1);
    rd_kafka_resp_err_t err = marker ? enqueue(p, again) : stamp_and_enqueue(p, again);
    if (err)
        return err;
    again->headers = NULL;
    us_again_free(again);
    atomic_fetch_sub(&p->agains.waiting, 1);
    if (!marker)
        atomic_fetch_add(&p->resent, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Returns the number of reports that the application got: 1 for a record. */
static int abandon(struct unsalt_producer *p, struct us_again *again, rd_kafka_resp_err_t err) {
    again->next = NULL;
    if (again->sent->marker) {
        drop_markers(p, again);
        return 0;
    }
    us_report_waiting(p, again, err);
    atomic_fetch_sub(&p->agains.waiting, 1);
    return 1;
}

/* Returns false, and does nothing, while another one is being abandoned, of which this may be a callback. */
static bool abandon_alone(struct unsalt_producer *p, struct us_again *again, rd_kafka_resp_err_t err, int *told) {
    bool busy = false;
    if (!atomic_compare_exchange_strong(&p->agains.abandoning, &busy, true))
        return false;
    *told += abandon(p, again, err);
    atomic_store(&p->agains.abandoning, false);
    return true;
}

/* Is it an error of this record, that waiting doesn't cure? */
static bool is_lasting(rd_kafka_resp_err_t err) {
    return err != RD_KAFKA_RESP_ERR__QUEUE_FULL && !us_fate_is_passing(err);
}

rd_kafka_resp_err_t us_again_send(struct unsalt_producer *p, int *told) {
    struct us_again *again;
    bool paused = false;
    if (atomic_load(&p->agains.waiting) == 0 || atomic_load(&p->closing))
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    uint64_t now = us_clock_ms();
    for (int sends = 0; (again = take(p, now, &paused)) != NULL; sends++) {
        rd_kafka_resp_err_t err = !told && sends == SENDS_MAX ? RD_KAFKA_RESP_ERR__QUEUE_FULL : send_one(p, again);
        if (!err || (told && is_lasting(err) && abandon_alone(p, again, err, told)))
            continue;
        put_back(&p->agains, again);
        return err == RD_KAFKA_RESP_ERR__FATAL ? err : RD_KAFKA_RESP_ERR__QUEUE_FULL;
    }
    return paused ? RD_KAFKA_RESP_ERR__QUEUE_FULL : RD_KAFKA_RESP_ERR_NO_ERROR;
}

void us_again_abandon(struct unsalt_producer *p) {
    struct us_again *again;
    bool paused;
    while ((again = take(p, UINT64_MAX, &paused)) != NULL)
        abandon(p, again, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
}
