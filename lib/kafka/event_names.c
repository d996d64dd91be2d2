/* SPDX-License-Identifier: BSD-2-Clause */
#include <unsalt/event.h>

const char *unsalt_event_name(unsalt_event_type_t type) {
    static const char *const names[] = {
#define X(C, name, severity, text) #name,
        UNSALT_EVENTS(X)
#undef X
    };
    return (unsigned)type < UNSALT_EVENT__CNT ? names[type] : "?";
}
