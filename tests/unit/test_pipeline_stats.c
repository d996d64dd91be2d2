/* SPDX-License-Identifier: BSD-2-Clause */
/* The texts say what the struct says: every number once, under its own name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <support/check.h>
#include <unsalt/pipeline.h>

/* Every 64-bit word of the struct gets a number of its own, so that no field can stand in for another. */
static unsalt_pipeline_stats_t numbered(uint64_t *words, size_t *count) {
    unsalt_pipeline_stats_t stats;
    *count = sizeof stats / sizeof(uint64_t);
    for (size_t i = 0; i < *count; i++)
        words[i] = 100000 + i;
    memcpy(&stats, words, sizeof stats);
    stats.conserved = 1;
    return stats;
}

TEST(pipeline_stats, every_number_is_in_both_texts) {
    uint64_t words[sizeof(unsalt_pipeline_stats_t) / sizeof(uint64_t)];
    static char json[16384], prometheus[32768];
    size_t count, gone = 0;
    unsalt_pipeline_stats_t stats = numbered(words, &count);
    int n = unsalt_pipeline_stats_json(&stats, sizeof stats, json, sizeof json);
    CHECK(n > 0 && (size_t)n == strlen(json) && (size_t)n < sizeof json);
    n = unsalt_pipeline_stats_prometheus(&stats, sizeof stats, "a=\"b\"", prometheus, sizeof prometheus);
    CHECK(n > 0 && (size_t)n == strlen(prometheus) && (size_t)n < sizeof prometheus);
    for (size_t i = 0; i < count; i++) {
        char number[16];
        bool flag = i * sizeof(uint64_t) == offsetof(unsalt_pipeline_stats_t, conserved);
        bool histogram = i * sizeof(uint64_t) >= offsetof(unsalt_pipeline_stats_t, prepare_count);
        snprintf(number, sizeof number, ":%" PRIu64, words[i]);
        CHECK_THAT(flag || strstr(json, number), "word %zu is not in %s", i, json);
        snprintf(number, sizeof number, " %" PRIu64 "\n", words[i]);
        CHECK_THAT(flag || histogram || strstr(prometheus, number), "word %zu is not in %s", i, prometheus);
        gone += flag;
    }
    CHECK_U64(gone, 1);
    CHECK(strstr(json, "\"conserved\":true"));
    CHECK(strstr(json, "\"delivered\":") && strstr(json, "\"queued\":"));
    CHECK(strstr(prometheus, "unsalt_pipeline_attempts_total{a=\"b\",phase=\"deliver\"} "));
    CHECK(strstr(prometheus, "# TYPE unsalt_pipeline_turn_seconds histogram\n"));
}

/* An application that was built with a shorter struct. */
TEST(pipeline_stats, a_shorter_struct) {
    uint64_t words[sizeof(unsalt_pipeline_stats_t) / sizeof(uint64_t)];
    char json[16384];
    size_t count;
    unsalt_pipeline_stats_t stats = numbered(words, &count);
    unsalt_pipeline_stats_json(&stats, sizeof(uint64_t), json, sizeof json);
    CHECK(strstr(json, "\"entered\":100000,"));
    CHECK(strstr(json, "\"bytes\":0,"));
    CHECK(unsalt_pipeline_stats_json(&stats, sizeof stats, NULL, 0) > 100);
}

TEST(pipeline_stats, names) {
    CHECK_STR(unsalt_pipeline_phase_name(UNSALT_PIPELINE_DELIVER), "deliver");
    CHECK_STR(unsalt_pipeline_reason_name(UNSALT_PIPELINE_BY_RESOLVED), "resolved");
    CHECK_STR(unsalt_pipeline_state_name(UNSALT_PIPELINE_IN_REBURYING), "reburying");
    CHECK_STR(unsalt_pipeline_outcome_name(UNSALT_PIPELINE_WAS_CANCELLED), "cancelled");
    CHECK_STR(unsalt_pipeline_outcome_name(UNSALT_PIPELINE_WAS__CNT), "?");
    CHECK_STR(unsalt_pipeline_phase_name((unsalt_pipeline_phase_t)-1), "?");
}
