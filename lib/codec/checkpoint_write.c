/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing of values: everything is checked and measured first, then written in one go. */
#include <codec/checkpoint_inner.h>
#include <codec/varint.h>
#include <string.h>

/* The ranges of an array, those that adjoin as one, without what lies below the base. */
struct joined {
    const unsalt_core_range_t *ranges;
    uint32_t count, at;
    uint64_t base;
};

static bool next_joined(struct joined *in, unsalt_core_range_t *range) {
    while (in->at < in->count && in->ranges[in->at].last < in->base)
        in->at++;
    if (in->at == in->count)
        return false;
    *range = in->ranges[in->at++];
    if (range->first < in->base)
        range->first = in->base;
    while (in->at < in->count && in->ranges[in->at].first == range->last + 1)
        range->last = in->ranges[in->at++].last;
    return true;
}

/* Is the array in order, and within base..last? */
static bool in_order(const unsalt_core_range_t *ranges, uint32_t count, uint64_t base, uint64_t last) {
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].first < base || ranges[i].first > ranges[i].last || ranges[i].last > last)
            return false;
        base = ranges[i].last + 1; /* last < UINT64_MAX */
    }
    return true;
}

/* Neither the cursor nor what is done is among the skipped ranges. Both arrays are in order. */
static bool apart(const struct us_checkpoint_session *session) {
    for (uint32_t i = 0, k = 0; i < session->skipped_count; i++) {
        const unsalt_core_range_t *range = &session->skipped[i];
        if (range->first <= session->cursor && session->cursor <= range->last)
            return false;
        while (k < session->done_count && session->done[k].last < range->first)
            k++;
        if (k < session->done_count && session->done[k].first <= range->last)
            return false;
    }
    return true;
}

/* A list that was measured: how much of the array is in it, in how many coded ranges and bytes. */
struct measured {
    uint32_t kept, count;
    size_t bytes; /* with the count before it */
};

/* As many of the ranges as fit into `room` bytes, which has room for the count of none. */
static struct measured measure(const unsalt_core_range_t *ranges, uint32_t count, uint64_t base, size_t room) {
    struct joined in = {ranges, count, 0, base};
    struct measured found = {.bytes = 1};
    unsalt_core_range_t range;
    size_t coded = 0;
    while (next_joined(&in, &range)) {
        coded += us_varint_size(range.first - base) + us_varint_size(range.last - range.first);
        size_t bytes = us_varint_size((uint64_t)found.count + 1) + coded;
        if (bytes > room)
            break;
        found = (struct measured){in.at, found.count + 1, bytes};
        base = range.last + 2;
    }
    return found;
}

static uint8_t *put_list(uint8_t *at, const unsalt_core_range_t *ranges, const struct measured *list, uint64_t base) {
    struct joined in = {ranges, list->kept, 0, base};
    unsalt_core_range_t range;
    at += us_varint_write(list->count, at);
    while (next_joined(&in, &range)) {
        at += us_varint_write(range.first - base, at);
        at += us_varint_write(range.last - range.first, at);
        base = range.last + 2;
    }
    return at;
}

/* Version and flags; the checksum follows when all is written. */
static uint8_t *put_head(uint8_t *value, uint8_t flags) {
    value[0] = UNSALT_CHECKPOINT_VERSION;
    value[US_CHECKPOINT_AT_BODY] = flags;
    return value + US_CHECKPOINT_AT_BODY + 1;
}

/* Behind all other fields; era 0 has none. */
static uint8_t era_flag(uint32_t era) {
    return era ? UNSALT_CHECKPOINT_ERA : 0;
}

static size_t era_size(uint32_t era) {
    return era ? us_varint_size(era) : 0;
}

static void put_era(uint8_t *at, uint32_t era) {
    if (era)
        us_varint_write(era, at);
}

static void put_sum(const void *key, size_t key_len, uint8_t *value, size_t len) {
    uint32_t sum = us_checkpoint_sum(key, key_len, value, len);
    for (int i = 0; i < 4; i++)
        value[US_CHECKPOINT_AT_SUM + i] = (uint8_t)(sum >> (24 - 8 * i));
}

static bool is_key_of(uint8_t kind, const void *key, size_t key_len) {
    struct us_checkpoint_fields entry;
    return us_checkpoint_read_key(key, key_len, &entry) && entry.kind == kind;
}

static enum us_checkpoint_fault check_session(const struct us_checkpoint_session *session) {
    if (session->cursor > US_CHECKPOINT_SEQ_LAST)
        return US_CHECKPOINT_CURSOR;
    if (session->floor > session->cursor)
        return US_CHECKPOINT_FLOOR;
    if (!in_order(session->done, session->done_count, session->cursor + 1, US_CHECKPOINT_SEQ_LAST) ||
        !in_order(session->skipped, session->skipped_count, 0, US_CHECKPOINT_SEQ_LAST))
        return US_CHECKPOINT_RANGE;
    return apart(session) ? US_CHECKPOINT_OK : US_CHECKPOINT_OVERLAP;
}

enum us_checkpoint_fault us_checkpoint_write_session(const struct us_checkpoint_session *session, const void *key,
                                                     size_t key_len, void *value, size_t size, size_t *len) {
    if (!is_key_of(UNSALT_CHECKPOINT_SESSION, key, key_len))
        return US_CHECKPOINT_KEY;
    enum us_checkpoint_fault fault = check_session(session);
    if (fault != US_CHECKPOINT_OK)
        return fault;
    uint64_t done_base = session->cursor + 1;
    struct measured done = measure(session->done, session->done_count, done_base, SIZE_MAX);
    struct measured skipped = measure(session->skipped, session->skipped_count, session->floor, SIZE_MAX);
    *len = US_CHECKPOINT_AT_BODY + 1 + us_varint_size(session->epoch) + us_varint_size(session->cursor) +
           us_varint_size(session->floor) + done.bytes + skipped.bytes + era_size(session->era);
    if (*len > size)
        return US_CHECKPOINT_ROOM;
    uint8_t *at = put_head(value, era_flag(session->era));
    at += us_varint_write(session->epoch, at);
    at += us_varint_write(session->cursor, at);
    at += us_varint_write(session->floor, at);
    at = put_list(at, session->done, &done, done_base);
    at = put_list(at, session->skipped, &skipped, session->floor);
    put_era(at, session->era);
    put_sum(key, key_len, value, *len);
    return US_CHECKPOINT_OK;
}

enum us_checkpoint_fault us_checkpoint_write_partition(const struct us_checkpoint_partition *partition,
                                                       const void *key, size_t key_len, void *value, size_t size,
                                                       size_t *len, uint32_t *kept) {
    if (!is_key_of(UNSALT_CHECKPOINT_PARTITION, key, key_len))
        return US_CHECKPOINT_KEY;
    if (partition->frontier < 0)
        return US_CHECKPOINT_CURSOR;
    uint64_t frontier = (uint64_t)partition->frontier;
    if (!in_order(partition->done, partition->done_count, frontier + 1, US_CHECKPOINT_OFFSET_LAST))
        return US_CHECKPOINT_RANGE;
    size_t head = US_CHECKPOINT_AT_BODY + 1 + us_varint_size(frontier) + era_size(partition->era);
    if (size < head + 1) {
        *len = head + 1;
        return US_CHECKPOINT_ROOM;
    }
    struct measured done = measure(partition->done, partition->done_count, frontier + 1, size - head);
    uint8_t truncated = done.kept < partition->done_count ? UNSALT_CHECKPOINT_TRUNCATED : 0;
    uint8_t *at = put_head(value, (uint8_t)(truncated | era_flag(partition->era)));
    at += us_varint_write(frontier, at);
    at = put_list(at, partition->done, &done, frontier + 1);
    put_era(at, partition->era);
    *len = head + done.bytes;
    *kept = done.kept;
    put_sum(key, key_len, value, *len);
    return US_CHECKPOINT_OK;
}
