/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers.h"
#include <codec/json.h>
#include <codec/key_trailer.h>
#include <codec/plain.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 1000, WAIT_MS = 20000 };

static const struct {
    const char *word, *text;
} readers[READER__CNT] = {
    [READER_POLL] = {"raw-poll", "rd_kafka_consumer_poll"},
    [READER_POLL_LOOK] = {"raw-poll-look", "rd_kafka_consumer_poll and the number read"},
    [READER_BATCH] = {"raw-batch", "rd_kafka_consume_batch_queue"},
    [READER_BATCH_LOOK] = {"raw-batch-look", "rd_kafka_consume_batch_queue and the number read"},
    [READER_SPLIT] = {"split", "a batch from each partition's queue in turns"},
    [READER_SPLIT_LOOK] = {"split-look", "a batch from each partition's queue in turns and the number read (floor)"},
    [READER_ORDERED_POLL] = {"poll", "unsalt_consumer_poll"},
    [READER_ORDERED_BATCH] = {"batch", "unsalt_consume_batch"},
    [READER_ORDERED_CALLBACK] = {"callback", "unsalt_consume_callback"},
    [READER_ORDERED_EXTRACT] = {"extract", "unsalt_consume_batch with an extract callback"},
};

const char *reader_word(enum reader reader) {
    return reader < READER__CNT ? readers[reader].word : NULL;
}

const char *reader_text(enum reader reader) {
    return reader < READER__CNT ? readers[reader].text : NULL;
}

/* From the first record to the last. */
struct watch {
    struct bench_clock began;
    long records, wanted;
    enum form form;
    bool look;
    uint64_t sum;
};

static void tick(struct watch *watch, long records) {
    if (!watch->records && records)
        watch->began = bench_start();
    watch->records += records;
}

/* ---- what an application does that must know the number of a record */

static uint64_t number_in_header(const rd_kafka_message_t *message, const char *name) {
    rd_kafka_headers_t *headers;
    unsalt_header_t header;
    const void *value;
    size_t size;
    uint64_t seq;
    if (rd_kafka_message_headers(message, &headers) || rd_kafka_header_get_last(headers, name, &value, &size))
        topic_fail("a record without its header");
    if (strcmp(name, "seq") == 0 && us_plain_read(value, size, &seq))
        return seq;
    if (unsalt_header_read(value, size, &header) == UNSALT_HEADER_OK)
        return header.seq;
    topic_fail("a header that can't be read");
}

static uint64_t number_in_json(const rd_kafka_message_t *message) {
    static struct us_json *json;
    struct us_json_found found;
    if (!json)
        json = us_json_new(&us_mem_default, "globalSeq", "sessionId", 65536);
    if (!json || us_json_read(json, message->payload, message->len, &found) || !found.has_seq)
        topic_fail("a record without its number");
    return found.seq;
}

static uint64_t number_in_key(const rd_kafka_message_t *message) {
    uint64_t seq;
    size_t session_len;
    if (us_key_trailer_read(0, message->key, message->key_len, &seq, &session_len) != US_TRAILER_FOUND)
        topic_fail("a key without its number");
    return seq;
}

static uint64_t number_of(const rd_kafka_message_t *message, enum form form) {
    switch (form) {
    case FORM_HEADER:
        return number_in_header(message, UNSALT_HEADER_NAME);
    case FORM_PLAIN:
        return number_in_header(message, "seq");
    case FORM_JSON:
        return number_in_json(message);
    case FORM_KEY:
        break;
    }
    return number_in_key(message);
}

static void take(struct watch *watch, rd_kafka_message_t *message) {
    if (message->err)
        topic_fail(rd_kafka_message_errstr(message));
    if (watch->look)
        watch->sum += number_of(message, watch->form);
    rd_kafka_message_destroy(message);
}

/* ---- librdkafka's own ways */

static rd_kafka_t *open_raw(void) {
    char errstr[512];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, topic_consumer_conf(), errstr, sizeof errstr);
    if (!rk)
        topic_fail(errstr);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

static void assign_raw(rd_kafka_t *rk) {
    rd_kafka_topic_partition_list_t *partitions = topic_partitions();
    if (rd_kafka_assign(rk, partitions))
        topic_fail("the partitions can't be assigned");
    rd_kafka_topic_partition_list_destroy(partitions);
}

static void close_raw(rd_kafka_t *rk) {
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

static void raw_poll(struct watch *watch, struct bench_runs *runs) {
    rd_kafka_t *rk = open_raw();
    assign_raw(rk);
    while (watch->records < watch->wanted) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, WAIT_MS);
        if (!message)
            topic_fail("nothing comes");
        tick(watch, 1);
        take(watch, message);
    }
    bench_stop(watch->began, 1e9 / (double)watch->records, runs);
    close_raw(rk);
}

/* One batch; 0: the queue has nothing now. A timeout would be waited for until the batch is full. */
static ssize_t raw_take(struct watch *watch, rd_kafka_queue_t *queue) {
    static rd_kafka_message_t *messages[BATCH];
    ssize_t n = rd_kafka_consume_batch_queue(queue, 0, messages, BATCH);
    if (n < 0)
        topic_fail("a batch can't be read");
    tick(watch, n);
    for (ssize_t i = 0; i < n; i++)
        take(watch, messages[i]);
    return n;
}

/* Reads the queues in turns; when all are empty, waits for the pipe that they write to. */
static void raw_queues(struct watch *watch, rd_kafka_queue_t **queues, int count, int woken) {
    while (watch->records < watch->wanted) {
        struct pollfd pollfd = {.fd = woken, .events = POLLIN};
        ssize_t moved = 0;
        char bytes[64];
        for (int i = 0; i < count; i++)
            moved += raw_take(watch, queues[i]);
        if (moved)
            continue;
        if (poll(&pollfd, 1, WAIT_MS) != 1)
            topic_fail("nothing comes");
        while (read(woken, bytes, sizeof bytes) > 0)
            ;
    }
}

static void raw_batches(struct watch *watch, bool split, struct bench_runs *runs) {
    rd_kafka_t *rk = open_raw();
    rd_kafka_queue_t *queues[TOPIC_PARTITIONS];
    int count = split ? TOPIC_PARTITIONS : 1, ends[2];
    if (pipe(ends) || fcntl(ends[0], F_SETFL, O_NONBLOCK) || fcntl(ends[1], F_SETFL, O_NONBLOCK))
        topic_fail("no pipe");
    for (int i = 0; i < count; i++) {
        queues[i] = split ? rd_kafka_queue_get_partition(rk, topic_name(), i) : rd_kafka_queue_get_consumer(rk);
        if (split)
            rd_kafka_queue_forward(queues[i], NULL);
        rd_kafka_queue_io_event_enable(queues[i], ends[1], "1", 1);
    }
    assign_raw(rk);
    raw_queues(watch, queues, count, ends[0]);
    bench_stop(watch->began, 1e9 / (double)watch->records, runs);
    for (int i = 0; i < count; i++) {
        rd_kafka_queue_io_event_enable(queues[i], -1, NULL, 0);
        rd_kafka_queue_destroy(queues[i]);
    }
    close_raw(rk);
    close(ends[0]);
    close(ends[1]);
}

/* ---- unsalt's */

static unsalt_extract_res_t extract(void *opaque, const rd_kafka_message_t *message, unsalt_extract_t *out) {
    size_t session_len;
    (void)opaque;
    if (us_key_trailer_read(0, message->key, message->key_len, &out->seq, &session_len) != US_TRAILER_FOUND)
        return UNSALT_EXTRACT_NONE;
    out->session = message->key;
    out->session_len = session_len;
    while (out->session_len > 1 && ((const char *)message->key)[out->session_len] != '#')
        out->session_len--;
    return UNSALT_EXTRACT_FOUND;
}

static unsalt_t *open_ordered(enum form form, bool by_callback) {
    static const char *const sources[] = {[FORM_HEADER] = "unsalt", [FORM_PLAIN] = "header", [FORM_JSON] = "json",
                                          [FORM_KEY] = "key"};
    rd_kafka_topic_partition_list_t *partitions = topic_partitions();
    unsalt_conf_t *conf = topic_unsalt_conf();
    char errstr[512];
    if (unsalt_conf_set(conf, "seq.source", by_callback ? "callback" : sources[form], errstr, sizeof errstr) ||
        unsalt_conf_set(conf, "seq.key", form == FORM_KEY ? "binary" : "none", errstr, sizeof errstr))
        topic_fail(errstr);
    if (by_callback)
        unsalt_conf_set_extract_cb(conf, extract, NULL);
    unsalt_t *consumer = unsalt_new(topic_consumer_conf(), conf, errstr, sizeof errstr);
    if (!consumer)
        topic_fail(errstr);
    if (unsalt_assign(consumer, partitions))
        topic_fail("the partitions can't be assigned");
    rd_kafka_topic_partition_list_destroy(partitions);
    return consumer;
}

static void close_ordered(unsalt_t *consumer, const struct watch *watch) {
    unsalt_stats_t stats;
    unsalt_stats(consumer, &stats, sizeof stats);
    if (stats.state[UNSALT_STATE_RELEASED] != (uint64_t)watch->wanted)
        topic_fail("not all records were released in sequence");
    unsalt_consumer_close(consumer);
    unsalt_destroy(consumer);
}

static void ordered_poll(unsalt_t *consumer, struct watch *watch) {
    while (watch->records < watch->wanted) {
        rd_kafka_message_t *message = unsalt_consumer_poll(consumer, WAIT_MS);
        if (!message)
            topic_fail("nothing comes");
        tick(watch, 1);
        take(watch, message);
    }
}

static void ordered_batches(unsalt_t *consumer, struct watch *watch) {
    static rd_kafka_message_t *messages[BATCH];
    while (watch->records < watch->wanted) {
        ssize_t n = unsalt_consume_batch(consumer, WAIT_MS, messages, BATCH);
        if (n <= 0)
            topic_fail("nothing comes");
        tick(watch, n);
        for (ssize_t i = 0; i < n; i++)
            take(watch, messages[i]);
    }
}

static void on_message(rd_kafka_message_t *message, void *opaque) {
    if (message->err)
        topic_fail(rd_kafka_message_errstr(message));
    tick(opaque, 1);
}

static void ordered_callback(unsalt_t *consumer, struct watch *watch) {
    while (watch->records < watch->wanted)
        if (unsalt_consume_callback(consumer, WAIT_MS, on_message, watch) <= 0)
            topic_fail("nothing comes");
}

static void ordered(enum reader reader, struct watch *watch, struct bench_runs *runs) {
    unsalt_t *consumer = open_ordered(watch->form, reader == READER_ORDERED_EXTRACT);
    if (reader == READER_ORDERED_POLL)
        ordered_poll(consumer, watch);
    else if (reader == READER_ORDERED_CALLBACK)
        ordered_callback(consumer, watch);
    else
        ordered_batches(consumer, watch);
    bench_stop(watch->began, 1e9 / (double)watch->records, runs);
    close_ordered(consumer, watch);
}

void reader_run(enum reader reader, enum form form, long records, struct bench_runs *runs) {
    struct watch watch = {.wanted = records, .form = form};
    switch (reader) {
    case READER_POLL:
    case READER_POLL_LOOK:
        watch.look = reader == READER_POLL_LOOK;
        raw_poll(&watch, runs);
        break;
    case READER_BATCH:
    case READER_BATCH_LOOK:
        watch.look = reader == READER_BATCH_LOOK;
        raw_batches(&watch, false, runs);
        break;
    case READER_SPLIT:
    case READER_SPLIT_LOOK:
        watch.look = reader == READER_SPLIT_LOOK;
        raw_batches(&watch, true, runs);
        break;
    default:
        ordered(reader, &watch, runs);
    }
    if (watch.look && !watch.sum)
        topic_fail("no numbers");
}
