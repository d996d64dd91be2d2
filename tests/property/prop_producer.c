/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers of a producer's sessions against a naive model: a table of sessions with all their open numbers, compared
 * at each record, together with what makes `una` a proof: no number below it is open, and no session whose numbers are
 * open is forgotten.
 */
#include <kafka/producer_sessions.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

enum { NAMES = 12, OPEN = 200, LANES = 4, STEPS = 20000, STREAMS = 40 };

/* What the model knows of a name. */
struct session {
    bool there, ended;
    uint64_t epoch, next, since;
    uint64_t highest_epoch; /* of all that it ever had */
    uint64_t rested;        /* when its last open number was settled: the lowest goes first */
    uint16_t lanes;
    unsigned open;
};

struct open {
    struct us_sent *sent; /* NULL: free */
    int name;
    uint64_t seq;
};

struct world {
    struct us_senders senders;
    struct failmem mem;
    struct prng prng;
    struct session sessions[NAMES];
    struct open open[OPEN];
    uint64_t first, tick, rank_ended, evicted;
    unsigned count, most;
};

/* The one that goes when there are too many; NULL: none can. */
static struct session *idlest(struct world *w) {
    struct session *found = NULL;
    for (int i = 0; i < NAMES; i++) {
        struct session *s = &w->sessions[i];
        if (s->there && s->open == 0 && (!found || s->rested < found->rested))
            found = s;
    }
    return found;
}

static uint64_t lowest_open(const struct world *w, int name, uint64_t otherwise) {
    uint64_t lowest = otherwise;
    for (int i = 0; i < OPEN; i++)
        if (w->open[i].sent && w->open[i].name == name && w->open[i].seq < lowest)
            lowest = w->open[i].seq;
    return lowest;
}

static void check_stamp(const struct world *w, int name, const struct us_stamp *stamp, uint16_t lanes) {
    const struct session *s = &w->sessions[name];
    uint64_t seq = s->there ? s->next : w->first;
    CHECK_U64(stamp->seq, seq);
    CHECK_U64(stamp->una, lowest_open(w, name, seq));
    CHECK_U64(stamp->since, s->there && s->lanes == lanes ? s->since : seq);
    CHECK(stamp->lanes == lanes && stamp->lane == seq % lanes);
    CHECK(stamp->partition >= 0 && stamp->partition < w->senders.map.partitions);
    CHECK_THAT(s->there ? stamp->epoch == s->epoch : stamp->epoch > s->highest_epoch,
               "epoch %" PRIu64 " after %" PRIu64, stamp->epoch, s->highest_epoch);
}

static void committed(struct world *w, int name, const struct us_stamp *stamp, bool last) {
    struct session *s = &w->sessions[name];
    if (!s->there && w->count == w->most) {
        idlest(w)->there = false;
        w->count--;
        w->evicted++;
    }
    w->count += !s->there;
    s->there = true;
    s->ended = last;
    s->open++;
    s->next = stamp->seq + 1;
    s->epoch = s->highest_epoch = stamp->epoch;
    s->since = stamp->since;
    s->lanes = stamp->lanes;
}

static void produce(struct world *w) {
    int name = (int)prng_below(&w->prng, NAMES);
    uint16_t lanes = (uint16_t)prng_between(&w->prng, 1, LANES);
    struct open *free = NULL;
    for (int i = 0; i < OPEN && !free; i++)
        free = w->open[i].sent ? NULL : &w->open[i];
    if (!free)
        return;
    char bytes[8];
    int size = snprintf(bytes, sizeof bytes, "t%cs%d", 0, name);
    struct us_sender_name n = {.bytes = bytes, .size = (size_t)size, .id_at = 2};
    struct us_shard *shard = us_senders_shard(&w->senders, &n);
    struct us_stamp stamp;
    bool full, refused = !w->sessions[name].there && w->count == w->most && !idlest(w);
    failmem_arm(&w->mem, prng_chance(&w->prng, 5) ? prng_between(&w->prng, 1, 3) : 0, false);
    struct us_sent *sent = us_shard_begin(shard, &n, lanes, &stamp, &full);
    bool starved = w->mem.failed > 0;
    failmem_arm(&w->mem, 0, false);
    CHECK((sent == NULL) == (refused || starved));
    CHECK(full == (refused && !starved));
    if (!sent)
        return;
    check_stamp(w, name, &stamp, lanes);
    if (prng_chance(&w->prng, 15)) {
        us_shard_release(shard, sent);
        return;
    }
    bool last = prng_chance(&w->prng, 5);
    us_shard_commit(shard, sent, &stamp, last);
    *free = (struct open){.sent = sent, .name = name, .seq = stamp.seq};
    committed(w, name, &stamp, last);
}

static void settle(struct world *w) {
    struct open *o = &w->open[prng_below(&w->prng, OPEN)];
    if (!o->sent)
        return;
    struct session *s = &w->sessions[o->name];
    struct us_sent *sent = o->sent;
    uint64_t una = lowest_open(w, o->name, s->next);
    CHECK_U64(us_shard_una(sent), una);
    o->sent = NULL;
    CHECK_U64(us_shard_settle(sent->shard, sent), lowest_open(w, o->name, s->next));
    us_shard_release(sent->shard, sent);
    if (--s->open == 0) /* ended ones go first, the latest before all */
        s->rested = s->ended ? UINT64_MAX / 2 - ++w->rank_ended : UINT64_MAX / 2 + ++w->tick;
}

static void play(uint64_t stream) {
    static struct world w;
    memset(&w, 0, sizeof w);
    w.prng = prng_start(stream);
    failmem_init(&w.mem);
    struct us_lane_map map = {.layout = US_LAYOUT_HASH, .lanes = LANES,
                              .partitions = (int32_t)prng_between(&w.prng, 1, 8)};
    CHECK(us_salt_pattern_parse("#<k>", &map.pattern));
    w.first = prng_below(&w.prng, 2);
    w.most = (unsigned)prng_between(&w.prng, 1, NAMES);
    uint64_t epoch = prng_chance(&w.prng, 50) ? 0 : 7;
    unsigned settled = (unsigned)prng_between(&w.prng, 30, 90);
    CHECK(us_senders_init(&w.senders, &w.mem.mem, &map, w.first, epoch, w.most));
    for (int i = 0; i < STEPS; i++) {
        if (prng_chance(&w.prng, settled))
            settle(&w);
        else
            produce(&w);
        CHECK_U64(us_senders_count(&w.senders), w.count);
        CHECK_U64(atomic_load(&w.senders.evicted), w.evicted);
    }
    us_senders_destroy(&w.senders);
    CHECK(failmem_is_balanced(&w.mem));
}

TEST(producer, behaves_as_the_model) {
    for (uint64_t stream = 0; stream < STREAMS; stream++)
        play(stream);
}
