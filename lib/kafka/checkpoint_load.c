/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a lane set has come here whole, its cursors are read before any of its records. In which order things happen
 * matters (checkpoint_topic.h): the committed offsets are asked for at the assignment, then the entries are read to
 * the end that the log has after that.
 *
 * A partition waits while its set is incomplete, loads while its cursors are read, and is read itself after that. If a
 * part of a set goes and comes back, what stayed here is read again from what is committed by then: another
 * member may have had the set in between.
 */
#include <base/mem.h>
#include <inttypes.h>
#include <kafka/checkpoint.h>
#include <string.h>

#define RETRY_NS (1000 * US_MS)
#define TELL_NS (1000 * US_MS)
#define STEP_ENTRIES 16384
#define STEP_MS 20
#define SEEK_MS 1000
#define ASK_MS 500 /* for committed offsets, the first time */
#define ASK_MOST_MS 3000

static bool is_callback(const struct unsalt *u) {
    return u->conf->checkpoint == US_CHECKPOINTS_CALLBACK;
}

/* ---- what a partition's entry said */

bool us_partition_found(struct us_partition *p, int64_t frontier, const unsalt_core_range_t *ranges, uint32_t n) {
    us_free(&us_mem_default, p->found_done);
    p->found_done = NULL;
    p->found_count = 0;
    p->found = frontier;
    if (n > 0) {
        p->found_done = us_calloc(&us_mem_default, n, sizeof(*ranges));
        if (!p->found_done) {
            p->found = -1;
            return false;
        }
        memcpy(p->found_done, ranges, n * sizeof(*ranges));
        p->found_count = n;
    }
    return true;
}

/* ---- loads */

struct us_load_set *us_load_of(const struct unsalt *u, int32_t partition, const char *base, size_t base_len) {
    const struct us_checkpoint *c = u->checkpoint;
    for (uint32_t i = 0; i < c->load_count; i++) {
        struct us_load_set *load = &c->loads[i];
        const char *mine = us_checkpoint_base(u, load->set);
        if (load->partition == partition && strlen(mine) == base_len && memcmp(mine, base, base_len) == 0) {
            return load;
        }
    }
    return NULL;
}

static struct us_load_set *load_of_set(const struct us_checkpoint *c, uint32_t set) {
    for (uint32_t i = 0; i < c->load_count; i++) {
        if (c->loads[i].set == set) {
            return &c->loads[i];
        }
    }
    return NULL;
}

static bool add_load(struct unsalt *u, uint32_t set) {
    struct us_checkpoint *c = u->checkpoint;
    struct us_load_set *loads =
        us_array_room(&us_mem_default, c->loads, &c->load_capacity, c->load_count, 8, sizeof(*loads));
    if (!loads) {
        return false;
    }
    c->loads = loads;
    c->loads[c->load_count++] =
        (struct us_load_set){.set = set, .partition = us_checkpoint_partition_of(u, set), .began = us_clock_now()};
    return true;
}

static void remove_load(struct us_checkpoint *c, struct us_load_set *load) {
    *load = c->loads[--c->load_count];
}

/* Sets the state of what is assigned of a set. */
static void set_state(struct unsalt *u, uint32_t set, enum us_load from, enum us_load to) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (p->assigned && p->set == set && p->load == from) {
            p->load = to;
            atomic_store(&p->ready, true);
        }
    }
}

/* The partitions of a set that are assigned, with their start offsets. */
static rd_kafka_topic_partition_list_t *list_of(const struct unsalt *u, uint32_t set) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && p->set == set) {
            rd_kafka_topic_partition_list_add(list, p->topic, p->partition)->offset = p->start;
        }
    }
    return list;
}

static void forget_found(struct unsalt *u, uint32_t set) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        if (u->partitions[i]->assigned && u->partitions[i]->set == set) {
            us_partition_found(u->partitions[i], -1, NULL, 0);
        }
    }
}

void us_load_void(struct unsalt *u, struct us_load_set *load) {
    uint32_t set = load->set;
    if (load->entries > 0) {
        /* Nothing was read yet, so the core may simply forget the set. */
        rd_kafka_topic_partition_list_t *list = list_of(u, set);
        us_assign_reopen(u, list);
        rd_kafka_topic_partition_list_destroy(list);
        load->entries = 0;
    }
    forget_found(u, set);
}

/* ---- the end of a load */

/*
 * Do cursors and offsets belong together? They were committed together, so an offset that is another than its entry
 * says was set by somebody else; and so was one without an entry, if the set has cursors. An entry whose offset the
 * group hasn't any more is of a group or a topic that was deleted, or has expired, also if reading begins just where it
 * says: the offsets that it calls done may be those of another log. Whoever gives a start of their own says that it
 * fits.
 */
static bool fits(const struct unsalt *u, const struct us_load_set *load, const struct us_partition *p) {
    if (p->found < 0) {
        return p->origin != US_ORIGIN_COMMITTED || load->entries == 0;
    }
    return p->found == p->start && (is_callback(u) || p->origin != US_ORIGIN_UNCOMMITTED);
}

static const struct us_partition *misfit(const struct unsalt *u, const struct us_load_set *load) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && p->set == load->set && !fits(u, load, p)) {
            return p;
        }
    }
    return NULL;
}

static void ignore(struct unsalt *u, struct us_load_set *load, const struct us_partition *p) {
    const char *none = p->origin == US_ORIGIN_UNCOMMITTED ? ", where nothing is committed" : "";
    us_checkpoint_event(u, UNSALT_EVENT_CHECKPOINT_IGNORED, p->topic, p->partition, load->entries,
                        "%s [%d] begins at offset %" PRId64 "%s, its checkpoint is for %" PRId64 ": %" PRIu64
                        " cursors of its lane set are void, sessions start as without a checkpoint",
                        p->topic, (int)p->partition, p->start, none, p->found, load->entries);
    us_load_void(u, load);
    load->era++;
}

/*
 * checkpoint=callback: reading begins where the entries say. False: not all could be moved. Such a partition stays
 * where it was in the core, too; since a seek that failed may have happened all the same, it is read from what is
 * committed if it isn't moved later.
 */
static bool move_starts(struct unsalt *u, uint32_t set) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(4);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && p->set == set && p->found >= 0 && p->found != p->start &&
            unsalt_core_start(u->core, p->part, p->found, p->log_start) == UNSALT_CORE_OK) {
            rd_kafka_topic_partition_list_add(list, p->topic, p->partition)->offset = p->found;
        }
    }
    us_start_raise(u, list);
    rd_kafka_error_t *error = list->cnt > 0 ? us_seek(u, list, SEEK_MS) : NULL;
    bool moved = true;
    for (int i = 0; i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (error || list->elems[i].err) {
            unsalt_core_start(u->core, p->part, p->start, p->log_start);
            p->stale = true;
            moved = false;
        } else {
            p->start = p->found;
        }
    }
    rd_kafka_error_destroy(error);
    rd_kafka_topic_partition_list_destroy(list);
    return moved;
}

static void open_reading(struct unsalt *u, const struct us_load_set *load) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (!p->assigned || p->set != load->set) {
            continue;
        }
        if (unsalt_core_done_before(u->core, p->part, p->found_done, p->found_count) != UNSALT_CORE_OK) {
            us_log(u, 3, "%s [%d]: what was done beyond its offset isn't known: it may come again", p->topic,
                   (int)p->partition);
        }
        us_partition_found(p, -1, NULL, 0);
        p->era = load->era;
        p->saved = 0;
        p->stale = false;
    }
    set_state(u, load->set, US_LOAD_LOADING, US_LOAD_NONE);
}

void us_load_done(struct unsalt *u, struct us_load_set *load) {
    if (is_callback(u) && !move_starts(u, load->set)) {
        load->moving = true;
        load->ask_at = us_clock_now() + RETRY_NS;
        us_checkpoint_event(u, UNSALT_EVENT_CHECKPOINT_PROGRESS, us_checkpoint_base(u, load->set), load->partition,
                            load->entries, "%" PRIu64 " cursors of lane set %d of %s; it waits, since reading can't be "
                            "moved to where they say yet", load->entries, (int)load->partition,
                            us_checkpoint_base(u, load->set));
        return;
    }
    struct us_load_set mine = *load;
    const struct us_partition *p = misfit(u, &mine);
    if (p) {
        ignore(u, &mine, p);
    }
    open_reading(u, &mine);
    remove_load(u->checkpoint, load_of_set(u->checkpoint, mine.set));
    u->own.checkpoint_loads++;
    if (u->before.commit_wanted) {
        u->commit_at = 0; /* start positions that nobody has committed */
    }
    uint64_t took = us_clock_now() - mine.began;
    const char *base = us_checkpoint_base(u, mine.set);
    us_checkpoint_event(u, UNSALT_EVENT_CHECKPOINT_LOADED, base, mine.partition, mine.entries,
                        "%" PRIu64 " entries of lane set %d of %s in %" PRIu64 " ms", mine.entries,
                        (int)mine.partition, base, took / US_MS);
}

/* ---- the beginning of a load */

/* A set that waits, and is here whole. */
static bool is_due(const struct us_partition *p) {
    return p->assigned && !p->revoking && !p->gated && !p->under_way && p->load == US_LOAD_WAITING;
}

/*
 * Opens in the core anew what was asked for and is known, and with it the rest of its sets: none of it was read. Not a
 * set that is loading: its cursors are in the core (checkpoint=callback, and reading can't be moved to them yet).
 */
static void reopen_sets(struct unsalt *u) {
    rd_kafka_topic_partition_list_t *again = rd_kafka_topic_partition_list_new(8);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        bool meant = false;
        for (uint32_t k = 0; p->assigned && !meant && k < u->partition_count; k++) {
            const struct us_partition *other = u->partitions[k];
            meant = other->assigned && other->set == p->set && other->load == US_LOAD_WAITING && other->stale &&
                    other->start >= 0;
        }
        if (meant) {
            rd_kafka_topic_partition_list_add(again, p->topic, p->partition)->offset = p->start;
        }
    }
    us_assign_reopen(u, again);
    rd_kafka_topic_partition_list_destroy(again);
}

/* The committed offsets are known of these: they are read from there. */
static void move_to(struct unsalt *u, rd_kafka_topic_partition_list_t *known) {
    rd_kafka_error_t *error = us_seek(u, known, SEEK_MS);
    bool failed = error != NULL;
    rd_kafka_error_destroy(error);
    reopen_sets(u);
    for (int i = 0; i < known->cnt; i++) {
        struct us_partition *p = us_partition_find(u, known->elems[i].topic, known->elems[i].partition);
        p->stale = failed || known->elems[i].err || !p->assigned;
    }
}

/*
 * What stayed here of a set that was incomplete meanwhile is read again from what is committed now. So is what had no
 * start at the assignment, since cursors fit to a certain one only. All sets are asked for at once: while offsets are
 * pending in a transaction the question takes all of its time. It gets more each time, since others are kept waiting.
 */
static void refresh(struct unsalt *u) {
    struct us_checkpoint *c = u->checkpoint;
    rd_kafka_topic_partition_list_t *ask = rd_kafka_topic_partition_list_new(8);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        p->stale |= is_due(p) && p->start < 0 && !is_callback(u);
        if (is_due(p) && p->stale) {
            rd_kafka_topic_partition_list_add(ask, p->topic, p->partition)->offset = RD_KAFKA_OFFSET_STORED;
        }
    }
    if (ask->cnt > 0) {
        c->ask_ms = c->ask_ms < ASK_MOST_MS ? c->ask_ms + ASK_MS : ASK_MOST_MS;
        us_start_again(u, ask, c->ask_ms);
        rd_kafka_topic_partition_list_t *known = rd_kafka_topic_partition_list_new(ask->cnt);
        for (int i = 0; i < ask->cnt; i++) {
            const rd_kafka_topic_partition_t *one = &ask->elems[i];
            if (!one->err && one->offset >= 0) {
                rd_kafka_topic_partition_list_add(known, one->topic, one->partition)->offset = one->offset;
            }
        }
        c->ask_ms = known->cnt == ask->cnt ? 0 : c->ask_ms;
        if (known->cnt > 0) {
            move_to(u, known);
        }
        rd_kafka_topic_partition_list_destroy(known);
    }
    rd_kafka_topic_partition_list_destroy(ask);
}

static bool is_stale(const struct unsalt *u, uint32_t set) {
    bool stale = false;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        stale |= p->assigned && p->set == set && (p->stale || p->under_way);
    }
    return stale;
}

/* Begins to read the cursors of a set that is here whole. False: not now. */
static bool begin(struct unsalt *u, uint32_t set) {
    struct us_checkpoint *c = u->checkpoint;
    char errstr[256];
    int32_t partition = us_checkpoint_partition_of(u, set);
    if (is_stale(u, set)) {
        us_checkpoint_event(u, UNSALT_EVENT_CHECKPOINT_PROGRESS, us_checkpoint_base(u, set), partition, 0,
                            "the committed offsets of lane set %d of %s are not known yet: it waits, for a coordinator "
                            "or for the end of another member's transaction",
                            (int)partition, us_checkpoint_base(u, set));
        return false;
    }
    if (partition < 0) { /* beyond the configured N: it has no entries */
        set_state(u, set, US_LOAD_WAITING, US_LOAD_NONE);
        return true;
    }
    if (!add_load(u, set)) {
        return false;
    }
    forget_found(u, set);
    set_state(u, set, US_LOAD_WAITING, US_LOAD_LOADING);
    c->tell_at = c->tell_at == UNSALT_NEVER ? us_clock_now() + TELL_NS : c->tell_at;
    snprintf(errstr, sizeof(errstr), "unsalt_subscribe() or unsalt_assign() was not called");
    if (!is_callback(u) &&
        (!c->reader || us_checkpoint_reader_begin(c->reader, &partition, 1, errstr, sizeof(errstr)))) {
        us_log(u, 3, "the checkpoint of lane set %d can't be read: %s", (int)partition, errstr);
        set_state(u, set, US_LOAD_LOADING, US_LOAD_WAITING);
        remove_load(c, load_of_set(c, set));
        return false;
    }
    return true;
}

static bool is_loading(const struct us_checkpoint *c, int32_t partition) {
    for (uint32_t i = 0; i < c->load_count; i++) {
        if (c->loads[i].partition == partition) {
            return true;
        }
    }
    return false;
}

/* A set that is loading and has lost a partition, or all. */
static void drop_broken_loads(struct unsalt *u) {
    struct us_checkpoint *c = u->checkpoint;
    for (uint32_t i = c->load_count; i-- > 0;) {
        uint32_t set = c->loads[i].set, here = 0, gated = 0;
        for (uint32_t k = 0; k < u->partition_count; k++) {
            const struct us_partition *p = u->partitions[k];
            here += p->assigned && p->set == set;
            gated += p->assigned && p->set == set && (p->gated || p->load != US_LOAD_LOADING);
        }
        if (here > 0 && gated == 0) {
            continue;
        }
        if (here > 0) {
            us_load_void(u, &c->loads[i]);
        }
        set_state(u, set, US_LOAD_LOADING, US_LOAD_WAITING);
        int32_t partition = c->loads[i].partition;
        remove_load(c, &c->loads[i]);
        if (c->reader && !is_loading(c, partition)) {
            us_checkpoint_reader_cancel(c->reader, partition);
        }
    }
}

void us_load_leave(struct unsalt *u) {
    rd_kafka_topic_partition_list_t *list = NULL;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (p->assigned && p->gated && !p->revoking && p->load == US_LOAD_NONE) {
            p->load = US_LOAD_WAITING;
            p->stale = true;
            list = list ? list : rd_kafka_topic_partition_list_new(4);
            rd_kafka_topic_partition_list_add(list, p->topic, p->partition)->offset = p->start;
        }
    }
    if (list) {
        us_assign_reopen(u, list);
        rd_kafka_topic_partition_list_destroy(list);
    }
}

/* Due, and none of its set before it. */
static bool is_first_due(const struct unsalt *u, uint32_t index) {
    bool due = is_due(u->partitions[index]);
    for (uint32_t i = 0; due && i < index; i++) {
        due = u->partitions[i]->set != u->partitions[index]->set || !is_due(u->partitions[i]);
    }
    return due;
}

/* Which partitions wait, and which sets are whole now. */
static void look(struct unsalt *u, uint64_t now) {
    struct us_checkpoint *c = u->checkpoint;
    us_load_leave(u);
    drop_broken_loads(u);
    if (c->retry_at != UNSALT_NEVER && now < c->retry_at) {
        return;
    }
    c->retry_at = UNSALT_NEVER;
    refresh(u);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        if (is_first_due(u, i) && !begin(u, u->partitions[i]->set)) {
            c->retry_at = us_clock_now() + RETRY_NS;
        }
    }
}

void us_load_again(struct unsalt *u) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        bool told = is_callback(u) && p->load == US_LOAD_LOADING; /* void: drop_broken_loads() */
        if (p->assigned && !p->revoking && (told || p->load == US_LOAD_NONE)) {
            p->load = US_LOAD_WAITING;
            p->stale = true;
        }
    }
    look(u, us_clock_now());
}

/* ---- once a round */

static void tell_progress(struct unsalt *u, const struct us_load_set *load) {
    static const char *const waits[] = {
        [US_CHECKPOINT_IDLE] = "not begun",
        [US_CHECKPOINT_ENTRIES] = "reading",
        [US_CHECKPOINT_END] = "the leader hasn't said where the log ends",
        [US_CHECKPOINT_TRANSACTION] = "waiting for the end of another member's transaction",
        [US_CHECKPOINT_COMPLETE] = "complete",
    };
    struct us_checkpoint_progress progress;
    us_checkpoint_reader_progress(u->checkpoint->reader, load->partition, &progress);
    us_checkpoint_event(u, UNSALT_EVENT_CHECKPOINT_PROGRESS, us_checkpoint_base(u, load->set), load->partition,
                        load->entries, "%" PRIu64 " cursors of lane set %d of %s, offset %" PRId64 " of %" PRId64
                        ": %s%s%s", load->entries, (int)load->partition, us_checkpoint_base(u, load->set),
                        progress.position, progress.end, waits[progress.wait], progress.err ? ", " : "",
                        progress.err ? rd_kafka_err2str(progress.err) : "");
}

static bool step(struct unsalt *u, uint64_t now) {
    struct us_checkpoint *c = u->checkpoint;
    if (is_callback(u)) {
        for (uint32_t i = c->load_count; i-- > 0;) {
            if (now < c->loads[i].ask_at) {
                continue;
            }
            if (c->loads[i].moving || us_callback_load(u, &c->loads[i])) {
                us_load_done(u, &c->loads[i]);
            } else {
                us_load_void(u, &c->loads[i]);
                c->loads[i].ask_at = now + RETRY_NS;
            }
        }
        return false;
    }
    bool more = us_checkpoint_reader_step(c->reader, STEP_ENTRIES, STEP_MS);
    for (uint32_t i = 0; now >= c->tell_at && i < c->load_count; i++) {
        tell_progress(u, &c->loads[i]);
    }
    if (now >= c->tell_at) {
        c->tell_at = now + TELL_NS;
    }
    return more;
}

bool us_checkpoint_round(struct unsalt *u, uint64_t now) {
    struct us_checkpoint *c = u->checkpoint;
    if (!c) {
        return false;
    }
    us_checkpoint_commit_round(u, now);
    look(u, now);
    if (c->load_count == 0) {
        c->tell_at = UNSALT_NEVER;
        return false;
    }
    return step(u, now);
}

void us_checkpoint_opened(const struct unsalt *u, struct us_partition *p) {
    p->load = u->checkpoint ? US_LOAD_WAITING : US_LOAD_NONE;
    p->stale = p->under_way && p->origin != US_ORIGIN_GIVEN; /* then its start was asked for too early */
    p->era = 0;
    p->saved = p->saving = 0;
}

void us_checkpoint_void(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; u->checkpoint && i < list->cnt; i++) {
        const struct us_partition *moved = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        uint32_t era = moved->era + 1;
        for (uint32_t k = 0; k < u->partition_count; k++) {
            struct us_partition *p = u->partitions[k];
            if (p->assigned && p->set == moved->set) {
                p->era = era;
                p->saved = 0;
            }
        }
    }
}

uint64_t us_checkpoint_deadline(const struct unsalt *u) {
    const struct us_checkpoint *c = u->checkpoint;
    uint64_t next = UNSALT_NEVER;
    if (!c) {
        return next;
    }
    for (uint32_t i = 0; is_callback(u) && i < c->load_count; i++) {
        next = c->loads[i].ask_at < next ? c->loads[i].ask_at : next;
    }
    next = c->reader && c->tell_at < next ? c->tell_at : next;
    return c->retry_at < next ? c->retry_at : next;
}
