/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/producer_fate.h>

bool us_fate_is_passing(rd_kafka_resp_err_t err) {
    switch (err) {
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RETRY:
    case RD_KAFKA_RESP_ERR_INVALID_MSG: /* damaged on its way */
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
    case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND:
    case RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
    /* Of the idempotent producer, not of the record: the next attempt is made under its next epoch. */
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
    case RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
    case RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
        return true;
    default:
        return false;
    }
}

bool us_fate_maybe(const struct us_attempt *attempt) {
    bool failed_late = attempt->err && attempt->status != RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
    return attempt->maybe || attempt->unproven || failed_late;
}

static bool is_purged(const struct us_attempt *attempt) {
    return attempt->err && (attempt->purged || attempt->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
                            attempt->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT);
}

/* May this attempt be followed by another? */
static bool may_resend(const struct us_attempt *attempt) {
    return attempt->numbered && !attempt->ended && !attempt->transactional && !is_purged(attempt) &&
           attempt->waited_ms < attempt->limit_ms;
}

enum us_fate us_fate(const struct us_attempt *attempt) {
    if (!attempt->err) /* unproven, and purged: it waits for its error */
        return attempt->unproven && may_resend(attempt) ? US_FATE_RESEND : US_FATE_ACKED;
    if (us_fate_is_passing(attempt->err) && may_resend(attempt))
        return US_FATE_RESEND;
    if (!attempt->numbered || attempt->ended || attempt->transactional || is_purged(attempt))
        return US_FATE_GIVE_UP;
    return us_fate_maybe(attempt) ? US_FATE_GIVE_UP : US_FATE_MARK;
}
