/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unsalt_core_ack_batch() against unsalt_core_ack() for each: two cores take the same records, one is told of each
 * record, the other of the same ones in batches of any content: out of order, twice, of a generation that is over, with
 * copies and late records between them. Both say the same of every position at every step.
 */
#include <stdlib.h>
#include <support/check.h>
#include <support/prng.h>
#include <unsalt/core.h>

enum { PARTS = 5, ROUNDS = 3000, BATCH = 40, KEPT = 4096 };

struct twin {
    unsalt_core_t *core[2]; /* told one by one; told in batches */
    int64_t offsets[PARTS];
    uint64_t next[3], now;  /* next number of each session */
    unsalt_core_out_t out[KEPT];
    size_t out_count;
};

static void take(struct twin *t, const unsalt_core_in_t *in, size_t n) {
    static unsalt_core_out_t out[2][256];
    size_t count[2];
    for (int k = 0; k < 2; k++) {
        size_t done = 0, got = 0, at = 0;
        while (done < n) {
            int status;
            done += unsalt_core_push(t->core[k], in + done, n - done, t->now, out[k] + at, &got, &status);
            CHECK(status >= 0);
            at += got;
            unsalt_core_event_t events[16];
            while (unsalt_core_events(t->core[k], events, 16) == 16) {
            }
        }
        count[k] = at + unsalt_core_pull(t->core[k], t->now, out[k] + at, 256 - at);
    }
    CHECK_U64(count[0], count[1]);
    CHECK_I64(memcmp(out[0], out[1], count[0] * sizeof(out[0][0])), 0);
    for (size_t i = 0; i < count[0] && t->out_count < KEPT; i++)
        t->out[t->out_count++] = out[0][i];
}

/* Numbers of a session: mostly the next ones, by lane, sometimes swapped or again. */
static void push(struct twin *t, struct prng *prng) {
    static const char *names[] = {"a", "b", "c"};
    unsalt_core_in_t in[BATCH];
    size_t n = prng_between(prng, 1, BATCH);
    int session = (int)prng_below(prng, 3);
    for (size_t i = 0; i < n; i++) {
        uint64_t seq = t->next[session]++;
        if (prng_chance(prng, 3) && seq > 4)
            seq -= prng_below(prng, 4);
        uint16_t lane = (uint16_t)(seq % PARTS);
        in[i] = (unsalt_core_in_t){.session = names[session], .session_len = 1, .part = lane, .seq = seq,
                                   .since = 1, .una = UNSALT_NO_SEQ, .timestamp = -1, .bytes = 10, .lane = lane,
                                   .lanes = PARTS, .kind = UNSALT_KIND_SEQUENCED};
        if (prng_chance(prng, 3))
            in[i].kind = UNSALT_KIND_UNSEQUENCED;
    }
    for (size_t i = n - 1; i > 0 && prng_chance(prng, 30); i--) {
        size_t j = prng_below(prng, i + 1);
        unsalt_core_in_t other = in[i];
        in[i] = in[j];
        in[j] = other;
    }
    for (size_t i = 0; i < n; i++)
        in[i].offset = t->offsets[in[i].part]++;
    take(t, in, n);
}

static void acknowledge(struct twin *t, struct prng *prng) {
    unsalt_core_out_t batch[BATCH * 4];
    size_t n = 0, most = prng_between(prng, 1, BATCH * 4), good = 0;
    bool in_order = prng_chance(prng, 70);
    size_t gone = 0;
    while (n < most && gone < t->out_count) {
        size_t at = in_order ? gone : prng_below(prng, t->out_count);
        batch[n++] = t->out[at];
        if (in_order) {
            gone++;
        } else if (prng_chance(prng, 90)) {
            t->out[at] = t->out[--t->out_count];
        }
    }
    memmove(t->out, t->out + gone, (t->out_count - gone) * sizeof(t->out[0]));
    t->out_count -= gone;
    for (size_t i = 0; i < n; i++) {
        unsalt_core_out_t *out = &batch[i];
        out->generation += prng_chance(prng, 1);
        if (prng_chance(prng, 1))
            out->ticket += UINT64_C(1) << 40; /* there is none */
        good += unsalt_state_handed_out((unsalt_state_t)out->state) &&
                unsalt_core_ack(t->core[0], out->part, out->generation, out->ticket) == UNSALT_CORE_OK;
    }
    CHECK_U64(unsalt_core_ack_batch(t->core[1], batch, n), good);
}

static void reassign(struct twin *t, uint32_t part) {
    unsalt_core_partition_t partition = {.set = 1, .set_size = PARTS, .lane = -1};
    for (int k = 0; k < 2; k++) {
        unsalt_core_out_t out[256];
        CHECK_I64(unsalt_core_revoke(t->core[k], part, t->now), UNSALT_CORE_OK);
        while (unsalt_core_pull(t->core[k], t->now, out, 256) > 0) {
        }
        CHECK_I64(unsalt_core_assign(t->core[k], &partition), (int)part);
    }
    t->offsets[part] = 0;
}

static void play(struct prng *prng, bool cursors) {
    struct twin t = {.now = 1000, .next = {1, 1, 1}};
    unsalt_core_partition_t partition = {.set = 1, .set_size = PARTS, .lane = -1};
    for (int k = 0; k < 2; k++) {
        unsalt_core_params_t params;
        unsalt_core_params_init(&params);
        params.start = UNSALT_START_FIRST;
        params.cursors = cursors;
        params.gap_timeout_ns = 50000;
        t.core[k] = unsalt_core_new(&params, NULL, 0);
        CHECK(t.core[k]);
        for (int i = 0; i < PARTS; i++)
            CHECK_I64(unsalt_core_assign(t.core[k], &partition), i);
    }
    for (int round = 0; round < ROUNDS; round++) {
        t.now += prng_below(prng, 2000);
        push(&t, prng);
        if (prng_chance(prng, 60))
            acknowledge(&t, prng);
        if (prng_chance(prng, 1))
            reassign(&t, (uint32_t)prng_below(prng, PARTS));
        for (int k = 0; k < 2; k++)
            unsalt_core_expire(t.core[k], t.now);
        for (uint32_t i = 0; i < PARTS; i++)
            CHECK_I64(unsalt_core_position(t.core[1], i), unsalt_core_position(t.core[0], i));
    }
    CHECK_U64(unsalt_core_ack_batch(t.core[1], NULL, 0), 0);
    for (int k = 0; k < 2; k++) {
        CHECK(unsalt_core_conserved(t.core[k]));
        unsalt_core_destroy(t.core[k]);
    }
}

TEST(engine_ack_batch, says_the_same_as_one_by_one) {
    struct prng prng = prng_start(11);
    for (int i = 0; i < 6; i++)
        play(&prng, i % 2 == 1);
}
