/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/chance.h>
#include <kafka/clock.h>
#include <kafka/producer_epoch.h>
#include <stdatomic.h>

/* The last one that this process took; 0: none. */
static atomic_uint_fast64_t last;

/* The low bits. */
static uint64_t draw_bits(void) {
    return us_chance() & ((UINT64_C(1) << US_EPOCH_BITS) - 1);
}

/* `wanted`, or the next one if that isn't above the last. */
static uint64_t take(uint64_t wanted) {
    uint_fast64_t before = atomic_load(&last), epoch;
    do {
        epoch = wanted > before ? wanted : before + 1;
    } while (!atomic_compare_exchange_weak(&last, &before, epoch));
    return epoch;
}

uint64_t us_epoch_draw(void) {
    return take(us_clock_wall_ms() << US_EPOCH_BITS | draw_bits());
}

uint64_t us_epoch_next(void) {
    return take(0);
}
