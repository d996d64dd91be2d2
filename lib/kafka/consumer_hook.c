/* SPDX-License-Identifier: BSD-2-Clause */
/* Telling the application what becomes of the partitions that a group gave. */
#include <kafka/consumer.h>

/* The consumer whose callback this thread is in. */
static _Thread_local const struct unsalt *inside;

static bool is_meant(const struct us_partition *p, const rd_kafka_topic_partition_list_t *list, bool revoking) {
    return us_partition_ours(p) && p->given && p->revoking == revoking &&
           (!list || rd_kafka_topic_partition_list_find((rd_kafka_topic_partition_list_t *)list, p->topic,
                                                        p->partition));
}

rd_kafka_topic_partition_list_t *us_hook_list(const struct unsalt *u, const rd_kafka_topic_partition_list_t *list,
                                              bool revoking) {
    rd_kafka_topic_partition_list_t *mine = NULL;
    for (uint32_t i = 0; u->conf->assignment_cb && i < u->partition_count; i++) {
        const struct us_partition *p = u->partitions[i];
        if (!is_meant(p, list, revoking)) {
            continue;
        }
        mine = mine ? mine : rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(mine, p->topic, p->partition)->offset =
            p->start >= 0 ? p->start : RD_KAFKA_OFFSET_INVALID;
    }
    return mine;
}

void us_hook_call(struct unsalt *u, unsalt_assignment_t what, rd_kafka_topic_partition_list_t *list) {
    if (!list) {
        return;
    }
    const struct unsalt *outer = inside; /* the callback of one consumer may poll another one */
    us_stats_refresh(u);
    inside = u;
    u->conf->assignment_cb(u->conf->assignment_opaque, what, list);
    inside = outer;
    rd_kafka_topic_partition_list_destroy(list);
}

bool us_hook_inside(const struct unsalt *u) {
    return inside == u;
}
