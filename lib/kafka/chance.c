/* SPDX-License-Identifier: BSD-2-Clause */
#include <base/hash.h>
#include <kafka/chance.h>
#include <kafka/clock.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <unistd.h>

uint64_t us_chance(void) {
    static atomic_uint_fast64_t calls;
    uint64_t bits;
    if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) == (ssize_t)sizeof(bits)) {
        return bits;
    }
    uint64_t mixed = us_mix(us_clock_now() + US_MIX_STEP) ^ us_mix((uint64_t)getpid() << 32 | us_clock_wall_ms() >> 32);
    return us_mix((mixed ^ (uintptr_t)&bits) + US_MIX_STEP * atomic_fetch_add(&calls, 1));
}
