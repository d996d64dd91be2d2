/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of one session under a raw key and under salted ones are read and ordered as one session: us_extract() and
 * the core together, as lib/kafka/consumer_read.c uses them.
 */
#include <core/layout.h>
#include <unit/fixture/record.h>
#include <unsalt/core.h>

enum { RECORDS = 64, PARTS = 8 };

struct merge {
    struct scene *scene;
    unsalt_core_t *core;
    struct fake records[RECORDS];
    char keys[RECORDS][32], payloads[RECORDS][64];
    size_t n;
    int64_t next[PARTS];
    char took[512];
};

static struct merge *merge(const char *settings, unsigned parts, unsigned set_size) {
    struct merge *m = calloc(1, sizeof *m);
    unsalt_core_params_t params;
    char err[128] = "";
    CHECK(m);
    m->scene = scene(settings);
    unsalt_core_params_init(&params);
    us_conf_core_params(m->scene->conf, &params);
    m->core = unsalt_core_new(&params, err, sizeof err);
    CHECK_THAT(m->core, "%s", err);
    for (unsigned i = 0; i < parts; i++) {
        unsalt_core_partition_t part = {.set = i / set_size, .set_size = set_size, .lane = -1};
        CHECK_I64(unsalt_core_assign(m->core, &part), i);
    }
    return m;
}

static void take(struct merge *m, const unsalt_core_out_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const rd_kafka_message_t *message = out[i].msg;
        size_t used = strlen(m->took);
        snprintf(m->took + used, sizeof m->took - used, "%s%s%" PRIu64 "@%d", used ? " " : "",
                 out[i].state == UNSALT_STATE_RELEASED ? "" : unsalt_state_name(out[i].state), out[i].seq,
                 (int)message->partition);
    }
}

static void push(struct merge *m, uint32_t part, const char *key, uint64_t seq, bool json) {
    struct fake *record = &m->records[m->n];
    unsalt_core_in_t in = {.part = part};
    unsalt_core_out_t out[RECORDS];
    size_t n;
    int status;
    bool borrowed;
    record->message.key = strcpy(m->keys[m->n], key);
    record->message.key_len = strlen(key);
    record->message.payload = m->payloads[m->n];
    record->message.len = (size_t)(json ? sprintf(m->payloads[m->n], "{\"globalSeq\":%" PRIu64 "}", seq)
                                        : sprintf(m->payloads[m->n], "%" PRIu64, seq));
    if (!json) {
        record->headers = rd_kafka_headers_new(1);
        rd_kafka_header_add(record->headers, "seq", -1, m->payloads[m->n], -1);
    }
    record->message.partition = (int32_t)part;
    record->message.offset = m->next[part]++;
    record->time_type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    m->n++;
    const char *fault = us_extract(&m->scene->extractor, &record->message, &in, &borrowed);
    CHECK_THAT(!fault, "%s", fault);
    CHECK_U64(unsalt_core_push(m->core, &in, 1, 1000, out, &n, &status), 1);
    take(m, out, n);
    while ((n = unsalt_core_pull(m->core, 1000, out, RECORDS)) > 0)
        take(m, out, n);
}

static void end(struct merge *m) {
    unsalt_core_counters_t counters;
    unsalt_core_counters(m->core, &counters);
    CHECK(unsalt_core_conserved(m->core));
    CHECK_U64(counters.state[UNSALT_STATE_HELD], 0);
    CHECK_U64(counters.sessions, 1);
    unsalt_core_destroy(m->core);
    for (size_t i = 0; i < m->n; i++)
        if (m->records[i].headers)
            rd_kafka_headers_destroy(m->records[i].headers);
    done(m->scene);
    free(m);
}

/* Cold under the raw key, then hot over four lanes, then cold again. */
static void cold_hot_cold(bool json) {
    struct merge *m = merge("lanes=4", 5, 5);
    push(m, 1, "room#3", 3, json);
    push(m, 2, "room#0", 4, json);
    push(m, 0, "room", 1, json);
    push(m, 0, "room", 8, json);
    push(m, 3, "room#1", 5, json);
    push(m, 0, "room", 2, json);
    push(m, 4, "room#2", 6, json);
    push(m, 1, "room#3", 7, json);
    CHECK_STR(m->took, "1@0 2@0 3@1 4@2 5@3 6@4 7@1 8@0");
    end(m);
}

TEST(extract_merge, raw_and_salted_keys_with_plain_headers) {
    cold_hot_cold(false);
}

TEST(extract_merge, raw_and_salted_keys_with_json) {
    cold_hot_cold(true);
}

/* Salted in the choice of partition only: any partition may carry any number. */
TEST(extract_merge, raw_keys_in_every_partition) {
    struct merge *m = merge("lanes=4", 4, 4);
    for (uint64_t seq = 12; seq >= 1; seq--)
        push(m, (uint32_t)(seq % 4), "room", seq, seq % 2);
    CHECK_STR(m->took, "1@1 2@2 3@3 4@0 5@1 6@2 7@3 8@0 9@1 10@2 11@3 12@0");
    end(m);
}

/* A block's partitions carry lanes of hot sessions and any cold session: S is never assumed. */
TEST(extract_merge, a_session_of_a_block_without_headers) {
    struct merge *m = merge("layout=block partitions=6 lanes=3", 6, 3);
    push(m, 5, "room", 3, false); /* the third partition of its block: neither lane 0 nor a lane of S = 3 */
    push(m, 5, "room", 2, false);
    push(m, 4, "room", 1, true);
    CHECK_STR(m->took, "1@4 2@5 3@5");
    end(m);
}

/*
 * A cold session of a block shows every remainder of 3 in one partition. That doesn't make them lanes: where it starts
 * is known when the block's other partitions were read.
 */
TEST(extract_merge, a_cold_session_of_a_block_shows_no_lanes) {
    struct merge *m = merge("layout=block partitions=6 lanes=3 start=seen", 6, 3);
    unsalt_core_out_t out[RECORDS];
    for (uint64_t seq = 5; seq <= 8; seq++)
        push(m, 3, "room", seq, false);
    CHECK_STR(m->took, "");
    unsalt_core_horizon(m->core, 4, 2000, 2000);
    CHECK_U64(unsalt_core_pull(m->core, 2000, out, RECORDS), 0);
    push(m, 5, "room", 4, false);
    unsalt_core_expire(m->core, 2000);
    take(m, out, unsalt_core_pull(m->core, 2000, out, RECORDS));
    CHECK_STR(m->took, "4@5 5@3 6@3 7@3 8@3");
    end(m);
}

/*
 * A number that is missing may come from any partition of the block: none is let off because S is 3. So the gap stays
 * open until all of them were read past its due time.
 */
TEST(extract_merge, a_gap_in_a_block_waits_for_every_partition_of_it) {
    struct merge *m = merge("layout=block partitions=6 lanes=3 gap.timeout.ms=1", 6, 3);
    const uint64_t due = 1000 + 1000000, late = due + 1000000;
    push(m, 4, "room", 1, false);
    push(m, 4, "room", 3, false);
    for (uint32_t part = 0; part < 6; part++) {
        CHECK_STR(m->took, "1@4");
        unsalt_core_horizon(m->core, part, late, late);
        unsalt_core_expire(m->core, late);
        unsalt_core_out_t out[4];
        take(m, out, unsalt_core_pull(m->core, late, out, 4));
    }
    CHECK_STR(m->took, "1@4 3@4");
    end(m);
}
