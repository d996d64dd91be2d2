/* SPDX-License-Identifier: BSD-2-Clause */
/* checkpoint=callback: the application keeps the entries. */
#include <kafka/checkpoint.h>

struct unsalt_checkpoint_load {
    struct unsalt *u;
    int32_t set;
};

struct store {
    const struct unsalt_conf *conf;
};

static rd_kafka_resp_err_t put(void *opaque, const struct us_checkpoint_record *record) {
    const struct store *store = opaque;
    const unsalt_checkpoint_entry_t entry = {.set = record->partition, .key = record->key, .key_len = record->key_len,
                                             .value = record->value, .value_len = record->value_len};
    int rc = store->conf->checkpoint_store_cb(store->conf->checkpoint_opaque, &entry);
    return rc ? RD_KAFKA_RESP_ERR__APPLICATION : RD_KAFKA_RESP_ERR_NO_ERROR;
}

/*
 * The group's offsets, for whoever looks at its lag. Entries are what counts when reading begins; so only offsets of
 * partitions of which an earlier commit stands behind this one, since this one's transaction may be rolled back, and
 * what has no entry begins at the group's offset.
 */
static void tell_group(struct unsalt *u, const rd_kafka_topic_partition_list_t *offsets) {
    rd_kafka_topic_partition_list_t *told = rd_kafka_topic_partition_list_new(offsets->cnt + 1);
    for (int i = 0; i < offsets->cnt; i++) {
        const rd_kafka_topic_partition_t *one = &offsets->elems[i];
        if (us_partition_find(u, one->topic, one->partition)->saved) {
            rd_kafka_topic_partition_list_add(told, one->topic, one->partition)->offset = one->offset;
        }
    }
    if (told->cnt > 0) {
        rd_kafka_commit(u->rk, told, 1);
    }
    rd_kafka_topic_partition_list_destroy(told);
}

rd_kafka_resp_err_t us_callback_commit(struct unsalt *u) {
    struct store store = {u->conf};
    const struct us_checkpoint_sink sink = {put, &store};
    rd_kafka_topic_partition_list_t *offsets;
    if (!us_checkpoint_anything(u)) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    u->own.commits++;
    rd_kafka_resp_err_t err = us_checkpoint_collect(u, &sink, &offsets);
    if (err) {
        u->own.commit_failures++;
        return err;
    }
    if (u->conf->checkpoint_store_cb(u->conf->checkpoint_opaque, NULL)) {
        err = RD_KAFKA_RESP_ERR__APPLICATION;
    } else {
        tell_group(u, offsets);
    }
    us_checkpoint_settle(u, err, offsets);
    rd_kafka_topic_partition_list_destroy(offsets);
    return err;
}

bool us_callback_load(struct unsalt *u, struct us_load_set *load) {
    unsalt_checkpoint_load_t handle = {u, load->partition};
    return u->conf->checkpoint_load_cb(u->conf->checkpoint_opaque, &handle, load->partition) == 0;
}

rd_kafka_resp_err_t unsalt_checkpoint_restore(unsalt_checkpoint_load_t *load, const void *key, size_t key_len,
                                              const void *value, size_t value_len) {
    const struct us_checkpoint_record record = {.partition = load->set, .key = key, .key_len = key_len,
                                                .value = value, .value_len = value_len, .offset = -1};
    return us_checkpoint_enter(load->u, &record);
}
