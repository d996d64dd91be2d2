/* SPDX-License-Identifier: BSD-2-Clause */
/* Phase 1: one record, tried until it is done or has failed for good. */
#include <base/hash.h>
#include <base/mem.h>
#include <kafka/consumer.h>
#include <kafka/relay.h>

#define RETRY_MAX_MS 10000
#define ERROR_MAX 256 /* room for an error text */

/* What a callback has set, or begun to set, and isn't wanted. The application is promised the thread that polls. */
static void forget_out(struct us_relay_pool *pool, struct us_relay_item *item) {
    if (item->out.release)
        us_relay_pool_call(pool, item->out.release, (void *)item->out.payload);
    if (item->out.headers)
        rd_kafka_headers_destroy(item->out.headers);
    item->out.release = NULL;
    item->out.headers = NULL;
}

unsalt_relay_info_t us_relay_info(const struct us_relay_item *item) {
    const unsalt_core_in_t *in = &item->in;
    return (unsalt_relay_info_t){
        .size = sizeof(unsalt_relay_info_t),
        .session = in->session,
        .session_len = in->session_len,
        .seq = in->session ? in->seq : UNSALT_NO_SEQ,
        .epoch = in->epoch,
        .flags = in->flags,
        .attempt = item->attempts,
    };
}

const char *us_relay_error(const struct us_relay_item *item) {
    return item->error ? item->error : item->fault ? item->fault : "no error text was given";
}

static void note_error(struct us_relay_item *item, char *text) {
    text[ERROR_MAX - 1] = '\0';
    us_free(&us_mem_default, item->error);
    item->error = text[0] ? us_text_dup(text) : NULL;
}

static unsalt_relay_res_t attempt(struct unsalt_relay *r, struct us_relay_item *item) {
    char text[ERROR_MAX] = "";
    item->attempts++;
    unsalt_relay_info_t info = us_relay_info(item);
    info.errstr = text;
    info.errstr_size = sizeof text;
    item->out = (unsalt_relay_out_t){
        .size = sizeof item->out, .payload = item->message->payload, .len = item->message->len};
    if (!r->input->relay_cb)
        return UNSALT_RELAY_DONE;
    int res = (int)r->input->relay_cb(r->input->relay_opaque, item->message, &info, &item->out);
    if (res == UNSALT_RELAY_DONE)
        return UNSALT_RELAY_DONE;
    forget_out(&r->pool, item);
    if (res == UNSALT_RELAY_DROP)
        return UNSALT_RELAY_DROP;
    note_error(item, text);
    return UNSALT_RELAY_FAILED;
}

/* Members that failed together don't come back together. */
static int back_off(struct unsalt_relay *r, unsigned number) {
    uint64_t random = us_mix(atomic_fetch_add(&r->random, US_MIX_STEP));
    return (int)us_pipe_backoff((uint64_t)r->input->relay_retry_ms, RETRY_MAX_MS, number, random);
}

/* Markers and heartbeats are the producer's word, and nothing to be transformed. */
void us_relay_transform(void *opaque, size_t index) {
    struct unsalt_relay *r = opaque;
    struct us_relay_item *item = &r->worked->items[index];
    unsigned retries = (unsigned)r->input->relay_retries;
    item->res = UNSALT_RELAY_DONE;
    item->cut = false;
    if (item->in.kind == UNSALT_KIND_CONTROL)
        return;
    if (item->fault && r->input->malformed == UNSALT_MALFORMED_DEAD_LETTER)
        return;
    while ((item->res = attempt(r, item)) == UNSALT_RELAY_FAILED && item->attempts <= retries) {
        us_relay_pool_pause(&r->pool, back_off(r, item->attempts));
        item->cut = atomic_load(&r->pool.hurry);
        if (item->cut)
            return;
        atomic_fetch_add(&r->counters.retries, 1);
    }
    if (item->res == UNSALT_RELAY_FAILED) {
        atomic_fetch_add(&r->counters.failed, 1);
        if (r->input->relay_failure == US_PIPE_HALT)
            atomic_store(&r->pool.hurry, true); /* nothing of the batch is of use any more */
    }
}
