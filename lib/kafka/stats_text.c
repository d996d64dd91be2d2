/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/stats_text.h>
#include <stdarg.h>
#include <stdio.h>

void us_text_add(struct us_text *text, const char *format, ...) {
    size_t room = text->used < text->size ? text->size - text->used : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room ? text->at + text->used : NULL, room, format, args);
    va_end(args);
    text->used += n > 0 ? (size_t)n : 0;
}
