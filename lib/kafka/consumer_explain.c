/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a session waits, for people: what the core knows of it and of its partitions, with names and ages. */
#include <base/copy_out.h>
#include <base/mem.h>
#include <inttypes.h>
#include <kafka/pipeline.h>
#include <kafka/stats_text.h>
#include <string.h>

static int64_t ms_between(uint64_t from, uint64_t to) {
    return to > from ? (int64_t)((to - from) / US_MS) : 0;
}

static void fill(const struct unsalt *u, const struct us_partition *p, uint64_t now, unsalt_horizon_info_t *info) {
    unsalt_core_horizon_info_t core;
    if (unsalt_core_horizon_info(u->core, p->part, &core) != UNSALT_CORE_OK) {
        return;
    }
    core.stand = p->load != US_LOAD_NONE && !p->gated ? UNSALT_STAND_CURSORS : core.stand;
    info->stand = core.stand;
    info->text = unsalt_stand_text(core.stand);
    info->age_ms = core.reached ? ms_between(core.reached, now) : -1;
    info->behind_ms = ms_between(core.reached, core.needed);
    info->read = core.read;
    info->end = core.end;
    info->waiting = core.waiting;
    info->failures = p->question_failures;
    if (core.stand == UNSALT_STAND_NOTHING) {
        info->behind_ms = 0;
    }
}

rd_kafka_resp_err_t unsalt_horizon_info(unsalt_t *u, const char *topic, int32_t partition,
                                        unsalt_horizon_info_t *info) {
    if (!topic || !info || info->size == 0) {
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    }
    if (!us_enter(u)) {
        return unsalt_last_error();
    }
    unsalt_horizon_info_t full = {.size = info->size};
    const struct us_partition *p = us_partition_find(u, topic, partition);
    rd_kafka_resp_err_t err = p && p->assigned ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
    if (!err) {
        fill(u, p, us_clock_now(), &full);
        us_copy_out(info, info->size, &full, sizeof(full));
    }
    us_leave(u);
    return err;
}

/* ---- in words */

static void say_gap(struct us_text *text, const unsalt_core_session_info_t *s, uint64_t now) {
    us_text_add(text, "  missing %" PRIu64, s->cursor);
    if (s->lowest - 1 > s->cursor) {
        us_text_add(text, "..%" PRIu64, s->lowest - 1);
    }
    if (s->lanes && s->lowest - 1 == s->cursor) {
        us_text_add(text, " (lane %" PRIu64 ")", s->cursor % s->lanes);
    }
    us_text_add(text, "; the gap is open for %" PRId64 " ms", ms_between(s->opened, now));
    if (s->due == UNSALT_NEVER) {
        us_text_add(text, ", and never falls due");
    } else if (s->due > now) {
        us_text_add(text, ", due in %" PRId64 " ms", ms_between(now, s->due));
    } else {
        us_text_add(text, ", due since %" PRId64 " ms", ms_between(s->due, now));
    }
    us_text_add(text, "\n");
}

static void say_session(struct us_text *text, const unsalt_core_session_info_t *s, uint64_t now) {
    us_text_add(text, "epoch %" PRIu64, s->epoch);
    if (s->starting) {
        us_text_add(text, ", its start is being found out");
        if (s->due != UNSALT_NEVER && s->due > now) {
            us_text_add(text, ", for %" PRId64 " ms numbers may be on their way", ms_between(now, s->due));
        }
    } else {
        us_text_add(text, ", cursor %" PRIu64, s->cursor);
    }
    us_text_add(text, ", %" PRIu64 " held (%" PRIu64 " bytes)", s->held, s->held_bytes);
    if (s->later_runs) {
        us_text_add(text, ", %" PRIu64 " later epochs wait", s->later_runs);
    }
    us_text_add(text, "%s%s%s\n", s->ready ? ", ready to be handed out" : "", s->ending ? ", its epoch is over" : "",
                s->proof_off ? ", proof is off" : "");
    if (s->held && !s->starting && !s->ready) {
        say_gap(text, s, now);
    }
}

/* Nobody asks for ends, or waits for a partition, before there is a need: a gap that isn't due needs none. */
static bool is_early(const unsalt_core_session_info_t *s, uint64_t now) {
    return s && !s->ready && s->held && s->due > now && (!s->starting || s->due != UNSALT_NEVER);
}

static void say_early(struct us_text *text, const unsalt_core_session_info_t *s, uint64_t now) {
    const char *what = s->starting ? "the start" : "the gap";
    if (s->due == UNSALT_NEVER) {
        us_text_add(text, "not waited for, as %s never falls due", what);
    } else {
        us_text_add(text, "not waited for before %s is due, in %" PRId64 " ms", what, ms_between(now, s->due));
    }
}

/* s: the session that is asked about; NULL: it isn't known. */
static void say_partition(const struct unsalt *u, struct us_text *text, const struct us_partition *p,
                          const unsalt_core_session_info_t *s, uint64_t now) {
    unsalt_horizon_info_t info = {.size = sizeof(info)};
    fill(u, p, now, &info);
    us_text_add(text, "  %s [%d]", p->topic, (int)p->partition);
    if (p->lane >= 0) {
        us_text_add(text, " (lane %d)", (int)p->lane);
    }
    us_text_add(text, ": ");
    if (info.age_ms >= 0) {
        us_text_add(text, "read past %" PRId64 " ms ago", info.age_ms);
    } else {
        us_text_add(text, is_early(s, now) ? "its end was not asked for yet" : "horizon unknown");
    }
    us_text_add(text, ", read below %" PRId64, info.read);
    if (info.end >= 0) {
        us_text_add(text, " of %" PRId64, info.end);
    }
    us_text_add(text, "; ");
    if (info.stand == UNSALT_STAND_NOTHING && is_early(s, now)) {
        say_early(text, s, now);
    } else {
        us_text_add(text, "%s", info.text);
    }
    if (p->seek_to >= 0) {
        us_text_add(text, ", reading can't be moved to offset %" PRId64 " yet, and waits for that", p->seek_to);
    }
    if (info.failures) {
        us_text_add(text, ", %u questions in a row without an answer", info.failures);
    }
    us_text_add(text, "\n");
}

/* A set that isn't read yet: the session may stand in it. */
static void say_waiting(const struct unsalt *u, struct us_text *text, uint32_t set, uint64_t now) {
    bool said = false;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && p->set == set && (p->gated || p->load != US_LOAD_NONE || p->seek_to >= 0)) {
            us_text_add(text, "%s", said ? "" : "nothing of it was read yet\n");
            say_partition(u, text, p, NULL, now);
            said = true;
        }
    }
}

static void say_core(const struct unsalt *u, struct us_text *text, uint32_t set, const void *session, size_t len,
                     uint64_t now) {
    unsalt_core_session_info_t info;
    if (unsalt_core_session_info(u->core, set, session, (uint32_t)len, &info) != UNSALT_CORE_OK) {
        say_waiting(u, text, set, now);
        return;
    }
    say_session(text, &info, now);
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (p->assigned && p->set == set && (info.held || info.starting || p->seek_to >= 0)) {
            say_partition(u, text, p, &info, now);
        }
    }
}

static void say_set(const struct unsalt *u, struct us_text *text, uint32_t set, const void *session, size_t len,
                    uint64_t now) {
    say_core(u, text, set, session, len, now);
    us_pipeline_explain(u, set, session, len, text, now);
}

/* Was the set of this partition looked at before, under an earlier one? */
static bool seen(const struct unsalt *u, uint32_t index) {
    for (uint32_t i = 0; i < index; i++) {
        if (u->partitions[i]->assigned && u->partitions[i]->set == u->partitions[index]->set) {
            return true;
        }
    }
    return false;
}

int unsalt_explain(unsalt_t *u, const void *session, size_t session_len, char *buf, size_t size) {
    struct us_text text = {.at = buf, .size = size};
    if (buf && size) {
        buf[0] = 0;
    }
    if (!session || session_len == 0 || session_len > (size_t)u->conf->session_id_max || (!buf && size)) {
        us_set_last_error(RD_KAFKA_RESP_ERR__INVALID_ARG);
        return -1;
    }
    if (!us_enter(u)) {
        return -1;
    }
    uint64_t now = us_clock_now();
    for (uint32_t i = 0; i < u->partition_count; i++) {
        if (u->partitions[i]->assigned && !seen(u, i)) {
            say_set(u, &text, u->partitions[i]->set, session, session_len, now);
        }
    }
    us_set_last_error(RD_KAFKA_RESP_ERR_NO_ERROR);
    us_leave(u);
    return (int)text.used;
}
