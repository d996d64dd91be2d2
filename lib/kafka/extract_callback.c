/* SPDX-License-Identifier: BSD-2-Clause */
/* What the application's extract callback says, looked at as anything else that comes from outside. */
#include <kafka/extract_record.h>

#define FLAGS_ALLOWED (UNSALT_F_FIRST | UNSALT_F_LAST)

/* How the session that the callback told lies to a piece of the message. */
enum lies { WITHIN, ELSEWHERE, BEYOND };

static enum lies lies_in(const unsalt_extract_t *found, const void *piece, size_t size) {
    uintptr_t at = (uintptr_t)found->session, begin = (uintptr_t)piece;
    if (!piece || at < begin || at - begin >= size)
        return ELSEWHERE;
    return found->session_len <= size - (at - begin) ? WITHIN : BEYOND;
}

/* Takes over the session. Returns what is wrong with it, or NULL. */
static const char *take_session(struct us_record *r, const unsalt_extract_t *found) {
    enum lies key, payload;
    if (!found->session)
        return found->session_len ? "the extract callback tells the length of a session, but no session" : NULL;
    if (found->session_len == 0)
        return "the extract callback tells an empty session";
    if (found->session_len > (size_t)r->x->conf->session_id_max)
        return "the extract callback tells a session that is longer than session.id.max";
    key = lies_in(found, r->message->key, r->message->key_len);
    payload = lies_in(found, r->message->payload, r->message->len);
    if (key == BEYOND || payload == BEYOND)
        return "the extract callback tells a session that begins in the message and ends behind it";
    r->told = found->session;
    r->told_len = (uint32_t)found->session_len;
    r->borrowed = key == ELSEWHERE && payload == ELSEWHERE;
    return NULL;
}

static const char *take_numbers(struct us_record *r, const unsalt_extract_t *found) {
    if (found->seq == UNSALT_NO_SEQ)
        return "the extract callback tells no sequence, or the reserved one";
    if (found->lanes && found->lane >= found->lanes)
        return "the extract callback tells a lane that is not below lanes";
    if (found->lanes && found->seq % found->lanes != found->lane)
        return "the extract callback tells a lane that is not seq mod lanes";
    if (found->flags & ~FLAGS_ALLOWED)
        return "the extract callback sets flags other than first and last";
    r->in->seq = found->seq;
    r->in->epoch = found->epoch;
    r->in->flags = found->flags;
    if (found->lanes) {
        r->in->lane = found->lane;
        r->in->lanes = found->lanes;
        r->in->since = found->seq; /* nothing is said of the numbers below */
    }
    return NULL;
}

enum us_place us_record_callback(struct us_record *r) {
    const struct unsalt_conf *conf = r->x->conf;
    unsalt_extract_t found = {.size = sizeof found, .seq = UNSALT_NO_SEQ};
    int result = (int)conf->extract_cb(conf->extract_opaque, r->message, &found);
    switch (result) {
    case UNSALT_EXTRACT_NONE:
        return US_NOWHERE;
    case UNSALT_EXTRACT_FOUND:
        r->fault = take_numbers(r, &found);
        if (!r->fault)
            r->fault = take_session(r, &found);
        return r->fault ? US_FAULTY : US_FROM_CALLBACK;
    case UNSALT_EXTRACT_MALFORMED:
        r->fault = found.fault ? found.fault : "the extract callback calls it malformed";
        return US_FAULTY;
    default:
        r->fault = "the extract callback returned a value that it doesn't have";
        return US_FAULTY;
    }
}
