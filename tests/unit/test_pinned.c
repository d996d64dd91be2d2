/* SPDX-License-Identifier: BSD-2-Clause */
/* What held messages pin, as their addresses tell: tests/broker/budget_pinned.c holds it against the allocator. */
#include <kafka/consumer.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/prng.h>

enum { MESSAGES = 4000, FRAME = 70 }; /* FRAME: what the library adds for the first message of a buffer */

/* A consumer with nothing in it but what is needed here, and a log of messages. */
struct log {
    struct unsalt u;
    struct us_partition p;
    struct us_partition *by_part[1];
    rd_kafka_message_t messages[MESSAGES], *pointers[MESSAGES];
    unsalt_core_out_t out[MESSAGES];
    uint32_t buffer[MESSAGES]; /* of which buffer each is: 0, 1, .. */
    bool held[MESSAGES];
    uint32_t count;
    char *memory, *at;
    size_t size;
    uint32_t buffers;
};

static struct log *log_new(size_t size) {
    unsalt_core_params_t params;
    struct log *log = calloc(1, sizeof(*log));
    CHECK(log);
    log->memory = log->at = malloc(size);
    log->size = size;
    unsalt_core_params_init(&params);
    log->u.core = unsalt_core_new(&params, NULL, 0);
    CHECK(log->memory && log->u.core);
    log->u.before.fetch_max = 1 << 20;
    log->u.by_part = log->by_part;
    log->u.by_part_count = 1;
    log->by_part[0] = &log->p;
    log->p.u = &log->u;
    log->p.generation = 7;
    return log;
}

static uint64_t pinned(const struct log *log) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(log->u.core, &counters);
    CHECK_U64(counters.pinned_bytes, log->u.pinned);
    return log->u.pinned;
}

static void log_free(struct log *log) {
    us_pins_drop(&log->p);
    CHECK_U64(pinned(log), 0);
    free(log->p.pins.buffers);
    unsalt_core_destroy(log->u.core);
    free(log->memory);
    free(log);
}

/* The next message lies `gap` behind the one before it; `fresh`: in a buffer of its own, far away. */
static void add(struct log *log, size_t gap, size_t key, size_t len, bool fresh) {
    rd_kafka_message_t *message = &log->messages[log->count];
    log->buffers += fresh || log->count == 0;
    log->at += fresh ? 100000 : gap;
    CHECK((size_t)(log->at - log->memory) + key + len < log->size);
    *message = (rd_kafka_message_t){.key = key ? log->at : NULL, .key_len = key, .payload = log->at + key, .len = len,
                                    .offset = 3 * (int64_t)log->count};
    log->at += key + len;
    log->buffer[log->count] = log->buffers - 1;
    log->pointers[log->count++] = message;
}

/* The core takes the messages from..count-1 and holds some of them; the others come back at once. */
static void push(struct log *log, uint32_t from) {
    size_t n_out = 0;
    for (uint32_t i = from; i < log->count; i++)
        if (!log->held[i])
            log->out[n_out++] = (unsalt_core_out_t){.msg = log->pointers[i]};
    us_pin(&log->p, &log->pointers[from], log->count - from, log->out, n_out);
}

static void release(struct log *log, uint32_t i, uint32_t generation) {
    unsalt_core_out_t out = {.msg = log->pointers[i], .generation = generation};
    us_unpin(&log->u, &out, 1);
    log->held[i] &= generation != log->p.generation;
}

/* The same sum, the slow way: all of each buffer with something held, less what is held. */
static uint64_t expected(const struct log *log) {
    uint64_t sum = 0;
    for (uint32_t b = 0; b < log->buffers; b++) {
        uint64_t all = 0, own = 0;
        bool any = false;
        for (uint32_t i = 0; i < log->count; i++) {
            const rd_kafka_message_t *message = log->pointers[i];
            if (log->buffer[i] != b)
                continue;
            bool first = i == 0 || log->buffer[i - 1] != b;
            const char *start = first ? (const char *)message->payload - message->key_len - FRAME
                                      : (const char *)log->pointers[i - 1]->payload + log->pointers[i - 1]->len;
            all += (uint64_t)((const char *)message->payload + message->len - start);
            own += log->held[i] ? message->key_len + message->len : 0;
            any |= log->held[i];
        }
        sum += any ? all - own : 0;
    }
    return sum;
}

TEST(pinned, nothing_held_pins_nothing) {
    struct log *log = log_new(1 << 20);
    for (int i = 0; i < 100; i++)
        add(log, 60, 5, 100, i % 10 == 0);
    push(log, 0);
    CHECK_U64(pinned(log), 0);
    CHECK_THAT(log->p.pins.count == 1, "%u buffers are kept", log->p.pins.count);
    log_free(log);
}

TEST(pinned, one_held_pins_its_whole_buffer) {
    struct log *log = log_new(1 << 20);
    for (int i = 0; i < 30; i++)
        add(log, 60, 5, 100, i == 10 || i == 20);
    log->held[15] = true;
    push(log, 0);
    CHECK_U64(pinned(log), FRAME + 9 * 60 + 9 * 105); /* the other nine, and what stands between */
    release(log, 3, 7);  /* it was not held: of a buffer that pins nothing */
    release(log, 15, 6); /* of another generation */
    CHECK_U64(pinned(log), FRAME + 9 * 60 + 9 * 105);
    release(log, 15, 7);
    CHECK_U64(pinned(log), 0);
    log_free(log);
}

/* The buffer of the newest message grows while messages of it pass. */
TEST(pinned, a_buffer_that_is_still_being_read_grows) {
    struct log *log = log_new(1 << 20);
    log->held[0] = true;
    for (uint32_t i = 0; i < 50; i++) {
        add(log, 60, 0, 100, false);
        push(log, i);
        CHECK_U64(pinned(log), FRAME + 160 * i);
    }
    log_free(log);
}

/* Big headers make big gaps: the first one looks like the end of a buffer, the next ones don't. */
TEST(pinned, big_headers_are_no_borders) {
    struct log *log = log_new(1 << 20);
    for (int i = 0; i < 100; i++)
        add(log, 3000, 5, 100, false);
    log->held[50] = true;
    push(log, 0);
    CHECK_THAT(pinned(log) >= 90 * 3000, "%" PRIu64 " are pinned", pinned(log));
    log_free(log);
}

TEST(pinned, messages_without_an_address_stay_where_they_are) {
    struct log *log = log_new(1 << 20);
    for (int i = 0; i < 10; i++)
        add(log, 60, i == 4 ? 0 : 5, i == 4 ? 0 : 100, false);
    log->messages[4].key = log->messages[4].payload = NULL;
    log->held[9] = true;
    push(log, 0);
    CHECK_U64(log->p.pins.count, 1);
    CHECK_U64(pinned(log), FRAME + 9 * 60 + 8 * 105 + FRAME);
    log_free(log);
}

/* Buffers that lie side by side by chance count as one, but not for ever. */
TEST(pinned, a_buffer_has_an_end_even_if_it_has_no_border) {
    struct log *log = log_new(1 << 22);
    log->u.before.fetch_max = 10000;
    log->held[0] = true;
    for (int i = 0; i < MESSAGES; i++)
        add(log, 60, 0, 100, false);
    push(log, 0);
    CHECK_THAT(pinned(log) >= 10000 - 200 && pinned(log) < 10000 + 400, "%" PRIu64 " are pinned", pinned(log));
    log_free(log);
}

/* At random: pushed in pieces, released in any order, against the slow sum. */
TEST(pinned, the_sum_is_that_of_a_naive_model) {
    struct prng prng = prng_start(1);
    for (int round = 0; round < 20; round++) {
        struct log *log = log_new((size_t)1 << 28);
        uint64_t share = prng_below(&prng, 101), apart = prng_below(&prng, 10);
        for (uint32_t from = 0; from < 1000; from = log->count) {
            uint64_t n = prng_between(&prng, 1, 64);
            for (uint64_t i = 0; i < n && log->count < 1000; i++) {
                log->held[log->count] = prng_below(&prng, 100) < share;
                add(log, prng_between(&prng, 10, 200), prng_below(&prng, 20), prng_between(&prng, 1, 300),
                    prng_below(&prng, 100) < apart);
            }
            push(log, from);
            for (uint64_t i = prng_below(&prng, 60); i > 0; i--) {
                uint32_t which = (uint32_t)prng_below(&prng, log->count);
                if (log->held[which])
                    release(log, which, 7);
            }
            if (prng_chance(&prng, 20))
                CHECK_U64(pinned(log), expected(log));
        }
        CHECK_U64(pinned(log), expected(log));
        for (uint32_t i = 0; i < log->count; i++)
            if (log->held[i])
                release(log, i, 7);
        CHECK_U64(pinned(log), 0);
        log_free(log);
    }
}
