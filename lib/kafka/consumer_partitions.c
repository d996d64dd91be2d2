/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/consumer.h>
#include <string.h>

struct us_partition *us_partition_find(const struct unsalt *u, const char *topic, int32_t partition) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        if (p->partition == partition && strcmp(p->topic, topic) == 0) {
            return p;
        }
    }
    return NULL;
}

/* The index of a base topic, which numbers its lane sets. UINT32_MAX: out of memory. */
static uint32_t base_index(struct unsalt *u, const char *base, size_t len) {
    for (uint32_t i = 0; i < u->base_count; i++) {
        if (strlen(u->bases[i]) == len && memcmp(u->bases[i], base, len) == 0) {
            return i;
        }
    }
    char **bases = us_realloc_array(&us_mem_default, u->bases, u->base_count + 1, sizeof(*bases));
    if (!bases) {
        return UINT32_MAX;
    }
    u->bases = bases;
    char *copy = us_alloc(&us_mem_default, len + 1);
    if (!copy) {
        return UINT32_MAX;
    }
    memcpy(copy, base, len);
    copy[len] = 0;
    bases[u->base_count] = copy;
    return u->base_count++;
}

/*
 * Layout hash: one set per topic, any lane. Layout topics: one set per partition index, the lane is the topic's. Layout
 * block: one set per block, any lane, as cold sessions may stand in any partition of their block.
 */
static bool place(struct unsalt *u, struct us_partition *p) {
    if (u->conf->layout == US_LAYOUT_TOPICS) {
        struct us_topic_lane lane = us_topic_lane(&u->lanes.topics, p->topic);
        uint32_t base = base_index(u, lane.base, lane.base_len);
        p->set = (base << 17) | (uint32_t)p->partition;
        p->lane = lane.lane;
        return base != UINT32_MAX;
    }
    uint32_t base = base_index(u, p->topic, strlen(p->topic));
    p->set = base << 17;
    if (u->conf->layout == US_LAYOUT_BLOCK) {
        p->set |= (uint32_t)(p->partition / u->conf->lanes);
    }
    p->lane = -1;
    return base != UINT32_MAX;
}

static void destroy(struct us_partition *p) {
    us_pending_drop(p);
    if (p->queue) {
        rd_kafka_queue_cb_event_enable(p->queue, NULL, NULL);
        rd_kafka_queue_destroy(p->queue);
    }
    us_pins_drop(p);
    us_free(&us_mem_default, p->pins.buffers);
    us_free(&us_mem_default, p->found_done);
    us_free(&us_mem_default, p->pending);
    us_free(&us_mem_default, p->topic);
    us_free(&us_mem_default, p);
}

static struct us_partition *make(struct unsalt *u, const char *topic, int32_t partition) {
    struct us_partition *p = us_calloc(&us_mem_default, 1, sizeof(*p));
    if (!p) {
        return NULL;
    }
    p->u = u;
    p->partition = partition;
    p->start = p->log_start = p->began = p->committed = p->confirmed = -1;
    p->last_read = p->last_time = p->back_to = p->seek_to = p->rehearsed = p->found = -1;
    p->answer_at = UNSALT_NEVER;
    p->pending_capacity = (uint32_t)u->conf->read_batch;
    p->topic = us_text_dup(topic);
    p->pending = us_calloc(&us_mem_default, p->pending_capacity, sizeof(*p->pending));
    if (!p->topic || !p->pending || !place(u, p)) {
        destroy(p);
        return NULL;
    }
    return p;
}

/* From now on the partition's records come through its own queue; must precede the assignment (librdkafka#3231). */
static bool split_queue(struct unsalt *u, struct us_partition *p) {
    p->queue = rd_kafka_queue_get_partition(u->rk, p->topic, p->partition);
    if (!p->queue) {
        return false;
    }
    rd_kafka_queue_forward(p->queue, NULL);
    rd_kafka_queue_cb_event_enable(p->queue, us_partition_queue_event, p);
    return true;
}

struct us_partition *us_partition_get(struct unsalt *u, const char *topic, int32_t partition) {
    struct us_partition *p = us_partition_find(u, topic, partition);
    if (p) {
        return p;
    }
    if (u->partition_count == u->partition_capacity) {
        uint32_t capacity = u->partition_capacity ? 2 * u->partition_capacity : 16;
        struct us_partition **grown = us_realloc_array(&us_mem_default, u->partitions, capacity, sizeof(*grown));
        if (!grown) {
            return NULL;
        }
        u->partitions = grown;
        u->partition_capacity = capacity;
    }
    p = make(u, topic, partition);
    if (p && !split_queue(u, p)) {
        destroy(p);
        p = NULL;
    }
    if (p) {
        u->partitions[u->partition_count++] = p;
    }
    return p;
}

struct us_partition *us_partition_of(const struct unsalt *u, uint32_t part) {
    return part < u->by_part_count ? u->by_part[part] : NULL;
}

bool us_by_part_set(struct unsalt *u, uint32_t part, struct us_partition *p) {
    if (part >= u->by_part_count) {
        uint32_t count = part + 16;
        struct us_partition **grown = us_realloc_array(&us_mem_default, u->by_part, count, sizeof(*grown));
        if (!grown) {
            return false;
        }
        u->by_part = grown;
        unsalt_read_t *advice = us_realloc_array(&us_mem_default, u->advice, count, sizeof(*advice));
        if (!advice) {
            return false;
        }
        u->advice = advice;
        memset(grown + u->by_part_count, 0, (count - u->by_part_count) * sizeof(*grown));
        u->by_part_count = count;
    }
    u->by_part[part] = p;
    return true;
}

void us_partitions_close(struct unsalt *u) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        struct us_partition *p = u->partitions[i];
        us_pending_drop(p);
        if (p->queue) {
            rd_kafka_queue_cb_event_enable(p->queue, NULL, NULL);
            rd_kafka_queue_destroy(p->queue);
            p->queue = NULL;
        }
    }
}

void us_partitions_free(struct unsalt *u) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        destroy(u->partitions[i]);
    }
    for (uint32_t i = 0; i < u->base_count; i++) {
        us_free(&us_mem_default, u->bases[i]);
    }
    us_free(&us_mem_default, u->partitions);
    us_free(&us_mem_default, u->by_part);
    us_free(&us_mem_default, u->advice);
    us_free(&us_mem_default, u->bases);
    u->partition_count = u->base_count = u->by_part_count = 0;
}
