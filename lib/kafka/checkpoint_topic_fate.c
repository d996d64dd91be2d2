/* SPDX-License-Identifier: BSD-2-Clause */
/* The codes were the same in librdkafka 2.0.2 and 2.15.0; those that 2.0.2 has no name for are written as numbers. */
#include <kafka/checkpoint_topic_fate.h>

#define FENCED_MEMBER_EPOCH 110
#define STALE_MEMBER_EPOCH 113

static bool is_fencing(rd_kafka_resp_err_t code) {
    switch ((int)code) {
    /*
     * The group's coordinator: the generation is an old one, the member was thrown out, or a static member's place was
     * taken by another process. With the new group protocol the coordinator says the same of epochs; it translates
     * them for transactions, and the plain codes are here in case it doesn't.
     */
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
    case FENCED_MEMBER_EPOCH:
    case STALE_MEMBER_EPOCH:
    /*
     * The transactions' coordinator: another producer has taken the transactional.id over, or the transaction took
     * longer than its timeout and was aborted by the coordinator. Fatal for the producer, which librdkafka says with a
     * code of its own, __FENCED.
     */
    case RD_KAFKA_RESP_ERR__FENCED:
    case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
        return true;
    default:
        return false;
    }
}

struct us_checkpoint_verdict us_checkpoint_fate(const rd_kafka_error_t *error) {
    struct us_checkpoint_verdict verdict = {US_CHECKPOINT_GO_ON, false};
    if (!error) {
        return verdict;
    }
    /* Fatal comes first: such an error may carry any code, and the handle answers every later call with it. */
    verdict.dead = rd_kafka_error_is_fatal(error) != 0;
    if (is_fencing(rd_kafka_error_code(error))) {
        verdict.next = US_CHECKPOINT_FENCED;
    } else if (!verdict.dead && rd_kafka_error_is_retriable(error)) {
        /*
         * The call's time is over while its work goes on, or a coordinator is away. librdkafka takes the same call up
         * where it was, and refuses others with __CONFLICT while it waits for that.
         */
        verdict.next = US_CHECKPOINT_AGAIN;
    } else {
        /*
         * txn_requires_abort: entries that weren't delivered, no right to a topic or a group, a coordinator that
         * didn't answer in time. Without a flag: wrong arguments or a wrong state, which an abort ends as well.
         */
        verdict.next = US_CHECKPOINT_ABORT;
    }
    return verdict;
}
