/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/clock.h>
#include <kafka/versions.h>
#include <support/check.h>

TEST(versions, the_floor) {
    struct us_versions v = us_versions(0x020002ff);
    CHECK(!v.batch_one);
}

TEST(versions, borders) {
    CHECK(!us_versions(0x020100ff).batch_one);
    CHECK(us_versions(0x020200ff).batch_one);
    CHECK(us_versions(0x020d01ff).batch_one); /* confluentinc/librdkafka#4844 */
    CHECK(!us_versions(0x020d02ff).batch_one);
}

TEST(versions, the_newest_and_later) {
    struct us_versions v = us_versions(0x021000ff);
    CHECK(!v.batch_one);
    v = us_versions(0x7f0000ff);
    CHECK(!v.batch_one);
}

TEST(clock, runs_forward) {
    uint64_t before = us_clock_now(), wall = us_clock_wall_ms();
    CHECK(us_clock_now() >= before);
    CHECK(wall > UINT64_C(1600000000000));
}
