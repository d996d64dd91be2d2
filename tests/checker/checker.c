/* SPDX-License-Identifier: BSD-2-Clause */
#include "checker.h"
#include "log.h"
#include <inttypes.h>
#include <string.h>

/* An accepted record in the order of names; what the deliveries say about it is added while they are replayed. */
struct expected {
    uint32_t session;
    uint32_t run; /* last run that delivered it, counted from 1; 0: none yet */
    uint64_t epoch, seq;
    uint64_t at;  /* of the copy that was acknowledged first */
};

/* What the replay knows about a session. */
struct progress {
    uint32_t run;              /* run of `last` */
    struct expected *last;     /* highest record delivered in that run */
    struct expected *highest;  /* highest record delivered in any run */
    struct expected *begin;    /* first of its expected records */
    uint64_t place;            /* distinct deliveries so far */
};

struct judge {
    struct expected *all;
    size_t count;
    struct progress *sessions; /* indexed as the accepted log numbers its sessions */
    uint32_t *names;           /* session of the delivered log -> session of the accepted log */
    int64_t *committed;        /* per partition */
    struct checker_report *report;
    const checker_log_t *delivered;
};

static int compare(const void *left, const void *right) {
    const struct expected *a = left, *b = right;
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static void blame(struct judge *judge, const struct checker_entry *entry, const char *what,
                  const struct expected *than) {
    const char *name;
    size_t len;
    char *fault = judge->report->fault;
    int used;
    if (*fault)
        return;
    name = checker_log_name(judge->delivered, entry->session, &len);
    used = snprintf(fault, sizeof judge->report->fault, "session %.*s: %" PRIu64 " %s", len > 64 ? 64 : (int)len, name,
                    entry->seq, what);
    if (than)
        snprintf(fault + used, sizeof judge->report->fault - (size_t)used, " %" PRIu64, than->seq);
}

/* Sorts what was accepted, drops copies, and counts copies and holes. */
static void expect(struct judge *judge, const checker_log_t *accepted) {
    size_t i, n = 0, entries = checker_log_size(accepted);
    struct expected *all = checker_alloc(entries + 1, sizeof *all);
    for (i = 0; i < entries; i++) {
        const struct checker_entry *entry = checker_log_at(accepted, i);
        if (entry->kind == CHECKER_RECORD)
            all[n++] = (struct expected){entry->session, 0, entry->epoch, entry->seq, entry->at};
    }
    qsort(all, n, sizeof *all, compare);
    for (i = 0; i < n; i++) {
        struct expected *last = judge->count ? &all[judge->count - 1] : NULL;
        uint64_t next;
        if (last && compare(last, &all[i]) == 0) {
            judge->report->copies++;
            last->at = all[i].at < last->at ? all[i].at : last->at;
            continue;
        }
        next = last && last->session == all[i].session && last->epoch == all[i].epoch ? last->seq + 1 : 1;
        if (all[i].seq > next) {
            judge->report->holes++;
            judge->report->hole_numbers += all[i].seq - next;
        }
        all[judge->count] = all[i];
        if (!judge->sessions[all[i].session].begin)
            judge->sessions[all[i].session].begin = &all[judge->count];
        judge->count++;
    }
    judge->all = all;
    judge->report->records = judge->count;
}

static struct expected *find(const struct judge *judge, const struct checker_entry *entry) {
    struct expected key = {judge->names[entry->session], 0, entry->epoch, entry->seq, 0};
    if (key.session == UINT32_MAX)
        return NULL;
    return bsearch(&key, judge->all, judge->count, sizeof key, compare);
}

static void place(struct judge *judge, struct progress *session, const struct expected *found) {
    uint64_t at = session->place, due = (uint64_t)(found - session->begin);
    uint64_t way = at > due ? at - due : due - at;
    if (way > judge->report->displacement)
        judge->report->displacement = way;
}

static void replay_record(struct judge *judge, const struct checker_entry *entry, uint32_t run) {
    struct checker_report *report = judge->report;
    struct expected *found = find(judge, entry);
    struct progress *session;
    if (entry->offset < judge->committed[entry->partition]) {
        report->below_commit++;
        blame(judge, entry, "was delivered from below a committed offset", NULL);
    }
    if (!found) {
        report->unknown++;
        blame(judge, entry, "was delivered and had never been accepted", NULL);
        return;
    }
    session = &judge->sessions[found->session];
    if (session->run != run) {
        session->run = run;
        session->last = NULL;
    }
    if (found->run == run) {
        report->repeated++;
        blame(judge, entry, "was delivered twice", NULL);
        return;
    }
    if (session->last && session->last > found) {
        report->out_of_order++;
        blame(judge, entry, "was delivered after", session->last);
    } else if (!found->run && session->highest > found) {
        report->overtaken++;
        blame(judge, entry, "was delivered for the first time after an earlier run had delivered", session->highest);
    }
    if (found->run) {
        report->again++;
    } else {
        report->delivered++;
        if (run == 1)
            place(judge, session, found);
        session->place++;
    }
    found->run = run;
    if (!session->last || session->last < found)
        session->last = found;
    if (!session->highest || session->highest < found)
        session->highest = found;
}

static void replay(struct judge *judge) {
    size_t i, n = checker_log_size(judge->delivered);
    uint32_t run = 1;
    for (i = 0; i < n; i++) {
        const struct checker_entry *entry = checker_log_at(judge->delivered, i);
        switch (entry->kind) {
        case CHECKER_RECORD:
            replay_record(judge, entry, run);
            break;
        case CHECKER_RUN:
            run += i > 0; /* a mark at the very beginning opens the first run */
            break;
        case CHECKER_COMMIT:
            if (entry->offset > judge->committed[entry->partition])
                judge->committed[entry->partition] = entry->offset;
            break;
        }
    }
}

static void count_lost(struct judge *judge, const checker_log_t *accepted) {
    struct checker_report *report = judge->report;
    size_t i, len;
    report->lost = report->records - report->delivered;
    if (!report->lost || report->fault[0])
        return;
    for (i = 0; judge->all[i].run; i++)
        ;
    snprintf(report->fault, sizeof report->fault, "session %.64s: %" PRIu64 " was accepted and never delivered",
             checker_log_name(accepted, judge->all[i].session, &len), judge->all[i].seq);
}

/* The first expected record that isn't below the key. */
static size_t lower_bound(const struct judge *judge, const struct expected *key) {
    size_t low = 0, high = judge->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&judge->all[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void blame_gap(struct judge *judge, const struct checker_gap_entry *gap, const struct expected *number) {
    size_t len;
    const char *name = checker_log_name(judge->delivered, gap->session, &len);
    if (!judge->report->fault[0])
        snprintf(judge->report->fault, sizeof judge->report->fault,
                 "session %.64s: %" PRIu64 " was given up in %" PRIu64 "..%" PRIu64
                 " and had been acknowledged before that was due",
                 name, number->seq, gap->first, gap->last);
}

static void judge_gap(struct judge *judge, const struct checker_gap_entry *gap) {
    const struct expected key = {judge->names[gap->session], 0, gap->epoch, gap->first, 0};
    const struct expected *end = judge->all + judge->count, *number;
    uint64_t numbers = 0;
    judge->report->gaps++;
    if (key.session == UINT32_MAX)
        return;
    for (number = judge->all + lower_bound(judge, &key); number < end && number->session == key.session &&
                                                         number->epoch == key.epoch && number->seq <= gap->last;
         number++) {
        if (number->at < gap->due) {
            numbers++;
            blame_gap(judge, gap, number);
        }
    }
    judge->report->false_gaps += numbers > 0;
    judge->report->false_numbers += numbers;
}

void checker_judge(const checker_log_t *accepted, const checker_log_t *delivered, struct checker_report *report) {
    struct judge judge = {.report = report, .delivered = delivered};
    uint32_t i, names = checker_log_names(delivered);
    size_t gap;
    memset(report, 0, sizeof *report);
    judge.sessions = checker_alloc(checker_log_names(accepted) + 1, sizeof *judge.sessions);
    judge.committed = checker_alloc((size_t)checker_log_partitions(delivered) + 1, sizeof *judge.committed);
    judge.names = checker_alloc(names + 1, sizeof *judge.names);
    for (i = 0; i < names; i++) {
        size_t len;
        const char *name = checker_log_name(delivered, i, &len);
        judge.names[i] = checker_log_find(accepted, name, len);
    }
    expect(&judge, accepted);
    replay(&judge);
    for (gap = 0; gap < checker_log_gaps(delivered); gap++)
        judge_gap(&judge, checker_log_gap_at(delivered, gap));
    count_lost(&judge, accepted);
    free(judge.all);
    free(judge.names);
    free(judge.committed);
    free(judge.sessions);
}

int checker_clean(const struct checker_report *report) {
    return !report->lost && !report->unknown && !report->repeated && !report->out_of_order && !report->overtaken &&
           !report->below_commit && !report->false_gaps;
}

void checker_print(const struct checker_report *report, const char *prefix, FILE *to) {
    fprintf(to,
            "%s: records %" PRIu64 ", copies %" PRIu64 ", holes %" PRIu64 ", delivered %" PRIu64 ", again %" PRIu64
            ", lost %" PRIu64 ", unknown %" PRIu64 ", repeated %" PRIu64 ", out of order %" PRIu64
            ", overtaken %" PRIu64 ", below commit %" PRIu64 ", gaps %" PRIu64
            ", false gaps %" PRIu64 " (%" PRIu64 " numbers)%s%s\n",
            prefix, report->records, report->copies, report->holes, report->delivered, report->again, report->lost,
            report->unknown, report->repeated, report->out_of_order, report->overtaken, report->below_commit,
            report->gaps, report->false_gaps, report->false_numbers, report->fault[0] ? ": " : "", report->fault);
    fflush(to);
}
