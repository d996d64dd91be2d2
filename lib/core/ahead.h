/* SPDX-License-Identifier: BSD-2-Clause */
/* What push.c has found out about the sessions of the records that are next, for those who take them. */
#ifndef US_CORE_AHEAD_H
#define US_CORE_AHEAD_H
#include <core/engine.h>

#define US_AHEAD 32
struct us_ahead {
    const unsalt_core_in_t *from, *to;
    uint32_t hash[US_AHEAD];
    uint32_t ref[US_AHEAD]; /* most likely of the session; 0: none is in memory */
    struct us_row *row[US_AHEAD]; /* of this reference; NULL: 0 */
};

/* The hash of a record's session. */
static inline uint32_t us_push_hash(const struct unsalt_core *core, const unsalt_core_in_t *in) {
    const struct us_ahead *ahead = core->ahead;
    if (ahead && in >= ahead->from && in < ahead->to) {
        return ahead->hash[in - ahead->from];
    }
    return us_session_hash(core, in->session, in->session_len);
}

/*
 * Is it the row of a record's session, in the set with the tag? What was found ahead may have gone, and another be in
 * its place.
 */
static inline bool us_row_is_of(const struct us_row *row, uint32_t tag, const unsalt_core_in_t *in) {
    return row->id_len == in->session_len && row->set == tag && us_same_id(row->id, in->session, row->id_len);
}

/* The row of its session; 0: it isn't in memory. */
static inline uint32_t us_push_find(const struct unsalt_core *core, const struct us_set *set,
                                    const unsalt_core_in_t *in) {
    const struct us_ahead *ahead = core->ahead;
    if (ahead && in >= ahead->from && in < ahead->to) {
        size_t at = (size_t)(in - ahead->from);
        bool is = ahead->row[at] && us_row_is_of(ahead->row[at], set->tag, in);
        return is ? ahead->ref[at] : us_session_find(core, set, in->session, in->session_len, ahead->hash[at]);
    }
    return us_session_find(core, set, in->session, in->session_len,
                           us_session_hash(core, in->session, in->session_len));
}
#endif
