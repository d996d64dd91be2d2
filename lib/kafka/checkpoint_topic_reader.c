/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading goes by librdkafka's calls for single partitions into one queue: they need no group, and a partition that
 * begins or ends doesn't disturb the others. Batches are safe here on every version: the faults of batches need
 * pauses, seeks or positions that are committed, and there are none.
 */
#include <base/mem.h>
#include <kafka/checkpoint_topic_ends.h>
#include <kafka/checkpoint_topic_reader.h>
#include <kafka/clock.h>
#include <kafka/handle_end.h>
#include <string.h>

#define BATCH 1024

/* A partition. `position` is -1 until something came, which shows where the log begins. */
struct slot {
    enum us_checkpoint_wait wait;
    bool reading;
    bool at_end;  /* the last thing that came was the end of what is visible */
    int64_t position, end;
    uint64_t entries, bytes;
    rd_kafka_resp_err_t err; /* of fetching */
    rd_kafka_resp_err_t end_err;
};

struct us_checkpoint_reader {
    struct us_checkpoint_reader_settings settings;
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    rd_kafka_queue_t *queue;
    struct us_checkpoint_ends *ends;
    uint32_t loading;
    rd_kafka_message_t *batch[BATCH];
    struct slot slots[];
};

/* ---- life */

struct us_checkpoint_reader *us_checkpoint_reader_new(const struct us_checkpoint_reader_settings *settings) {
    struct us_checkpoint_reader *reader = us_calloc(
        &us_mem_default, 1, sizeof(*reader) + (size_t)settings->partitions * sizeof(reader->slots[0]));
    if (reader) {
        reader->settings = *settings;
    }
    return reader;
}

static void wake(void *opaque) {
    const struct us_checkpoint_reader *reader = opaque;
    reader->settings.wake(reader->settings.opaque);
}

static void queue_event(rd_kafka_t *rk, void *opaque) {
    (void)rk;
    wake(opaque);
}

static bool close_handle(struct us_checkpoint_reader *reader) {
    if (reader->queue) {
        rd_kafka_queue_cb_event_enable(reader->queue, NULL, NULL);
        rd_kafka_queue_destroy(reader->queue);
    }
    if (reader->rkt) {
        rd_kafka_topic_destroy(reader->rkt);
    }
    bool gone = us_handle_end(reader->rk, US_HANDLE_END_MS);
    reader->queue = NULL;
    reader->rkt = NULL;
    reader->rk = NULL;
    return gone;
}

static rd_kafka_resp_err_t open_handle(struct us_checkpoint_reader *reader, char *errstr, size_t errstr_size) {
    const struct us_checkpoint_reader_settings *settings = &reader->settings;
    if (!reader->rk) {
        reader->rk = us_checkpoint_client_new(&settings->client, US_CHECKPOINT_READER, errstr, errstr_size);
        reader->rkt = reader->rk ? rd_kafka_topic_new(reader->rk, settings->topic, NULL) : NULL;
        if (!reader->rkt) {
            close_handle(reader);
            return RD_KAFKA_RESP_ERR__FAIL;
        }
        reader->queue = rd_kafka_queue_new(reader->rk);
        rd_kafka_queue_cb_event_enable(reader->queue, queue_event, reader);
    }
    if (!reader->ends) {
        reader->ends = us_checkpoint_ends_new(&settings->client, settings->topic, settings->partitions, wake, reader);
    }
    return reader->ends ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
}

bool us_checkpoint_reader_destroy(struct us_checkpoint_reader *reader) {
    if (!reader) {
        return true;
    }
    bool gone = us_checkpoint_ends_destroy(reader->ends);
    for (int32_t i = 0; i < reader->settings.partitions; i++) {
        if (reader->slots[i].reading) {
            rd_kafka_consume_stop(reader->rkt, i);
        }
    }
    gone = close_handle(reader) && gone;
    us_free(&us_mem_default, reader);
    return gone;
}

/* ---- which partitions are read */

static void stop(struct us_checkpoint_reader *reader, int32_t partition, enum us_checkpoint_wait now) {
    struct slot *slot = &reader->slots[partition];
    if (slot->reading) {
        rd_kafka_consume_stop(reader->rkt, partition);
        us_checkpoint_ends_unwant(reader->ends, partition);
        slot->reading = false;
        reader->loading--;
    }
    slot->wait = now;
}

/*
 * The question for the end goes out after this call has begun, whatever is fetched. From offset 0, not from "the
 * beginning": librdkafka asks for that one before it knows a leader, and asks again only half a second later. A log
 * that begins above 0 makes it take auto.offset.reset's way to the beginning.
 */
static rd_kafka_resp_err_t start(struct us_checkpoint_reader *reader, int32_t partition) {
    struct slot *slot = &reader->slots[partition];
    stop(reader, partition, US_CHECKPOINT_IDLE);
    memset(slot, 0, sizeof(*slot));
    slot->position = slot->end = -1;
    if (rd_kafka_consume_start_queue(reader->rkt, partition, 0, reader->queue)) {
        return rd_kafka_last_error();
    }
    us_checkpoint_ends_want(reader->ends, partition);
    slot->reading = true;
    slot->wait = US_CHECKPOINT_ENTRIES;
    reader->loading++;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t us_checkpoint_reader_begin(struct us_checkpoint_reader *reader, const int32_t *partitions,
                                               uint32_t n, char *errstr, size_t errstr_size) {
    for (uint32_t i = 0; i < n; i++) {
        if (partitions[i] < 0 || partitions[i] >= reader->settings.partitions) {
            return RD_KAFKA_RESP_ERR__INVALID_ARG;
        }
    }
    rd_kafka_resp_err_t err = open_handle(reader, errstr, errstr_size);
    for (uint32_t i = 0; !err && i < n; i++) {
        err = start(reader, partitions[i]);
    }
    for (uint32_t i = 0; err && i < n; i++) {
        stop(reader, partitions[i], US_CHECKPOINT_IDLE);
    }
    return err;
}

void us_checkpoint_reader_cancel(struct us_checkpoint_reader *reader, int32_t partition) {
    if (reader->slots[partition].reading) {
        stop(reader, partition, US_CHECKPOINT_IDLE);
    }
}

/* ---- what comes */

/* An end-of-partition event carries the offset that would be read next, behind markers and holes. */
static void take(struct us_checkpoint_reader *reader, const rd_kafka_message_t *message) {
    if (message->partition < 0 || message->partition >= reader->settings.partitions) {
        return;
    }
    struct slot *slot = &reader->slots[message->partition];
    if (!slot->reading) {
        return;
    }
    slot->at_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (message->err && !slot->at_end) {
        slot->err = message->err;
        return;
    }
    slot->err = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (slot->at_end) {
        slot->position = message->offset > slot->position ? message->offset : slot->position;
        return;
    }
    struct us_checkpoint_record entry = {.partition = message->partition, .key = message->key,
                                        .key_len = message->key_len, .value = message->payload,
                                        .value_len = message->len, .offset = message->offset};
    slot->position = message->offset + 1;
    slot->entries++;
    slot->bytes += entry.key_len + entry.value_len;
    reader->settings.entry(reader->settings.opaque, &entry);
}

/* Everything below the end was read: by the position, or because there is nothing at all. */
static bool is_complete(const struct slot *slot) {
    return slot->end >= 0 && (slot->position >= slot->end || slot->end == 0);
}

static void settle(struct us_checkpoint_reader *reader) {
    for (int32_t i = 0; reader->loading > 0 && i < reader->settings.partitions; i++) {
        struct slot *slot = &reader->slots[i];
        if (!slot->reading) {
            continue;
        }
        struct us_checkpoint_end told = us_checkpoint_ends_get(reader->ends, i);
        slot->end = told.end;
        slot->end_err = told.err;
        if (is_complete(slot)) {
            stop(reader, i, US_CHECKPOINT_COMPLETE);
            reader->settings.complete(reader->settings.opaque, i);
        } else if (!slot->at_end) {
            slot->wait = US_CHECKPOINT_ENTRIES;
        } else {
            slot->wait = slot->end < 0 ? US_CHECKPOINT_END : US_CHECKPOINT_TRANSACTION;
        }
    }
}

bool us_checkpoint_reader_step(struct us_checkpoint_reader *reader, uint32_t max_entries, uint32_t max_ms) {
    if (!reader->rk) {
        return false;
    }
    uint64_t until = us_clock_ms() + max_ms;
    uint32_t left = max_entries;
    ssize_t n = 1;
    rd_kafka_poll(reader->rk, 0); /* token refreshes */
    while (left > 0 && n > 0 && reader->loading > 0) {
        n = rd_kafka_consume_batch_queue(reader->queue, 0, reader->batch, left < BATCH ? left : BATCH);
        for (ssize_t i = 0; i < n; i++) {
            take(reader, reader->batch[i]);
            rd_kafka_message_destroy(reader->batch[i]);
        }
        settle(reader);
        left -= n > 0 ? (uint32_t)n : 0;
        if (us_clock_ms() >= until) {
            break;
        }
    }
    return n > 0 && reader->loading > 0;
}

uint32_t us_checkpoint_reader_loading(const struct us_checkpoint_reader *reader) {
    return reader->loading;
}

void us_checkpoint_reader_progress(const struct us_checkpoint_reader *reader, int32_t partition,
                                   struct us_checkpoint_progress *progress) {
    const struct slot *slot = &reader->slots[partition];
    int64_t position = slot->position > 0 ? slot->position : 0;
    bool known = slot->wait != US_CHECKPOINT_IDLE && slot->end >= 0;
    *progress = (struct us_checkpoint_progress){.wait = slot->wait, .entries = slot->entries, .bytes = slot->bytes,
                                                .position = position, .end = known ? slot->end : -1,
                                                .remaining = -1, .err = slot->err ? slot->err : slot->end_err};
    if (known) {
        progress->remaining = position < slot->end ? slot->end - position : 0;
    }
}
