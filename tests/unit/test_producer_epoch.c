/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <kafka/producer_epoch.h>
#include <pthread.h>
#include <stdlib.h>
#include <support/check.h>

enum { DRAWS = 10000, THREADS = 4 };

static uint64_t by_clock(void) {
    return us_clock_wall_ms() << US_EPOCH_BITS;
}

/* Thousands are drawn within one ms. */
TEST(producer_epoch, each_is_higher_than_all_before) {
    uint64_t before = by_clock(), last = 0;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t epoch = i % 3 ? us_epoch_draw() : us_epoch_next();
        CHECK(epoch > last);
        last = epoch;
    }
    CHECK(us_epoch_draw() >= before);
    CHECK(last < by_clock() + (UINT64_C(2) << US_EPOCH_BITS));
    CHECK_U64(us_epoch_next() >> 63, 0);
}

/* One that is drawn after many steps is higher, although the clock hasn't moved on; and the steps are small ones. */
TEST(producer_epoch, steps_stay_behind_the_clock) {
    uint64_t first = us_epoch_draw(), last = first;
    for (int i = 0; i < DRAWS; i++)
        last = us_epoch_next();
    CHECK_U64(last, first + DRAWS);
    CHECK(us_epoch_draw() > last);
    CHECK(last < by_clock() + (UINT64_C(2) << US_EPOCH_BITS));
}

/* Two processes that start within the same ms have nothing else that tells them apart. */
TEST(producer_epoch, the_low_bits_are_random) {
    const uint64_t mask = (UINT64_C(1) << US_EPOCH_BITS) - 1;
    uint64_t differ = 0, first = us_epoch_draw(), last = first;
    for (int i = 0; i < 40; i++) {
        while (by_clock() <= last) /* so that it isn't one step above the last */
            ;
        uint64_t epoch = us_epoch_draw();
        differ |= (epoch ^ first) & mask;
        last = epoch;
    }
    CHECK_U64(differ, mask); /* each bit has had both values, but for one chance in 2^35 */
}

static void *draw(void *arg) {
    uint64_t *epochs = arg;
    for (int i = 0; i < DRAWS; i++)
        epochs[i] = i % 2 ? us_epoch_draw() : us_epoch_next();
    return NULL;
}

static int compare(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

TEST(producer_epoch, threads_never_get_the_same_one) {
    static uint64_t epochs[THREADS * DRAWS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, draw, epochs + i * DRAWS) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    qsort(epochs, THREADS * DRAWS, sizeof epochs[0], compare);
    for (int i = 1; i < THREADS * DRAWS; i++)
        CHECK(epochs[i] != epochs[i - 1]);
}
