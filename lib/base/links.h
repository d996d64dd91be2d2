/* SPDX-License-Identifier: BSD-2-Clause */
/* Doubly linked lists through members of what they hold: no memory of their own, everything O(1). */
#ifndef US_BASE_LINKS_H
#define US_BASE_LINKS_H
#include <stdbool.h>
#include <stddef.h>

/* In a list, or alone: both NULL. A member is in at most one list by the same link. */
struct us_link {
    struct us_link *prev, *next;
};

/* The struct that a link is a member of. NULL stays NULL only if the link is its first member: test before. */
#define US_LINKED(link, type, member) ((type *)(void *)((char *)(link) - offsetof(type, member)))

struct us_links {
    struct us_link ends; /* next = first, prev = last; itself when empty */
};

static inline void us_links_init(struct us_links *list) {
    list->ends.prev = list->ends.next = &list->ends;
}
static inline bool us_links_empty(const struct us_links *list) {
    return list->ends.next == &list->ends;
}
static inline bool us_link_in(const struct us_link *link) {
    return link->next != NULL;
}
static inline struct us_link *us_links_first(const struct us_links *list) {
    return us_links_empty(list) ? NULL : list->ends.next;
}
/* What follows; NULL: it is the last. */
static inline struct us_link *us_links_after(const struct us_links *list, const struct us_link *link) {
    return link->next == &list->ends ? NULL : link->next;
}
/* At the end; the link is in no list. */
static inline void us_links_add(struct us_links *list, struct us_link *link) {
    link->prev = list->ends.prev;
    link->next = &list->ends;
    list->ends.prev->next = link;
    list->ends.prev = link;
}
/* Out of the list it is in, if any. */
static inline void us_links_remove(struct us_link *link) {
    if (link->next) {
        link->prev->next = link->next;
        link->next->prev = link->prev;
        link->prev = link->next = NULL;
    }
}
#endif
