/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ready records whose partition goes. If the whole lane set goes, they are dropped: they will be read again, in order,
 * with those that were held. If a part of the set stays, its later records are ready behind them; so all of the set
 * stay where they are and are handed out, and only their acknowledgements have no effect.
 */
#include <kafka/pipeline.h>

bool us_leave_whole(const struct unsalt *u, const struct us_partition *p) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        const struct us_partition *other = u->partitions[i];
        if (other->assigned && !other->leaving && other->set == p->set) {
            return false;
        }
    }
    return true;
}

void us_leave_begin(struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    bool partly = false;
    for (uint32_t i = 0; i < u->partition_count; i++) {
        u->partitions[i]->leaving = !list;
    }
    for (int i = 0; list && i < list->cnt; i++) {
        struct us_partition *p = us_partition_find(u, list->elems[i].topic, list->elems[i].partition);
        if (p) {
            p->leaving = true;
        }
    }
    for (uint32_t i = 0; list && i < u->partition_count && !partly; i++) {
        const struct us_partition *p = u->partitions[i];
        partly = p->assigned && p->leaving && !us_leave_whole(u, p);
    }
    if (partly) {
        us_drain(u, us_clock_now());
    }
}

void us_leave_end(struct unsalt *u) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        u->partitions[i]->leaving = false;
    }
}

void us_leave_ready(struct unsalt *u, const struct us_partition *p) {
    bool whole = us_leave_whole(u, p);
    us_pipeline_leave(u, p, whole);
    if (whole) {
        us_ring_revoke(&u->ring, p->part, p->generation, p->set);
    } else {
        us_ring_orphan(&u->ring, p->part, p->generation, p->set);
    }
}
