/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/prng.h>
#include <time.h>
#include <unistd.h>

#define STEP UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t from_environment(const char *text) {
    char *end;
    errno = 0;
    uint64_t seed = strtoull(text, &end, 10);
    if (errno || end == text || *end) {
        fprintf(stderr, "UNSALT_SEED=%s is not a decimal number\n", text);
        abort();
    }
    return seed;
}

uint64_t prng_seed(void) {
    static bool known;
    static uint64_t seed;
    if (known)
        return seed;
    const char *text = getenv("UNSALT_SEED");
    if (text && *text) {
        seed = from_environment(text);
    } else {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = mix((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 40)) >> 16;
    }
    fprintf(stderr, "seed: UNSALT_SEED=%" PRIu64 "\n", seed);
    known = true;
    return seed;
}

struct prng prng_start(uint64_t stream) {
    return (struct prng){.state = mix(prng_seed()) + mix(stream * STEP + 1)};
}

struct prng prng_tape(const uint8_t *tape, size_t size) {
    return (struct prng){.state = size, .tape = tape, .left = tape ? size : 0};
}

bool prng_is_over(const struct prng *prng) {
    return prng->tape && prng->left == 0;
}

/* So many bytes of the tape, as one number. */
static uint64_t from_tape(struct prng *prng, int bytes) {
    uint64_t value = 0;
    for (; bytes > 0 && prng->left; bytes--, prng->left--)
        value = value << 8 | *prng->tape++;
    return value;
}

uint64_t prng_next(struct prng *prng) {
    return prng->left ? from_tape(prng, 8) : mix(prng->state += STEP);
}

uint64_t prng_below(struct prng *prng, uint64_t limit) {
    int bytes = 0;
    if (!prng->left)
        return prng_next(prng) % limit;
    for (uint64_t most = limit - 1; most; most >>= 8)
        bytes++;
    return from_tape(prng, bytes) % limit;
}

uint64_t prng_between(struct prng *prng, uint64_t first, uint64_t last) {
    uint64_t span = last - first + 1;
    return span ? first + prng_below(prng, span) : prng_next(prng);
}

bool prng_chance(struct prng *prng, unsigned percent) {
    if (prng->left && percent == 0)
        return false;
    return prng_below(prng, 100) < percent;
}
