/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/passes.h>

/* Ends the test. Not by Criterion, since programs without it use this file too. */
_Noreturn static void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

_Noreturn static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

struct passes *passes_new(void) {
    struct passes *passes = calloc(1, sizeof(*passes));
    if (!passes) {
        fail("out of memory");
    }
    return passes;
}

static const struct passes_session *find(const struct passes *passes, const char *name) {
    for (size_t i = 0; i < passes->count; i++) {
        if (strcmp(passes->sessions[i].name, name) == 0) {
            return &passes->sessions[i];
        }
    }
    return NULL;
}

static struct passes_session *get(struct passes *passes, const char *name) {
    struct passes_session *session = (struct passes_session *)find(passes, name);
    if (session) {
        return session;
    }
    if (passes->count == PASSES_SESSIONS) {
        fail("too many sessions");
    }
    session = &passes->sessions[passes->count++];
    snprintf(session->name, sizeof(session->name), "%s", name);
    return session;
}

void passes_add(struct passes *passes, unsigned member, const char *name, uint64_t seq, uint32_t generation, int place,
                int64_t offset) {
    struct passes_session *session = get(passes, name);
    struct passes_at *at = &session->at[member % PASSES_MEMBERS];
    if (seq == 0 || seq > session->highest + 1) {
        fail("session %s: member %u has %" PRIu64 " where %" PRIu64 " is the next that nobody had", name, member, seq,
             session->highest + 1);
    }
    if (at->seq > 0 && seq != at->seq + 1 && generation <= at->generation) {
        fail("session %s: member %u has %" PRIu64 " behind %" PRIu64 " without a new assignment (generation %u)", name,
             member, seq, at->seq, generation);
    }
    if (place >= 0 && place < PASSES_PLACES && offset < passes->committed[place]) {
        fail("session %s: member %u has %" PRIu64 " at offset %" PRId64 " of partition %d, and %" PRId64
             " was committed", name, member, seq, offset, place, passes->committed[place]);
    }
    passes->records++;
    passes->again += seq <= session->highest;
    passes->by_member[member % PASSES_MEMBERS]++;
    session->highest = seq > session->highest ? seq : session->highest;
    at->seq = seq;
    at->generation = generation > at->generation ? generation : at->generation;
}

void passes_commit(struct passes *passes, int place, int64_t offset) {
    if (place >= 0 && place < PASSES_PLACES && offset > passes->committed[place]) {
        passes->committed[place] = offset;
    }
}

uint64_t passes_highest(const struct passes *passes, const char *session) {
    const struct passes_session *found = find(passes, session);
    return found ? found->highest : 0;
}
