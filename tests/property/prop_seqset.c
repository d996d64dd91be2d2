/* SPDX-License-Identifier: BSD-2-Clause */
/* The set against a table of bits, over clusters of numbers that lie far apart. */
#include <base/seqset.h>
#include <support/check.h>
#include <support/failmem.h>
#include <support/prng.h>

#define CLUSTERS 24
#define SPAN 200

static bool model[CLUSTERS][SPAN];

static void random_bases(struct prng *prng, uint64_t *bases) {
    for (uint64_t i = 0; i < CLUSTERS; i++)
        bases[i] = (i * (UINT64_MAX / CLUSTERS)) + prng_below(prng, UINT64_MAX / CLUSTERS - SPAN);
    bases[0] = 0;
    bases[CLUSTERS - 1] = UINT64_MAX - SPAN + 1; /* the last number is UINT64_MAX */
}

static void check_whole(const struct us_seqset *set, const uint64_t *bases) {
    uint32_t words = 0;
    for (int i = 0; i < CLUSTERS; i++) {
        uint64_t last_word = UINT64_MAX;
        for (uint64_t k = 0; k < SPAN; k++) {
            CHECK_U64(us_seqset_has(set, bases[i] + k), model[i][k]);
            if (model[i][k] && (bases[i] + k) / 64 != last_word) {
                last_word = (bases[i] + k) / 64;
                words++;
            }
        }
    }
    CHECK_U64(set->used, words);
}

static void step(struct us_seqset *set, const struct unsalt_mem *mem, const uint64_t *bases, struct prng *prng,
                 unsigned grow) {
    uint64_t i = prng_below(prng, CLUSTERS), k = prng_below(prng, SPAN), seq = bases[i] + k;
    if (prng_chance(prng, grow)) {
        CHECK(us_seqset_reserve(set, mem, (uint32_t)prng_between(prng, 1, 3)));
        CHECK_U64(us_seqset_add(set, seq), !model[i][k]);
        model[i][k] = true;
    } else {
        CHECK_U64(us_seqset_remove(set, seq), model[i][k]);
        model[i][k] = false;
    }
}

TEST(seqset, behaves_like_a_table_of_bits) {
    struct prng prng = prng_start(2);
    struct failmem fail;
    failmem_init(&fail);
    for (int run = 0; run < 20; run++) {
        struct us_seqset set = {.seed = run % 2 ? prng_next(&prng) : 0};
        uint64_t bases[CLUSTERS];
        random_bases(&prng, bases);
        memset(model, 0, sizeof model);
        for (int round = 0; round < 20000; round++) {
            step(&set, &fail.mem, bases, &prng, round / 4000 % 2 ? 15 : 85);
            if (round % 1000 == 999)
                check_whole(&set, bases);
        }
        us_seqset_destroy(&set, &fail.mem);
        CHECK(!us_seqset_has(&set, bases[0]));
    }
    CHECK(failmem_is_balanced(&fail));
}
