/* SPDX-License-Identifier: BSD-2-Clause */
/* What the halves of the drive share: drive.c plays, drive_check.c looks. */
#ifndef TESTS_SUPPORT_DRIVE_INNER_H
#define TESTS_SUPPORT_DRIVE_INNER_H
#include <support/drive.h>
#include <support/failmem.h>
#include <support/model.h>

enum { DRIVE_BATCH = 64, DRIVE_EVENTS = 64, DRIVE_SPIN = 20000 };

/* One generation of a partition: what was pushed, in order. */
struct track {
    unsalt_core_partition_t spec;
    bool assigned;
    uint32_t generation;
    struct model_rec **recs;
    size_t n, cap, low; /* everything before `low` is acknowledged */
    int64_t next, position;
    int64_t last_unsequenced;
    bool question;
};

/* What a session released last, for the order that must always hold. */
struct last {
    bool any;
    uint64_t seq, epoch;
    unsigned jumps; /* restarts that were announced and not used yet */
};

struct drive {
    const struct drive_conf *conf;
    unsalt_core_t *core;
    struct failmem mem;
    struct model model;
    struct model_rec *recs;
    size_t rec_n;
    struct track tracks[MODEL_PARTS];
    struct last last[MODEL_SESSIONS];
    uint64_t now, taken, back[UNSALT_STATE__CNT], bytes, out_now;
    unsigned parts;
    char *why;
    size_t why_size;
    bool failed;
    bool forgotten; /* cursors were forgotten: sessions may be met again below what they released */
};

/* Notes the first failure. Returns false. */
__attribute__((format(printf, 2, 3))) bool drive_fail(struct drive *d, const char *format, ...);
/* Follows one record or event of the core. */
bool drive_take_out(struct drive *d, const unsalt_core_out_t *out);
bool drive_note_event(struct drive *d, const unsalt_core_event_t *event);
/* Reads all events; adds their number. */
bool drive_events(struct drive *d, size_t *seen);
/* Pulls at most max records; adds their number. */
bool drive_pull(struct drive *d, size_t max, size_t *pulled);
/* Expires until nothing is due, pulling (a lazy drive only if `whole`) and reading events; then checks everything. */
bool drive_rest(struct drive *d, bool whole);
/* The lowest offset that is not acknowledged; what comes next if all are. */
int64_t drive_lowest(struct track *track);
#endif
