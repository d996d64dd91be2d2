/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that wait for room: by age, each once, and a table that doesn't grow with what has passed through it. */
#include <kafka/pipeline.h>
#include <support/check.h>
#include <support/prng.h>

enum { MESSAGES = 100, PASSES = 200000 };

static struct us_early early;
static rd_kafka_message_t messages[MESSAGES];
static struct us_job some_job;

static void put(int i) {
    CHECK(us_early_put(&early, &messages[i], NULL, true));
}

static void take(int i) {
    struct us_job *job = &some_job;
    CHECK(us_early_take(&early, &messages[i], &job));
    CHECK(!job);
}

/* An address that was freed and waits again is a new message: its former entry is gone, however old the oldest is. */
TEST(pipeline_early, addresses_that_come_again) {
    for (int i = 0; i < MESSAGES; i++) {
        put(i);
    }
    for (int pass = 1; pass <= PASSES; pass++) {
        int i = 1 + pass % (MESSAGES - 1);
        take(i);
        put(i);
        CHECK(us_early_oldest(&early) == &messages[0]);
    }
    CHECK_U64(early.waiting, MESSAGES);
    CHECK_U64(early.queue_capacity, 1024);
    CHECK(early.queue_count <= early.queue_capacity);
    us_early_free(&early);
}

/* The same where every message is another one: what has gone makes room even if nobody asks for the oldest. */
TEST(pipeline_early, what_has_gone_makes_room) {
    static rd_kafka_message_t many[PASSES];
    put(0);
    for (int pass = 0; pass < PASSES; pass++) {
        struct us_job *job;
        CHECK(us_early_put(&early, &many[pass], NULL, true));
        CHECK(us_early_take(&early, &many[pass], &job));
    }
    CHECK_U64(early.waiting, 1);
    CHECK_U64(early.queue_capacity, 1024);
    us_early_free(&early);
}

/* Against a list of those that wait, oldest first. */
TEST(pipeline_early, behaves_as_a_list) {
    struct prng prng = prng_start(0);
    int list[MESSAGES], n = 0;
    bool with_job[MESSAGES] = {false}, there[MESSAGES] = {false};
    for (int step = 0; step < PASSES; step++) {
        int i = (int)prng_below(&prng, MESSAGES), at = 0;
        while (at < n && list[at] != i) {
            at++;
        }
        if (!there[i]) {
            put(i);
            list[n++] = i;
            there[i] = true;
            with_job[i] = false;
        } else if (!with_job[i] && prng_chance(&prng, 50)) {
            us_early_started(&early, &messages[i], &some_job);
            with_job[i] = true;
        } else {
            struct us_job *job = NULL;
            CHECK(us_early_take(&early, &messages[i], &job));
            CHECK((job != NULL) == with_job[i]);
            there[i] = false;
        }
        if (at < n && (with_job[i] || !there[i])) {
            n--;
            for (int j = at; j < n; j++) {
                list[j] = list[j + 1];
            }
        }
        const rd_kafka_message_t *oldest = us_early_oldest(&early);
        CHECK(oldest == (n > 0 ? &messages[list[0]] : NULL));
        CHECK_U64(early.waiting, (uint64_t)n);
    }
    us_early_free(&early);
}

/* One that will never find room before its turn holds nobody up. */
TEST(pipeline_early, what_does_not_fit) {
    CHECK(us_early_put(&early, &messages[0], NULL, false));
    CHECK(!us_early_oldest(&early));
    put(1);
    CHECK(us_early_oldest(&early) == &messages[1]);
    CHECK_U64(early.waiting, 2);
    take(0);
    take(1);
    CHECK_U64(early.waiting, 0);
    us_early_free(&early);
}
