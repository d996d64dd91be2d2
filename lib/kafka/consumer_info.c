/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/copy_out.h>
#include <base/mem.h>
#include <kafka/consumer.h>
#include <string.h>

/* What was handed out under this message; asked in the order of a batch it costs one compare. NULL: not ours. */
static const unsalt_core_out_t *find(struct unsalt *u, const rd_kafka_message_t *message) {
    for (uint32_t i = 0; i < u->handed_count; i++) {
        uint32_t at = (u->handed_hint + i) % u->handed_count;
        if (u->handed[at].msg == message) {
            u->handed_hint = at + 1;
            return &u->handed[at];
        }
    }
    return NULL;
}

/* Keeps an id that stands in the extractor's buffer until the next call. NULL: out of memory. */
static const void *keep(struct unsalt *u, const void *bytes, size_t len) {
    struct us_info_text *text = us_alloc(&us_mem_default, sizeof(*text) + len);
    if (!text) {
        return NULL;
    }
    text->next = u->info_texts;
    u->info_texts = text;
    return memcpy(text->bytes, bytes, len);
}

void us_info_forget(struct unsalt *u) {
    while (u->info_texts) {
        struct us_info_text *text = u->info_texts;
        u->info_texts = text->next;
        us_free(&us_mem_default, text);
    }
}

/* The core doesn't give session and epoch back: the message still has them. False: out of memory. */
static bool add_session(struct unsalt *u, const rd_kafka_message_t *message, unsalt_message_info_t *info) {
    unsalt_core_in_t in;
    bool borrowed = false;
    memset(&in, 0, sizeof(in));
    us_extract(&u->info_extractor, message, &in, &borrowed);
    info->flags = in.flags;
    if (info->state == UNSALT_STATE_UNSEQUENCED) {
        return true;
    }
    info->session = borrowed ? keep(u, in.session, in.session_len) : in.session;
    info->session_len = in.session_len;
    info->epoch = in.epoch;
    if (in.lanes > 0) {
        info->lane = in.lane;
    } else if (u->conf->layout == US_LAYOUT_TOPICS) {
        info->lane = us_topic_lane(&u->lanes.topics, rd_kafka_topic_name(message->rkt)).lane;
    }
    return info->session != NULL;
}

int unsalt_message_info(const unsalt_t *u, const rd_kafka_message_t *message, unsalt_message_info_t *info) {
    struct unsalt *mine = (struct unsalt *)u; /* caches change, the consumer doesn't */
    size_t size = info ? info->size : 0;
    /* Of a pipeline it would be asked on any thread; what it knows is in the job. */
    const unsalt_core_out_t *out = message && !u->pipeline ? find(mine, message) : NULL;
    if (size == 0 || !out || out->part == US_NO_PART) {
        return -1;
    }
    unsalt_message_info_t full = {.state = (unsalt_state_t)out->state, .seq = UNSALT_NO_SEQ, .lane = -1};
    if (!add_session(mine, message, &full)) {
        return -1;
    }
    if (full.state != UNSALT_STATE_UNSEQUENCED) {
        full.seq = out->seq;
    }
    full.after_gap = (out->flags & UNSALT_OUT_AFTER_GAP) != 0;
    full.waited_ns = out->waited_ns;
    full.token = (unsalt_token_t){.part = out->part, .generation = out->generation, .ticket = out->ticket};
    full.size = size;
    us_copy_out(info, size, &full, sizeof(full));
    return 0;
}
