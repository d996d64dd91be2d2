/* SPDX-License-Identifier: BSD-2-Clause */
/* Text that grows into a buffer of the caller, with snprintf's rule: what doesn't fit is counted and left out. */
#ifndef US_KAFKA_STATS_TEXT_H
#define US_KAFKA_STATS_TEXT_H
#include <stddef.h>

struct us_text {
    char *at;    /* borrowed; may be NULL when size is 0 */
    size_t size; /* of the buffer, the final 0 included */
    size_t used; /* length that the whole text has so far */
};

/*
 * Appends as printf(3). Always terminated when size > 0. Formats of integers and strings only: a floating-point one
 * would follow the application's locale.
 */
void us_text_add(struct us_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
