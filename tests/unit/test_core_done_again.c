/* SPDX-License-Identifier: BSD-2-Clause */
/* What an earlier owner had done beyond its position, told again while reading is within it, or in front of it. */
#include <unit/fixture/cursors.h>

/* Offsets 10.. of one partition, of which the earlier owner had these done; the session stands at `cursor`. */
static void open_at_ten(struct stage *s, const unsalt_core_range_t *before, size_t count) {
    stage_init(s);
    s->params.cursors = true;
    stage_open(s);
    stage_assign(s, 0, 0, -1, 10, 0);
    CHECK_I64(unsalt_core_done_before(s->core, 0, before, count), UNSALT_CORE_OK);
    CHECK_I64(cursors_restore(s, "a", 0, 1, NULL, 0, NULL, 0), UNSALT_CORE_OK);
    s->next[0] = 10;
}

TEST(core_done_again, reading_is_within_a_range) {
    struct stage s;
    const unsalt_core_range_t before[] = {{11, 15}, {18, 19}};
    open_at_ten(&s, before, 2);
    stage_push(&s, 0, "a", 1);
    CHECK_STR(cursors_done(&s), "11-15,18-19");
    stage_push(&s, 0, "other", 2); /* offsets 11 and 12, done before */
    stage_push(&s, 0, "other", 3);
    CHECK_STR(stage_took(&s), "a1 duplicate:other2 duplicate:other3");
    CHECK_STR(cursors_done(&s), "11-15,18-19"); /* one range still, of which a part was read */
    CHECK_I64(unsalt_core_position(s.core, 0), 10);
    unsalt_core_range_t one[1];
    CHECK_U64(unsalt_core_done(s.core, 0, 0, one, 1), 1);
    CHECK_U64(one[0].last, 15);
    CHECK_U64(unsalt_core_done(s.core, 0, 16, one, 1), 1);
    CHECK_U64(one[0].first, 18);
    stage_close(&s);
}

/* Nothing is open: what comes next was done, so the position lies behind it. */
TEST(core_done_again, the_position_passes_what_was_done) {
    struct stage s;
    const unsalt_core_range_t before[] = {{11, 15}, {18, 19}};
    open_at_ten(&s, before, 2);
    s.ack = true;
    CHECK_I64(unsalt_core_position(s.core, 0), 10);
    stage_push(&s, 0, "a", 1);
    CHECK_I64(unsalt_core_position(s.core, 0), 16);
    CHECK_STR(cursors_done(&s), "18-19");
    stage_push(&s, 0, "other", 2);
    CHECK_I64(unsalt_core_position(s.core, 0), 16);
    CHECK_STR(cursors_done(&s), "18-19");
    for (uint64_t seq = 3; seq <= 7; seq++)
        stage_push(&s, 0, seq == 7 ? "a" : "other", seq == 7 ? 2 : seq); /* up to offset 16 */
    CHECK_I64(unsalt_core_position(s.core, 0), 17);
    CHECK_STR(cursors_done(&s), "18-19");
    stage_push(&s, 0, "a", 3);
    CHECK_I64(unsalt_core_position(s.core, 0), 20);
    CHECK_STR(cursors_done(&s), "");
    stage_close(&s);
}
