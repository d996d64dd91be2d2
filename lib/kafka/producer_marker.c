/* SPDX-License-Identifier: BSD-2-Clause */
/* Gap markers of neighbouring numbers become one: a long outage would leave as many as there were records. */
#include <kafka/producer_again.h>
#include <string.h>
#include <utlist.h>

/* Of the same run of the same session? */
static int compare_sessions(const struct us_again *a, const struct us_again *b) {
    if (a->name_size != b->name_size)
        return a->name_size < b->name_size ? -1 : 1;
    int order = a->name_size ? memcmp(a->name, b->name, a->name_size) : 0;
    if (order == 0)
        order = (a->header.epoch > b->header.epoch) - (a->header.epoch < b->header.epoch);
    return order;
}

static int compare(const struct us_again *a, const struct us_again *b) {
    int order = compare_sessions(a, b);
    return order ? order : (a->header.since > b->header.since) - (a->header.since < b->header.since);
}

/* Without a name two sessions can't be told apart. */
static bool are_neighbours(const struct us_again *a, const struct us_again *b) {
    return a->name_size && compare_sessions(a, b) == 0 && a->header.seq + 1 == b->header.since;
}

struct us_again *us_markers_join(struct us_again *markers, struct us_again **saved) {
    struct us_again **at = &markers;
    LL_SORT(markers, compare);
    while (*at && (*at)->next) {
        struct us_again *lower = *at, *upper = lower->next;
        if (!are_neighbours(lower, upper)) {
            at = &lower->next;
            continue;
        }
        upper->header.since = lower->header.since;
        if (upper->header.una < lower->header.una)
            upper->header.una = lower->header.una; /* of the two the later news */
        *at = upper;
        lower->next = *saved;
        *saved = lower;
    }
    return markers;
}
