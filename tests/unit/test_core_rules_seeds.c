/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Senders choose session ids and numbers. Where these are hashed, a seed decides the order, so that nobody who does not
 * know it can make them collide.
 */
#include <base/hash.h>
#include <core/engine.h>
#include <support/check.h>
#include <support/stage.h>

#define SEED UINT64_C(0x0123456789abcdef)

static void open_core(struct stage *s, uint64_t seed) {
    stage_init(s);
    s->params.hash_seed = seed;
    s->params.session_ttl_ns = SEC;
    stage_open(s);
    stage_parts(s, 0, 1, false, 0, 0);
}

TEST(core_rules_seeds, sessions_are_found_by_a_seeded_hash) {
    struct stage s;
    open_core(&s, SEED);
    stage_push(&s, 0, "session", 2);
    CHECK(us_session_find(s.core, s.core->sets, "session", 7, (uint32_t)us_hash("session", 7, SEED)) != 0);
    CHECK(us_session_find(s.core, s.core->sets, "session", 7, (uint32_t)us_hash("session", 7, 0)) == 0);
    CHECK((uint32_t)us_hash("session", 7, SEED) != (uint32_t)us_hash("session", 7, 0));
    stage_close(&s);
}

/* The slots that remembered cursors take. */
static uint64_t slots(uint64_t seed) {
    struct stage s;
    uint64_t taken = 0;
    open_core(&s, seed);
    for (char id[] = "a"; id[0] <= 'h'; id[0]++)
        stage_push(&s, 0, id, 1);
    stage_wait(&s, 2 * SEC);
    CHECK_U64(stage_counters(&s).sessions_remembered, 8);
    const struct us_cursors *cursors = &s.core->remembered.young;
    CHECK(cursors->capacity <= 64);
    for (uint32_t i = 0; i < cursors->capacity; i++)
        taken |= (uint64_t)(cursors->entries[i].check != 0) << i;
    stage_close(&s);
    return taken;
}

TEST(core_rules_seeds, remembered_cursors_too) {
    CHECK(slots(SEED) != slots(1) || slots(SEED) != slots(2));
    CHECK_U64(slots(SEED), slots(SEED));
}

TEST(core_rules_seeds, and_the_numbers_of_an_irregular_session) {
    struct stage s;
    open_core(&s, SEED);
    stage_push(&s, 0, "a", 5); /* lanes unknown: irregular */
    const struct us_session *session = s.core->sets->awake_first;
    CHECK(session->reasm.irregular);
    CHECK_U64(session->reasm.irregular->seqs.seed, SEED);
    stage_close(&s);
}
