/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions that have a record in the pipeline: chained buckets, and a pool: the ordinary record allocates nothing. */
#include <base/hash.h>
#include <base/mem.h>
#include <core/pipeline.h>
#include <string.h>

#define BUCKETS_LEAST 64

static uint32_t kept(const struct us_pipe *pipe, uint32_t id_len) {
    return id_len < pipe->params.id_max ? id_len : pipe->params.id_max;
}

static uint64_t hash_of(const struct us_pipe *pipe, uint64_t space, const void *id, uint32_t id_len) {
    return us_hash(id, id_len, pipe->params.seed ^ space);
}

static struct us_pipe_session **bucket(const struct us_pipe *pipe, uint64_t hash) {
    return &pipe->buckets[hash & (pipe->bucket_count - 1)];
}

static struct us_pipe_session *find(const struct us_pipe *pipe, uint64_t hash, uint64_t space, const void *id,
                                    uint32_t id_len) {
    struct us_pipe_session *session = pipe->bucket_count ? *bucket(pipe, hash) : NULL;
    while (session && (session->hash != hash || session->space != space || session->id_len != id_len ||
                       memcmp(session->id, id, id_len) != 0)) {
        session = session->chain;
    }
    return session;
}

struct us_pipe_session *us_pipe_session_find(const struct us_pipe *pipe, uint64_t space, const void *id,
                                             uint32_t id_len) {
    const void *bytes = id_len > 0 ? id : "";
    uint32_t len = kept(pipe, id_len);
    return find(pipe, hash_of(pipe, space, bytes, len), space, bytes, len);
}

/* False: out of memory, and nothing changed. */
static bool grow(struct us_pipe *pipe, uint64_t wanted) {
    uint32_t count = pipe->bucket_count ? pipe->bucket_count : BUCKETS_LEAST;
    while (count < wanted && count < UINT32_C(1) << 30) {
        count *= 2;
    }
    if (count == pipe->bucket_count) {
        return true;
    }
    struct us_pipe_session **buckets = us_calloc(&pipe->params.mem, count, sizeof(struct us_pipe_session *));
    if (!buckets) {
        return false;
    }
    for (uint32_t i = 0; i < pipe->bucket_count; i++) {
        struct us_pipe_session *next;
        for (struct us_pipe_session *session = pipe->buckets[i]; session; session = next) {
            struct us_pipe_session **to = &buckets[session->hash & (count - 1)];
            next = session->chain;
            session->chain = *to;
            *to = session;
        }
    }
    us_free(&pipe->params.mem, pipe->buckets);
    pipe->buckets = buckets;
    pipe->bucket_count = count;
    return true;
}

bool us_pipe_sessions_reserve(struct us_pipe *pipe, uint32_t more) {
    if (!grow(pipe, pipe->counters.sessions + more)) {
        return false;
    }
    while (pipe->pool_count < more) {
        struct us_pipe_session *session = us_alloc(&pipe->params.mem, sizeof(*session) + pipe->params.id_max);
        if (!session) {
            return false;
        }
        session->chain = pipe->pool;
        pipe->pool = session;
        pipe->pool_count++;
    }
    return true;
}

static struct us_pipe_session *make(struct us_pipe *pipe, uint64_t hash, uint64_t space, const void *id,
                                    uint32_t id_len) {
    struct us_pipe_session *session = pipe->pool, **to = bucket(pipe, hash);
    pipe->pool = session->chain;
    pipe->pool_count--;
    *session = (struct us_pipe_session){.chain = *to, .hash = hash, .space = space, .id_len = id_len,
                                        .cursor = UNSALT_NO_SEQ};
    us_links_init(&session->turn);
    us_links_init(&session->early);
    memcpy(session->id, id, id_len);
    *to = session;
    pipe->counters.sessions++;
    return session;
}

struct us_pipe_session *us_pipe_session_get(struct us_pipe *pipe, uint64_t space, const void *id, uint32_t id_len) {
    const void *bytes = id_len > 0 ? id : "";
    uint32_t len = kept(pipe, id_len);
    uint64_t hash = hash_of(pipe, space, bytes, len);
    struct us_pipe_session *session = find(pipe, hash, space, bytes, len);
    session = session ? session : make(pipe, hash, space, bytes, len);
    session->refs++;
    return session;
}

void us_pipe_session_drop(struct us_pipe *pipe, struct us_pipe_session *session) {
    if (--session->refs > 0) {
        return;
    }
    struct us_pipe_session **at = bucket(pipe, session->hash);
    while (*at != session) {
        at = &(*at)->chain;
    }
    *at = session->chain;
    session->chain = pipe->pool;
    pipe->pool = session;
    pipe->pool_count++;
    pipe->counters.sessions--;
}
