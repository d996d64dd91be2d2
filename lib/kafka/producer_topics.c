/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <kafka/clock.h>
#include <kafka/producer_topics.h>
#include <string.h>

/* A failure leaves the element out of the table. */
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) us_alloc(&us_mem_default, size)
#define uthash_free(ptr, size) us_free(&us_mem_default, ptr)
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

/* How long a bad answer stands before the cluster is asked again. */
#define ANSWER_NS UINT64_C(1000000000)

struct us_topic {
    UT_hash_handle hh;
    uint16_t lanes; /* what was set; 0: nothing */
    bool asking;    /* a thread is about it: it stays */
    bool good;
    rd_kafka_resp_err_t err; /* the last bad answer, which stands until: */
    uint64_t ask_again_at;   /* 0: nobody has asked yet */
    char name[];
};

void us_topics_init(struct us_topics *topics, const struct unsalt_mem *mem, uint32_t max) {
    memset(topics, 0, sizeof *topics);
    topics->mem = mem;
    topics->max = max;
    pthread_rwlock_init(&topics->lock, NULL);
    pthread_mutex_init(&topics->asking, NULL);
    pthread_cond_init(&topics->asked, NULL);
}

void us_topics_destroy(struct us_topics *topics) {
    struct us_topic *topic, *after;
    HASH_ITER(hh, topics->table, topic, after) {
        HASH_DEL(topics->table, topic);
        us_free(topics->mem, topic);
    }
    pthread_cond_destroy(&topics->asked);
    pthread_mutex_destroy(&topics->asking);
    pthread_rwlock_destroy(&topics->lock);
}

static struct us_topic *find(struct us_topics *topics, const char *name) {
    struct us_topic *topic;
    HASH_FIND_STR(topics->table, name, topic);
    return topic;
}

/* The table is in the order of age. Returns false if there is nothing to forget. */
static bool forget_oldest(struct us_topics *topics) {
    struct us_topic *topic, *after;
    HASH_ITER(hh, topics->table, topic, after) {
        if (topic->lanes || topic->asking)
            continue;
        HASH_DEL(topics->table, topic);
        us_free(topics->mem, topic);
        return true;
    }
    return false;
}

/* Finds or adds. The table is locked for writing. */
static struct us_topic *find_or_add(struct us_topics *topics, const char *name) {
    struct us_topic *topic = find(topics, name);
    size_t size = strlen(name) + 1;
    if (topic)
        return topic;
    topic = us_calloc(topics->mem, 1, sizeof *topic + size);
    if (!topic || (HASH_COUNT(topics->table) >= topics->max && !forget_oldest(topics))) {
        us_free(topics->mem, topic);
        return NULL;
    }
    memcpy(topic->name, name, size);
    HASH_ADD_KEYPTR(hh, topics->table, topic->name, size - 1, topic);
    if (!topic->hh.tbl) {
        us_free(topics->mem, topic);
        return NULL;
    }
    return topic;
}

bool us_topics_set_lanes(struct us_topics *topics, const char *name, uint16_t lanes) {
    pthread_rwlock_wrlock(&topics->lock);
    struct us_topic *topic = find_or_add(topics, name);
    if (topic)
        topic->lanes = lanes;
    pthread_rwlock_unlock(&topics->lock);
    return topic != NULL;
}

/* What is known without asking. */
struct known {
    bool settled; /* err is the answer */
    bool asking;  /* some thread will know soon */
    rd_kafka_resp_err_t err;
};

static struct known read_topic(const struct us_topic *topic, uint16_t *lanes) {
    if (!topic)
        return (struct known){.settled = false};
    if (topic->lanes)
        *lanes = topic->lanes;
    if (topic->good || topic->asking)
        return (struct known){.settled = topic->good, .asking = topic->asking};
    return (struct known){.settled = us_clock_now() < topic->ask_again_at, .err = topic->err};
}

static struct known look(struct us_topics *topics, const char *name, uint16_t *lanes) {
    pthread_rwlock_rdlock(&topics->lock);
    struct known known = read_topic(find(topics, name), lanes);
    pthread_rwlock_unlock(&topics->lock);
    return known;
}

static bool begin_asking(struct us_topics *topics, const char *name) {
    pthread_rwlock_wrlock(&topics->lock);
    struct us_topic *topic = find_or_add(topics, name);
    if (topic)
        topic->asking = true;
    pthread_rwlock_unlock(&topics->lock);
    return topic != NULL;
}

static void end_asking(struct us_topics *topics, const char *name, rd_kafka_resp_err_t err) {
    pthread_rwlock_wrlock(&topics->lock);
    struct us_topic *topic = find(topics, name);
    topic->asking = false;
    topic->good = !err;
    topic->err = err;
    topic->ask_again_at = us_clock_now() + ANSWER_NS;
    pthread_rwlock_unlock(&topics->lock);
}

rd_kafka_resp_err_t us_topics_use(struct us_topics *topics, const char *name, us_topic_ask *ask, void *opaque,
                                  uint16_t *lanes) {
    struct known known = look(topics, name, lanes);
    rd_kafka_resp_err_t err;
    if (!ask)
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    if (known.settled)
        return known.err;
    pthread_mutex_lock(&topics->asking);
    while ((known = look(topics, name, lanes)).asking)
        pthread_cond_wait(&topics->asked, &topics->asking);
    if (known.settled || !begin_asking(topics, name)) {
        pthread_mutex_unlock(&topics->asking);
        return known.settled ? known.err : RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    pthread_mutex_unlock(&topics->asking);
    err = ask(opaque, name);
    pthread_mutex_lock(&topics->asking);
    end_asking(topics, name, err);
    pthread_cond_broadcast(&topics->asked);
    pthread_mutex_unlock(&topics->asking);
    return err;
}
