/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * That an existing topic of checkpoints is compacted. Without it the log keeps every entry that was ever written, and
 * each new owner reads them all; or, once retention removes entries by time or size, cursors go that are in use. Only
 * a broker knows, and only whoever may describe the topic's configuration hears of it: no answer is no fault.
 */
#include <kafka/checkpoint_topic.h>
#include <kafka/clock.h>
#include <stdio.h>
#include <string.h>

#define KEY "cleanup.policy"
#define WAIT_MS 5000 /* at most, of the time there is */

bool us_checkpoint_topic_compacts(const char *policy) {
    while (*policy) {
        policy += strspn(policy, " ,");
        size_t len = strcspn(policy, " ,");
        if (len == strlen("compact") && memcmp(policy, "compact", len) == 0) {
            return true;
        }
        policy += len;
    }
    return false;
}

/* The value among the entries of the answer; NULL: it isn't there. */
static const char *value_of(const rd_kafka_ConfigResource_t *resource) {
    size_t n = 0;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), KEY) == 0) {
            return rd_kafka_ConfigEntry_value(entries[i]);
        }
    }
    return NULL;
}

static rd_kafka_resp_err_t judge(rd_kafka_event_t *event, const char *topic, char *errstr, size_t errstr_size) {
    size_t n = 0;
    const rd_kafka_ConfigResource_t **found = NULL;
    const char *why = "no answer in time", *policy = NULL;
    if (event && rd_kafka_event_error(event)) {
        why = rd_kafka_event_error_string(event);
    } else if (event) {
        found = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &n);
        why = "not told";
    }
    if (n == 1 && rd_kafka_ConfigResource_error(found[0])) {
        const char *text = rd_kafka_ConfigResource_error_string(found[0]);
        why = text ? text : rd_kafka_err2str(rd_kafka_ConfigResource_error(found[0]));
    } else if (n == 1) {
        policy = value_of(found[0]);
    }
    if (!policy) {
        snprintf(errstr, errstr_size, "topic %s for checkpoints: its " KEY " is not known (%s); it must have compact "
                                      "in it", topic, why);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (us_checkpoint_topic_compacts(policy)) {
        errstr[0] = 0;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    snprintf(errstr, errstr_size, "topic %s for checkpoints has " KEY "=%s: allowed are compact and compact,delete, "
                                  "or cursors are lost by retention, or the topic grows for ever", topic, policy);
    return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

rd_kafka_resp_err_t us_checkpoint_topic_policy(rd_kafka_t *rk, const char *topic, int timeout_ms, char *errstr,
                                               size_t errstr_size) {
    char ignored[128];
    int wait = timeout_ms < WAIT_MS ? timeout_ms : WAIT_MS;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_AdminOptions_set_request_timeout(options, wait, ignored, sizeof(ignored));
    rd_kafka_DescribeConfigs(rk, &resource, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, wait + 100);
    rd_kafka_resp_err_t err = judge(event, topic, errstr, errstr_size);
    if (event) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_ConfigResource_destroy(resource);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return err;
}
