/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of a checkpoint, as bytes: docs/checkpoint-format.md. An entry is a key and a value, since it lives in a
 * compacted topic or in a table of the application's database. Of a session it says how far it has come, of a
 * partition which offsets above its frontier are done.
 *
 * Values in, values out: nothing here allocates, keeps state or takes a lock, so that all of it may be called on any
 * thread. Whatever is read came from outside: it is checked to the last bit, and a fault gives no cursor.
 */
#ifndef US_CODEC_CHECKPOINT_H
#define US_CODEC_CHECKPOINT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unsalt/core.h>
#include <unsalt/wire.h>

/* Longest name of a topic that Kafka allows, and longest session id. */
#define US_CHECKPOINT_TOPIC_MAX 249
#define US_CHECKPOINT_SESSION_MAX 4096

/*
 * X(CONSTANT, text): what is wrong with an entry, by the words of the page's rules. A writer refuses with the same word
 * what a reader would refuse; only a writer says ROOM.
 */
#define US_CHECKPOINT_FAULTS(X)                                                                                       \
    X(OK, "well formed")                                                                                              \
    X(KEY, "the key is not that of an entry")                                                                         \
    X(GONE, "the entry was removed")                                                                                  \
    X(SHORT, "the value ends too early")                                                                              \
    X(CHECKSUM, "the checksum is not that of key and value")                                                          \
    X(NEWER, "a kind or a version that this reader does not know")                                                    \
    X(NUMBER, "a number is out of its bounds, or has more bytes than it needs")                                       \
    X(CURSOR, "the cursor is 2^64 - 1, or the frontier is above 2^63 - 1")                                            \
    X(FLOOR, "the floor lies above the cursor")                                                                       \
    X(COUNT, "more ranges than there are bytes for")                                                                  \
    X(RANGE, "a range is out of order or out of bounds")                                                              \
    X(OVERLAP, "a skipped range meets the cursor or what is done")                                                    \
    X(ROOM, "there is no room to write it")

enum us_checkpoint_fault {
#define X(C, text) US_CHECKPOINT_##C,
    US_CHECKPOINT_FAULTS(X)
#undef X
    US_CHECKPOINT__CNT /* how many there are */
};
/* The text of a fault; "?" out of range. */
const char *us_checkpoint_fault_text(enum us_checkpoint_fault fault);
/* Is it none of OK, GONE, NEWER and ROOM? Then the entry can't be trusted at all. */
bool us_checkpoint_is_corrupt(enum us_checkpoint_fault fault);

/* ---- keys */

/*
 * Writes the key of a session's entry.
 *   topic    base topic of the lane set, 1..US_CHECKPOINT_TOPIC_MAX bytes; not terminated.
 *   session  its id, 1..US_CHECKPOINT_SESSION_MAX bytes of any kind.
 *   key      room for `size` bytes; UNSALT_CHECKPOINT_KEY_MAX is always enough.
 * Returns the key's length; 0 if a length is out of range or there is no room: then nothing is written.
 */
size_t us_checkpoint_session_key(const char *topic, size_t topic_len, const void *session, size_t session_len,
                                 void *key, size_t size);
/* Likewise the key of a partition's entry: the topic is the partition's own (a lane topic), partition >= 0. */
size_t us_checkpoint_partition_key(const char *topic, size_t topic_len, int32_t partition, void *key, size_t size);

/* ---- writing */

/* What is to be said of a session. The arrays are borrowed, sorted, without overlap; ranges that adjoin are joined. */
struct us_checkpoint_session {
    uint64_t epoch;
    uint64_t cursor; /* the lowest number of this epoch that is not done, 0..2^64 - 2 */
    uint64_t floor;  /* whether numbers below it were skipped is unknown; 0..cursor */
    const unsalt_core_range_t *done; /* done all the same: above the cursor */
    uint32_t done_count;
    /*
     * Given up: below the cursor or above it, never the cursor and never done. A record that was handed out as late and
     * isn't acknowledged belongs here still, or its second copy would pass for a duplicate. What is below the floor
     * isn't written, since the floor says as much.
     */
    const unsalt_core_range_t *skipped;
    uint32_t skipped_count;
    uint32_t era; /* of the lane set: entries of a lower one are void; any, 0 takes no room */
};

/* What is to be said of a partition; the array as above. */
struct us_checkpoint_partition {
    int64_t frontier;            /* the offset that is committed, 0..2^63 - 1 */
    const unsalt_core_range_t *done; /* offsets above the frontier whose records, if any, are done; to 2^63 - 1 */
    uint32_t done_count;
    uint32_t era; /* likewise */
};

/* Enough room for every value with so many ranges, in both lists together. */
#define US_CHECKPOINT_VALUE_ROOM(ranges) (51 + 20 * (size_t)(ranges))

/*
 * Writes the value of a session's entry.
 *   key, key_len  from us_checkpoint_session_key(); it goes into the checksum.
 *   value, size   room for the value; may be NULL when size is 0.
 *   len           set to the length on OK, and to the length that is needed on ROOM.
 * Returns OK; ROOM; KEY, CURSOR, FLOOR, RANGE or OVERLAP for what a reader would refuse. Unless OK is returned,
 * nothing is written to the value. O(ranges).
 */
enum us_checkpoint_fault us_checkpoint_write_session(const struct us_checkpoint_session *session, const void *key,
                                                     size_t key_len, void *value, size_t size, size_t *len);
/*
 * Likewise the value of a partition's entry, but ranges that don't fit are left out from the highest down, and the
 * entry says so (UNSALT_CHECKPOINT_TRUNCATED): their records will be read and handed out again.
 *   kept  set on OK to the number of ranges of the array that are in it.
 * Returns ROOM only if it has no room even without ranges.
 */
enum us_checkpoint_fault us_checkpoint_write_partition(const struct us_checkpoint_partition *partition,
                                                       const void *key, size_t key_len, void *value, size_t size,
                                                       size_t *len, uint32_t *kept);

/* ---- reading */

/* A list of ranges that still stands in the value as it was written: ascending, never adjoining. */
struct us_checkpoint_ranges {
    const uint8_t *at, *end;
    uint64_t base;  /* the lowest number with which the next range may begin */
    uint32_t count; /* ranges still to come */
};

/* What an entry says. Pointers lead into the key and the value that were read. */
struct us_checkpoint_fields {
    uint8_t kind;  /* UNSALT_CHECKPOINT_SESSION or _PARTITION; 0: the key was not understood, and all the rest is 0 */
    uint8_t flags; /* as they stand there, unknown ones included */
    const char *topic;
    size_t topic_len;
    const void *session; /* of a session */
    size_t session_len;
    uint32_t era; /* of the lane set; void unless it is the highest of any entry of that set, of both kinds */
    uint64_t epoch, cursor, floor;
    int32_t partition; /* of a partition */
    int64_t frontier;
    struct us_checkpoint_ranges done, skipped; /* a partition has none that are skipped */
};

/*
 * Reads an entry.
 *   key, value  borrowed, also by *entry. value = NULL: the entry was removed (a tombstone in the topic).
 *   entry       filled on OK. On other faults than KEY what the key says is filled in, so that an event can name it
 *               (unless the kind is unknown), and all the rest is 0.
 * Returns OK or the first fault by the order of the page's rules. O(ranges), which are all checked here.
 */
enum us_checkpoint_fault us_checkpoint_read(const void *key, size_t key_len, const void *value, size_t value_len,
                                            struct us_checkpoint_fields *entry);
/*
 * Takes the next range off a list that us_checkpoint_read() has given. Returns false when there is none left. To begin
 * again, take another copy of the list from the entry.
 */
bool us_checkpoint_ranges_next(struct us_checkpoint_ranges *list, unsalt_core_range_t *range);
/* Writes the whole list to an array with room for list->count ranges; the list stays as it is. */
void us_checkpoint_ranges_copy(const struct us_checkpoint_ranges *list, unsalt_core_range_t *ranges);
#endif
