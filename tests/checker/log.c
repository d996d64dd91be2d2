/* SPDX-License-Identifier: BSD-2-Clause */
#include "log.h"
#include <pthread.h>
#include <string.h>

struct name {
    char *text;
    size_t len;
};

struct checker_log {
    pthread_mutex_t lock; /* of what appends */
    struct checker_entry *entries;
    size_t count, room, records;
    struct checker_gap_entry *gaps;
    size_t gap_count, gap_room;
    struct name *names;
    uint32_t name_count, name_room;
    uint32_t *table; /* open addressing; index + 1 of a name, 0 = free */
    uint32_t table_size;
    uint32_t recent; /* name that was looked up last */
    int32_t partitions;
};

static void *grown(void *ptr, size_t count, size_t size) {
    void *more = realloc(ptr, count * size);
    if (!more) {
        fprintf(stderr, "checker: out of memory\n");
        exit(70);
    }
    return more;
}

void *checker_alloc(size_t count, size_t size) {
    return memset(grown(NULL, count ? count : 1, size), 0, (count ? count : 1) * size);
}

checker_log_t *checker_log_new(void) {
    checker_log_t *log = checker_alloc(1, sizeof *log);
    log->table_size = 1024;
    log->table = checker_alloc(log->table_size, sizeof *log->table);
    pthread_mutex_init(&log->lock, NULL);
    return log;
}

void checker_log_free(checker_log_t *log) {
    uint32_t i;
    if (!log)
        return;
    for (i = 0; i < log->name_count; i++)
        free(log->names[i].text);
    pthread_mutex_destroy(&log->lock);
    free(log->names);
    free(log->table);
    free(log->entries);
    free(log->gaps);
    free(log);
}

/* FNV-1a, 32 bits. */
static uint32_t hash(const char *name, size_t len) {
    uint32_t h = 2166136261u;
    size_t i;
    for (i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h;
}

static int is(const struct name *name, const char *text, size_t len) {
    return name->len == len && memcmp(name->text, text, len) == 0;
}

/* Slot of the table that holds the name, or the free one where it belongs. */
static uint32_t slot(const checker_log_t *log, const char *name, size_t len) {
    uint32_t at = hash(name, len) & (log->table_size - 1);
    while (log->table[at] && !is(&log->names[log->table[at] - 1], name, len))
        at = (at + 1) & (log->table_size - 1);
    return at;
}

static void widen(checker_log_t *log) {
    uint32_t i;
    free(log->table);
    log->table_size *= 2;
    log->table = checker_alloc(log->table_size, sizeof *log->table);
    for (i = 0; i < log->name_count; i++)
        log->table[slot(log, log->names[i].text, log->names[i].len)] = i + 1;
}

static uint32_t intern(checker_log_t *log, const char *text, size_t len) {
    uint32_t at;
    if (log->recent < log->name_count && is(&log->names[log->recent], text, len))
        return log->recent;
    at = slot(log, text, len);
    if (!log->table[at]) {
        struct name *name;
        if (log->name_count == log->name_room) {
            log->name_room = log->name_room ? log->name_room * 2 : 64;
            log->names = grown(log->names, log->name_room, sizeof *log->names);
        }
        name = &log->names[log->name_count++];
        name->text = checker_alloc(len + 1, 1);
        name->len = len;
        memcpy(name->text, text, len);
        log->table[at] = log->name_count;
        log->recent = log->name_count - 1;
        if (log->name_count > log->table_size / 2)
            widen(log);
        return log->recent;
    }
    return log->recent = log->table[at] - 1;
}

static void append(checker_log_t *log, const struct checker_entry *entry) {
    if (log->count == log->room) {
        log->room = log->room ? log->room * 2 : 1024;
        log->entries = grown(log->entries, log->room, sizeof *log->entries);
    }
    log->entries[log->count++] = *entry;
    if (entry->partition >= log->partitions)
        log->partitions = entry->partition + 1;
}

static void append_alone(checker_log_t *log, const struct checker_entry *entry) {
    pthread_mutex_lock(&log->lock);
    append(log, entry);
    pthread_mutex_unlock(&log->lock);
}

void checker_log_record(checker_log_t *log, const struct checker_record *record) {
    pthread_mutex_lock(&log->lock);
    struct checker_entry entry = {
        .kind = CHECKER_RECORD,
        .session = intern(log, record->session, record->session_len),
        .partition = record->partition < 0 ? 0 : record->partition,
        .offset = record->offset,
        .epoch = record->epoch,
        .seq = record->seq,
        .at = record->at,
    };
    append(log, &entry);
    log->records++;
    pthread_mutex_unlock(&log->lock);
}

void checker_log_run(checker_log_t *log) {
    append_alone(log, &(struct checker_entry){.kind = CHECKER_RUN});
}

void checker_log_commit(checker_log_t *log, int32_t partition, int64_t offset) {
    append_alone(log, &(struct checker_entry){.kind = CHECKER_COMMIT, .partition = partition, .offset = offset});
}

void checker_log_gap(checker_log_t *log, const struct checker_gap *gap) {
    pthread_mutex_lock(&log->lock);
    if (log->gap_count == log->gap_room) {
        log->gap_room = log->gap_room ? log->gap_room * 2 : 64;
        log->gaps = grown(log->gaps, log->gap_room, sizeof *log->gaps);
    }
    log->gaps[log->gap_count++] = (struct checker_gap_entry){
        intern(log, gap->session, gap->session_len), gap->epoch, gap->first, gap->last, gap->due};
    pthread_mutex_unlock(&log->lock);
}

size_t checker_log_gaps(const checker_log_t *log) {
    return log->gap_count;
}

const struct checker_gap_entry *checker_log_gap_at(const checker_log_t *log, size_t index) {
    return &log->gaps[index];
}

size_t checker_log_records(const checker_log_t *log) {
    return log->records;
}

size_t checker_log_size(const checker_log_t *log) {
    return log->count;
}

const struct checker_entry *checker_log_at(const checker_log_t *log, size_t index) {
    return &log->entries[index];
}

uint32_t checker_log_names(const checker_log_t *log) {
    return log->name_count;
}

const char *checker_log_name(const checker_log_t *log, uint32_t session, size_t *len) {
    *len = log->names[session].len;
    return log->names[session].text;
}

uint32_t checker_log_find(const checker_log_t *log, const char *name, size_t len) {
    uint32_t at = slot(log, name, len);
    return log->table[at] ? log->table[at] - 1 : UINT32_MAX;
}

int32_t checker_log_partitions(const checker_log_t *log) {
    return log->partitions;
}
