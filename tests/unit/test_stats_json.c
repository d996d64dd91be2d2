/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/json.h>
#include <base/mem.h>
#include <stdlib.h>
#include <support/check.h>
#include <unsalt/stats.h>

/* Every 64-bit word of the struct gets a number of its own, so that no field can stand in for another. */
static unsalt_stats_t numbered(void) {
    unsalt_stats_t stats;
    uint64_t words[sizeof stats / sizeof(uint64_t)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = 1000 + i;
    memcpy(&stats, words, sizeof stats);
    stats.conserved = 1;
    return stats;
}

/* The text must hold every word of the struct but that of `conserved`. */
TEST(stats_json, every_field_is_there) {
    unsalt_stats_t stats = numbered();
    static char text[16384];
    int n = unsalt_stats_json(&stats, sizeof stats, text, sizeof text);
    CHECK(n > 0 && (size_t)n < sizeof text);
    CHECK_U64(strlen(text), (size_t)n);
    for (size_t i = 0; i < sizeof stats / sizeof(uint64_t); i++) {
        char number[32];
        if (i == offsetof(unsalt_stats_t, conserved) / sizeof(uint64_t))
            continue;
        snprintf(number, sizeof number, ":%zu", 1000 + i);
        CHECK_THAT(strstr(text, number), "word %zu of the statistics is missing: %s", i, text);
    }
}

TEST(stats_json, names_of_states_and_reasons) {
    unsalt_stats_t stats = numbered();
    static char text[16384];
    char wanted[64];
    unsalt_stats_json(&stats, sizeof stats, text, sizeof text);
    for (int i = 0; i < UNSALT_STATE__CNT; i++) {
        snprintf(wanted, sizeof wanted, "\"%s\":%" PRIu64, unsalt_state_name((unsalt_state_t)i), stats.state[i]);
        CHECK_THAT(strstr(text, wanted), "%s is missing", wanted);
    }
    for (int i = 0; i < UNSALT_GAP__CNT; i++) {
        snprintf(wanted, sizeof wanted, "\"%s\":%" PRIu64, unsalt_gap_reason_name((unsalt_gap_reason_t)i),
                 stats.gaps[i]);
        CHECK_THAT(strstr(text, wanted), "%s is missing", wanted);
    }
    CHECK(strstr(text, "\"conserved\":true"));
    stats.conserved = 0;
    unsalt_stats_json(&stats, sizeof stats, text, sizeof text);
    CHECK(strstr(text, "\"conserved\":false"));
}

/* A real parser reads it, and finds a top-level field with its full 64 bits. */
TEST(stats_json, is_json) {
    unsalt_stats_t stats = numbered();
    struct us_json_found found;
    static char text[16384];
    stats.wait_sum_ns = UINT64_MAX - 1;
    int n = unsalt_stats_json(&stats, sizeof stats, text, sizeof text);
    struct us_json *json = us_json_new(&us_mem_default, "wait_sum_ns", NULL, 4096);
    CHECK(json);
    CHECK(us_json_read(json, text, (size_t)n, &found) == US_JSON_OK);
    CHECK(found.has_seq);
    CHECK_U64(found.seq, UINT64_MAX - 1);
    us_json_destroy(json);
}

TEST(stats_json, a_small_buffer_is_filled_and_terminated) {
    unsalt_stats_t stats = numbered();
    static char whole[16384];
    int n = unsalt_stats_json(&stats, sizeof stats, whole, sizeof whole);
    CHECK_I64(unsalt_stats_json(&stats, sizeof stats, NULL, 0), n);
    for (size_t size = 1; size <= (size_t)n + 1; size += 37) {
        char *text = malloc(size);
        CHECK(text);
        CHECK_I64(unsalt_stats_json(&stats, sizeof stats, text, size), n);
        CHECK_U64(strlen(text), size - 1);
        CHECK(memcmp(text, whole, size - 1) == 0);
        free(text);
    }
}
