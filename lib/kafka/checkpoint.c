/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/mem.h>
#include <inttypes.h>
#include <kafka/chance.h>
#include <kafka/checkpoint.h>
#include <librdkafka/rdkafka_mock.h>
#include <regex.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define SET_BITS 17 /* consumer_partitions.c: the rest of a set's number is that of its base topic */

/* ---- names */

static char *text_of(const rd_kafka_conf_t *conf, const char *name) {
    char value[512];
    size_t size = sizeof(value);
    if (rd_kafka_conf_get(conf, name, value, &size) != RD_KAFKA_CONF_OK) {
        value[0] = 0;
    }
    return us_text_dup(value);
}

static char *joined(const char *a, const char *b, const char *c) {
    size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    char *text = us_alloc(&us_mem_default, size);
    if (text) {
        snprintf(text, size, "%s%s%s", a, b, c);
    }
    return text;
}

/*
 * No two members may have the same at a time. A static member has one of its own, so that its next run ends what its
 * last one left open; others draw one.
 */
static char *make_transactional_id(const struct unsalt *u, const char *group) {
    char host[65] = "", tail[128];
    char *instance = text_of(u->checkpoint->conf, "group.instance.id");
    char *id = NULL;
    if (u->conf->checkpoint_transactional_id[0]) {
        id = us_text_dup(u->conf->checkpoint_transactional_id);
    } else if (instance && instance[0]) {
        id = joined(group, ".unsalt.", instance);
    } else if (instance) {
        gethostname(host, sizeof(host) - 1);
        snprintf(tail, sizeof(tail), "%s-%ld-%016" PRIx64, host, (long)getpid(), us_chance());
        id = joined(group, ".unsalt.", tail);
    }
    us_free(&us_mem_default, instance);
    return id;
}

static bool make_names(struct unsalt *u, char *errstr, size_t size) {
    struct us_checkpoint *c = u->checkpoint;
    char *group = text_of(c->conf, "group.id");
    if (group) {
        c->topic = u->conf->checkpoint_topic[0] ? us_text_dup(u->conf->checkpoint_topic) : joined(group, ".unsalt", "");
        c->transactional_id = make_transactional_id(u, group);
    }
    bool done = c->topic && c->transactional_id;
    if (!done) {
        snprintf(errstr, size, "out of memory");
    } else if (strlen(c->topic) > US_CHECKPOINT_TOPIC_MAX) {
        snprintf(errstr, size, "checkpoint.topic=\"%.64s...\" is longer than %d bytes, the most that Kafka allows",
                 c->topic, US_CHECKPOINT_TOPIC_MAX);
        done = false;
    }
    us_free(&us_mem_default, group);
    return done;
}

/* ---- reader and writer */

static void on_record(void *opaque, const struct us_checkpoint_record *record) {
    us_checkpoint_enter(opaque, record);
}

static void on_complete(void *opaque, int32_t partition) {
    struct unsalt *u = opaque;
    struct us_checkpoint *c = u->checkpoint;
    for (uint32_t i = c->load_count; i-- > 0;) {
        if (c->loads[i].partition == partition) {
            us_load_done(u, &c->loads[i]);
        }
    }
}

static void on_wake(void *opaque) {
    us_signal(opaque);
}

static bool make_handles(struct unsalt *u) {
    struct us_checkpoint *c = u->checkpoint;
    rd_kafka_mock_cluster_t *mock = rd_kafka_handle_mock_cluster(u->rk);
    if (mock && !c->bootstrap) {
        c->bootstrap = us_text_dup(rd_kafka_mock_cluster_bootstraps(mock));
    }
    const struct us_checkpoint_client client = {.conf = c->conf, .bootstrap = c->bootstrap};
    const struct us_checkpoint_reader_settings reading = {
        .client = client,
        .topic = c->topic,
        .partitions = (int32_t)u->conf->partitions,
        .entry = on_record,
        .complete = on_complete,
        .wake = on_wake,
        .opaque = u,
    };
    const struct us_checkpoint_writer_settings writing = {
        .client = client,
        .topic = c->topic,
        .transactional_id = c->transactional_id,
        .transaction_timeout_ms = (int)u->conf->checkpoint_timeout_ms,
        .compress = true,
        .wake = on_wake,
        .opaque = u,
    };
    c->reader = us_checkpoint_reader_new(&reading);
    c->writer = us_checkpoint_writer_new(&writing);
    return c->reader && c->writer;
}

/* Committed offsets are only waited for while a transaction may still change them if this is so (KIP-447). */
static bool reads_committed(const rd_kafka_conf_t *conf, char *errstr, size_t size) {
    char *level = text_of(conf, "isolation.level");
    bool committed = level && strcmp(level, "read_committed") == 0;
    if (!committed) {
        snprintf(errstr, size, "isolation.level=%s is not allowed with checkpoint=topic: it must be read_committed",
                 level ? level : "?");
    }
    us_free(&us_mem_default, level);
    return committed;
}

bool us_checkpoint_init(struct unsalt *u, char *errstr, size_t size) {
    if (u->conf->checkpoint == US_CHECKPOINTS_NONE) {
        return true;
    }
    struct us_checkpoint *c = us_calloc(&us_mem_default, 1, sizeof(*c));
    if (!c) {
        snprintf(errstr, size, "out of memory");
        return false;
    }
    u->checkpoint = c;
    c->conf = rd_kafka_conf_dup(u->asker.conf);
    c->retry_at = c->tell_at = UNSALT_NEVER;
    if (u->conf->checkpoint == US_CHECKPOINTS_CALLBACK) {
        return true;
    }
    return reads_committed(c->conf, errstr, size) && make_names(u, errstr, size);
}

void us_checkpoint_stop(struct unsalt *u) {
    struct us_checkpoint *c = u->checkpoint;
    if (c) {
        us_handle_told(u, us_checkpoint_reader_destroy(c->reader), "reads checkpoints");
        us_handle_told(u, us_checkpoint_writer_destroy(c->writer), "writes checkpoints");
        c->reader = NULL;
        c->writer = NULL;
    }
}

void us_checkpoint_free(struct unsalt *u) {
    struct us_checkpoint *c = u->checkpoint;
    if (!c) {
        return;
    }
    us_checkpoint_stop(u);
    if (c->conf) {
        rd_kafka_conf_destroy(c->conf);
    }
    if (c->under_way) {
        rd_kafka_topic_partition_list_destroy(c->under_way);
    }
    us_free(&us_mem_default, c->bootstrap);
    us_free(&us_mem_default, c->topic);
    us_free(&us_mem_default, c->transactional_id);
    us_free(&us_mem_default, c->loads);
    us_free(&us_mem_default, c->ranges);
    us_free(&us_mem_default, c->value);
    us_free(&us_mem_default, c);
    u->checkpoint = NULL;
}

/* Does a topic of a subscription, which is a pattern if it begins with ^, name this one? As librdkafka tells it. */
static bool is_named(const char *topic, const char *name) {
    regex_t pattern;
    if (topic[0] != '^') {
        return strcmp(topic, name) == 0;
    }
    if (regcomp(&pattern, topic, REG_EXTENDED | REG_NOSUB) != 0) {
        return false; /* rd_kafka_subscribe() says so */
    }
    bool fits = regexec(&pattern, name, 0, NULL, 0) == 0;
    regfree(&pattern);
    return fits;
}

rd_kafka_resp_err_t us_checkpoint_unread(const struct unsalt *u, const rd_kafka_topic_partition_list_t *list) {
    const char *name = u->checkpoint ? u->checkpoint->topic : NULL;
    for (int i = 0; name && i < list->cnt; i++) {
        if (is_named(list->elems[i].topic, name)) {
            us_log(u, 3, "checkpoint.topic=%s is not allowed beside %s, which is to be read and names it: another "
                         "name is needed, or other topics", name, list->elems[i].topic);
            return RD_KAFKA_RESP_ERR__INVALID_ARG;
        }
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t us_checkpoint_ready(struct unsalt *u) {
    struct us_checkpoint *c = u->checkpoint;
    char errstr[512];
    if (!c || c->ensured || u->conf->checkpoint == US_CHECKPOINTS_CALLBACK) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (!c->writer && !make_handles(u)) {
        us_checkpoint_stop(u);
        return RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
    }
    const struct us_checkpoint_client client = {.conf = c->conf, .bootstrap = c->bootstrap};
    const struct us_checkpoint_topic topic = {
        .name = c->topic,
        .partitions = (int32_t)u->conf->partitions,
        .create = u->conf->checkpoint_create,
        .replication = (int)u->conf->checkpoint_replication,
        .retention_ms = u->conf->checkpoint_retention_ms == INT64_MAX ? -1 : u->conf->checkpoint_retention_ms,
    };
    rd_kafka_resp_err_t err =
        us_checkpoint_topic_ensure(&client, &topic, (int)u->conf->checkpoint_timeout_ms, errstr, sizeof(errstr));
    if (err) {
        us_log(u, 3, "checkpoint=topic: %s", errstr);
        return err;
    }
    if (errstr[0]) {
        us_log(u, 5, "checkpoint=topic: %s", errstr);
    }
    c->ensured = true;
    us_checkpoint_writer_prepare(c->writer);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* ---- what the others share */

int32_t us_checkpoint_partition_of(const struct unsalt *u, uint32_t set) {
    uint32_t number = set & ((UINT32_C(1) << SET_BITS) - 1);
    uint32_t sets = (uint32_t)u->conf->partitions;
    if (u->conf->layout == US_LAYOUT_BLOCK) {
        sets /= (uint32_t)u->conf->lanes;
    }
    return number < sets ? (int32_t)number : -1;
}

const char *us_checkpoint_base(const struct unsalt *u, uint32_t set) {
    return u->bases[set >> SET_BITS];
}

bool us_checkpoint_ranges_reserve(struct us_checkpoint *c, uint32_t n) {
    if (n <= c->range_capacity) {
        return true;
    }
    unsalt_core_range_t *ranges = us_realloc_array(&us_mem_default, c->ranges, n, sizeof(*ranges));
    if (ranges) {
        c->ranges = ranges;
        c->range_capacity = n;
    }
    return ranges != NULL;
}

bool us_checkpoint_value_reserve(struct us_checkpoint *c, size_t size) {
    if (size <= c->value_size) {
        return true;
    }
    uint8_t *value = us_realloc_array(&us_mem_default, c->value, size, 1);
    if (value) {
        c->value = value;
        c->value_size = size;
    }
    return value != NULL;
}

void us_checkpoint_event(struct unsalt *u, unsalt_event_type_t type, const char *topic, int32_t partition,
                         uint64_t count, const char *format, ...) {
    char text[700];
    unsalt_event_t event;
    va_list args;
    us_event_init(&event, type);
    int used = snprintf(text, sizeof(text), "%s: ", unsalt_event_name(type));
    va_start(args, format);
    vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
    va_end(args);
    event.topic = topic;
    event.partition = partition;
    event.count = count;
    event.text = text;
    us_event_raise(u, &event);
}
