/* SPDX-License-Identifier: BSD-2-Clause */
/* No memory for a record of a batch: whatever the consumer has given and is past must be read again. */
#include <base/mem.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/mockcluster.h>

enum { RECORDS = 300, WAIT_MS = 40000 };

/* If `failing`: of this thread's next allocations `passing` are served, and the one after them isn't. */
static _Thread_local int passing;
static _Thread_local bool failing;
static int failures;

static bool fails(void) {
    if (!failing || passing-- > 0)
        return false;
    failing = false;
    failures++;
    return true;
}

#include <support/mem_that_fails.h>

/* Works on the thread that polls, so that allocations are its own. */
static unsalt_relay_t *open_relay(const struct mock *mock) {
    char errstr[512];
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_t *writes = rd_kafka_conf_new();
    mock_rd_set(writes, "bootstrap.servers", mock->bootstraps);
    unsalt_relay_t *relay = unsalt_relay_new(mock_rd_conf(mock, "g"), mock_conf("relay.threads=0", NULL), writes,
                                             mock_conf("relay.topic=out partitions=2 lanes=2", NULL), errstr, 512);
    CHECK_THAT(relay, "%s", errstr);
    rd_kafka_topic_partition_list_add(topics, "in", RD_KAFKA_PARTITION_UA);
    CHECK_I64(unsalt_relay_subscribe(relay, topics), 0);
    rd_kafka_topic_partition_list_destroy(topics);
    return relay;
}

/* The first allocation fails, then in each call its first, second or third. */
static void relay_all(unsalt_relay_t *relay) {
    size_t done = 0, n;
    int calls = 0;
    for (uint64_t until = now_ms() + WAIT_MS; done < RECORDS && now_ms() < until; calls++) {
        passing = failures ? calls % 3 : 0;
        failing = true;
        rd_kafka_error_t *error = unsalt_relay_poll(relay, 100, &n);
        failing = false;
        if (error)
            CHECK_I64(rd_kafka_error_code(error), RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
        rd_kafka_error_destroy(error);
        done += n;
    }
    CHECK_U64(done, RECORDS);
}

Test(mock_relay_memory, no_record_is_lost, .timeout = 120) {
    struct mock mock;
    struct takings takings = {0};
    mock_open(&mock, 1);
    mock_topic(&mock, "in", 2);
    mock_topic(&mock, "out", 2);
    for (uint64_t seq = 1; seq <= RECORDS; seq++)
        mock_send(&mock, "in", (int32_t)(seq % 2), "room", seq, 2);
    mock_flush(&mock);
    unsalt_relay_t *relay = open_relay(&mock);
    relay_all(relay);
    CHECK_THAT(failures > 0, "no allocation has failed");
    unsalt_relay_destroy(relay);
    unsalt_t *u = mock_consumer(&mock, "merging", "layout=hash partitions=2 lanes=2 gap.timeout.ms=-1", NULL);
    CHECK_I64(mock_assign(u, "out", 2, RD_KAFKA_OFFSET_BEGINNING), 0);
    CHECK(take(u, &takings, RECORDS, WAIT_MS));
    CHECK_U64(check_order(&takings, 1), RECORDS);
    takings_free(&takings);
    mock_done(u);
    mock_close(&mock);
}
