/* SPDX-License-Identifier: BSD-2-Clause */
/* The soak, a few hours of it: see <soak/fixture/world.h>. `make soak` goes on for days. */
#include <soak/fixture/world.h>
#include <support/check.h>
#include <support/drive.h>

static void live(bool rough) {
    char why[512];
    struct world *world = world_new(4000, rough);
    bool ok = true;
    for (unsigned hours = drive_cases(6); hours && ok; hours--)
        ok = world_hour(world);
    ok = world_end(world, why, sizeof why) && ok;
    CHECK_THAT(ok, "%s", why);
}

TEST(soak, some_hours_of_a_consumers_life) {
    live(false);
}

TEST(soak, some_rough_hours) {
    live(true);
}
