/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sessions of a lane set by id. The table is uthash, with our seeded hash (ids come from producers) and our
 * allocator; an out-of-memory is an error, not an exit. This is the only file that knows it.
 */
#include <core/engine.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) us_alloc(table_mem, size)
#define uthash_free(ptr, size) us_free(table_mem, ptr)
#define uthash_nonfatal_oom(element) (void)(element)
#include <uthash.h>

struct node {
    UT_hash_handle hh;
    struct us_session session;
};

static struct node *node_of(const struct us_session *session) {
    return (struct node *)((char *)session - offsetof(struct node, session));
}

struct us_session *us_session_find(const struct us_set *set, const void *id, uint32_t len, uint32_t hash) {
    struct node *node, *head = set->table;
    HASH_FIND_BYHASHVALUE(hh, head, id, len, hash, node);
    return node ? &node->session : NULL;
}

struct us_session *us_session_new(struct unsalt_core *core, struct us_set *set, const void *id, uint32_t len,
                                  uint32_t hash) {
    const struct unsalt_mem *table_mem = &core->mem;
    struct node *node = us_calloc(&core->mem, 1, sizeof(*node) + len);
    if (!node) {
        return NULL;
    }
    struct us_session *session = &node->session;
    session->id = (unsigned char *)(node + 1);
    session->id_len = len;
    session->hash = hash;
    memcpy(session->id, id, len);
    us_wait_init(&session->gap, US_WAIT_GAP, session);
    if (!us_wait_reserve(core)) {
        us_free(&core->mem, node);
        return NULL;
    }
    struct node *head = set->table;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, head, session->id, len, hash, node);
    set->table = head;
    if (!node->hh.tbl) {
        core->waits--;
        us_free(&core->mem, node);
        return NULL;
    }
    session->set = set;
    session->since = UNSALT_NO_SEQ;
    session->refused_since = UNSALT_NEVER;
    session->newest = INT64_MIN;
    session->before = INT64_MIN;
    session->active = core->now;
    us_idle_touch(core, session);
    core->counters.sessions++;
    core->counters.sessions_created++;
    return session;
}

void us_session_free(struct unsalt_core *core, struct us_session *session) {
    const struct unsalt_mem *table_mem = &core->mem;
    struct us_set *set = session->set;
    struct node *node = node_of(session), *head = set->table;
    us_unready(core, session);
    us_wait_gone(core, &session->gap);
    us_start_free(core, session->start);
    while (session->later) {
        struct us_later *later = session->later;
        session->later = later->next;
        us_later_free(core, later);
    }
    if (session->suspects) {
        us_wait_gone(core, &session->suspects->wait);
        us_free(&core->mem, session->suspects->held);
        us_free(&core->mem, session->suspects);
    }
    us_reasm_destroy(&session->reasm, &core->chunks);
    us_skips_destroy(&session->skips, &core->mem);
    us_idle_unlink(core, session);
    if (session->blocked) {
        core->counters.gaps_open--;
    }
    if (core->last_session == session) {
        core->last_session = NULL;
    }
    HASH_DELETE(hh, head, node);
    set->table = head;
    us_free(&core->mem, node);
    core->counters.sessions--;
}

struct us_session *us_session_first(const struct us_set *set) {
    struct node *node = set->table;
    return node ? &node->session : NULL;
}

struct us_session *us_session_next(const struct us_session *session) {
    struct node *node = node_of(session)->hh.next;
    return node ? &node->session : NULL;
}
