/* SPDX-License-Identifier: BSD-2-Clause */
/* The text is parsed again: it must say what the struct says, and keep the rules of the format. */
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <support/check.h>
#include <unsalt/stats.h>

enum { TEXT = 32768, SERIES_MAX = 256, NAME = 160 };

struct series {
    char name[NAME], labels[NAME], family[NAME], type[16];
    char value[40];
};
struct page {
    struct series series[SERIES_MAX];
    size_t count, families;
};

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

static const char *print(const unsalt_stats_t *stats, const char *labels) {
    static char text[TEXT];
    int n = unsalt_stats_prometheus(stats, sizeof *stats, labels, text, sizeof text);
    CHECK(n > 0 && (size_t)n < sizeof text);
    CHECK_U64(strlen(text), (size_t)n);
    CHECK(text[n - 1] == '\n');
    return text;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The family that a series belongs to: its name, less the suffix of a part of a histogram. */
static bool belongs(const struct series *series) {
    static const char *const parts[] = {"_bucket", "_sum", "_count"};
    size_t n = strlen(series->family);
    if (strcmp(series->type, "histogram") != 0)
        return strcmp(series->name, series->family) == 0;
    for (size_t i = 0; i < 3; i++)
        if (strncmp(series->name, series->family, n) == 0 && strcmp(series->name + n, parts[i]) == 0)
            return true;
    return false;
}

static void add_series(struct page *page, const char *line, const char *family, const char *type) {
    struct series *series = &page->series[page->count++];
    CHECK(page->count <= SERIES_MAX);
    snprintf(series->family, sizeof series->family, "%s", family);
    snprintf(series->type, sizeof series->type, "%s", type);
    series->labels[0] = 0;
    if (strchr(line, '{'))
        CHECK_THAT(sscanf(line, "%159[a-z_]{%159[^}]} %39s", series->name, series->labels, series->value) == 3, "%s",
                   line);
    else
        CHECK_THAT(sscanf(line, "%159[a-z_] %39s", series->name, series->value) == 2, "%s", line);
    CHECK_THAT(belongs(series), "%s stands among the series of %s", line, family);
    CHECK_THAT(strspn(series->value, "0123456789.") == strlen(series->value), "%s", line);
}

/* Reads the text: HELP, TYPE, then the series of that metric, and no metric twice. */
static struct page *parse(const char *text) {
    static struct page page;
    static char copy[TEXT], seen[SERIES_MAX][NAME];
    char *rest = NULL, family[NAME] = "", type[16] = "", other[NAME];
    memset(&page, 0, sizeof page);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            CHECK_THAT(sscanf(line, "# HELP %159s %*c", family) == 1, "%s", line);
            CHECK_THAT(strlen(line) > 7 + strlen(family) + 10, "hardly a help text: %s", line);
            for (size_t i = 0; i < page.families; i++)
                CHECK_THAT(strcmp(seen[i], family) != 0, "%s comes twice", family);
            snprintf(seen[page.families++], NAME, "%s", family);
            line = strtok_r(NULL, "\n", &rest);
            CHECK_THAT(line && sscanf(line, "# TYPE %159s %15s", other, type) == 2, "%s has no TYPE", family);
            CHECK_STR(other, family);
            continue;
        }
        add_series(&page, line, family, type);
    }
    CHECK(page.families > 20);
    return &page;
}

static const struct series *find(const struct page *page, const char *name, const char *labels) {
    for (size_t i = 0; i < page->count; i++)
        if (strcmp(page->series[i].name, name) == 0 && strcmp(page->series[i].labels, labels) == 0)
            return &page->series[i];
    return NULL;
}

static uint64_t value(const struct page *page, const char *name, const char *labels) {
    const struct series *series = find(page, name, labels);
    CHECK_THAT(series, "there is no %s{%s}", name, labels);
    return strtoull(series->value, NULL, 10);
}

TEST(stats_prometheus, names_and_types_keep_the_conventions) {
    unsalt_stats_t stats = numbered();
    const struct page *page = parse(print(&stats, NULL));
    for (size_t i = 0; i < page->count; i++) {
        const struct series *series = &page->series[i];
        CHECK_THAT(strncmp(series->family, "unsalt_", 7) == 0, "%s", series->family);
        CHECK_THAT(ends_with(series->family, "_total") == (strcmp(series->type, "counter") == 0), "%s is a %s",
                   series->family, series->type);
        CHECK_THAT(!strstr(series->family, "_ns") && !strstr(series->family, "_ms"), "%s", series->family);
    }
}

TEST(stats_prometheus, no_series_twice) {
    unsalt_stats_t stats = numbered();
    const struct page *page = parse(print(&stats, "client=\"orders-1\""));
    for (size_t i = 0; i < page->count; i++)
        CHECK_THAT(find(page, page->series[i].name, page->series[i].labels) == &page->series[i], "%s{%s} comes twice",
                   page->series[i].name, page->series[i].labels);
}

#define WORD(field) (offsetof(unsalt_stats_t, field) / sizeof(uint64_t))

/* A word of a histogram: its buckets and its sum have tests of their own. */
static bool in_histogram(size_t word) {
    return word >= WORD(wait_count) || (word >= WORD(overdue_count) && word <= WORD(overdue_sum_ns));
}

/* The value of every word of the struct stands there; buckets and their sum have tests of their own. */
TEST(stats_prometheus, every_field_is_there) {
    unsalt_stats_t stats = numbered();
    const char *text = print(&stats, NULL);
    for (size_t i = 0; i < sizeof stats / sizeof(uint64_t); i++) {
        char number[32];
        if (i == WORD(conserved) || in_histogram(i))
            continue;
        snprintf(number, sizeof number, " %zu\n", 1000 + i);
        const char *at = strstr(text, number);
        CHECK_THAT(at, "word %zu of the statistics is missing: %s", i, text);
        CHECK_THAT(!strstr(at + 1, number), "word %zu of the statistics stands there twice: %s", i, text);
    }
}

TEST(stats_prometheus, states_by_what_they_are) {
    unsalt_stats_t stats = numbered();
    const struct page *page = parse(print(&stats, ""));
    char labels[NAME];
#define X(C, name, gauge, text)                                                                                       \
    snprintf(labels, sizeof labels, "state=\"%s\"", #name);                                                           \
    CHECK_U64(value(page, gauge ? "unsalt_records_pending" : "unsalt_records_total", labels),                         \
              stats.state[UNSALT_STATE_##C]);                                                                         \
    CHECK(!find(page, gauge ? "unsalt_records_total" : "unsalt_records_pending", labels));
    UNSALT_STATES(X)
#undef X
    CHECK_U64(value(page, "unsalt_records_conserved", ""), 1);
    stats.conserved = 0;
    CHECK_U64(value(parse(print(&stats, "")), "unsalt_records_conserved", ""), 0);
}

TEST(stats_prometheus, gaps_and_budgets_by_label) {
    unsalt_stats_t stats = numbered();
    const struct page *page = parse(print(&stats, NULL));
    char labels[NAME];
    for (int i = 0; i < UNSALT_GAP__CNT; i++) {
        snprintf(labels, sizeof labels, "reason=\"%s\"", unsalt_gap_reason_name((unsalt_gap_reason_t)i));
        CHECK_U64(value(page, "unsalt_gaps_total", labels), stats.gaps[i]);
        CHECK_U64(value(page, "unsalt_gap_numbers_total", labels), stats.gap_numbers[i]);
    }
    for (int i = 0; i < UNSALT_BUDGET__CNT; i++) {
        snprintf(labels, sizeof labels, "budget=\"%s\"", unsalt_budget_name((unsalt_budget_t)i));
        CHECK_U64(value(page, "unsalt_budget_full_total", labels), stats.budget_full[i]);
    }
}

/* The bounds as seconds, read back as a number of nanoseconds without floating point. */
static uint64_t nanoseconds(const char *seconds) {
    uint64_t whole = 0, part = 0;
    int digits = 0;
    CHECK(strspn(seconds, "0123456789.") == strlen(seconds));
    for (; *seconds && *seconds != '.'; seconds++)
        whole = 10 * whole + (uint64_t)(*seconds - '0');
    if (*seconds == '.') {
        for (seconds++; *seconds; seconds++, digits++)
            part = 10 * part + (uint64_t)(*seconds - '0');
        CHECK_THAT(digits >= 1 && digits <= 9 && part % 10 != 0, "digits that say nothing");
    }
    for (; digits < 9; digits++)
        part *= 10;
    return whole * UINT64_C(1000000000) + part;
}

TEST(stats_prometheus, the_histogram_is_cumulative) {
    unsalt_stats_t stats = numbered();
    const uint64_t *bounds = unsalt_wait_bounds();
    const struct page *page = parse(print(&stats, NULL));
    uint64_t sum = 0;
    int n = 0;
    for (size_t i = 0; i < page->count; i++) {
        char le[NAME];
        if (strcmp(page->series[i].name, "unsalt_wait_seconds_bucket") != 0)
            continue;
        CHECK(sscanf(page->series[i].labels, "le=\"%159[^\"]\"", le) == 1);
        CHECK(n < UNSALT_WAIT_BUCKETS);
        sum += stats.wait_count[n];
        CHECK_U64(strtoull(page->series[i].value, NULL, 10), sum);
        if (n == UNSALT_WAIT_BUCKETS - 1)
            CHECK_STR(le, "+Inf");
        else
            CHECK_U64(nanoseconds(le), bounds[n]);
        n++;
    }
    CHECK_I64(n, UNSALT_WAIT_BUCKETS);
    CHECK_U64(value(page, "unsalt_wait_seconds_count", ""), sum);
}

TEST(stats_prometheus, the_sum_is_exact) {
    static const struct {
        uint64_t ns;
        const char *seconds;
    } cases[] = {{0, "0"},
                 {1, "0.000000001"},
                 {1500000000, "1.5"},
                 {2000000000, "2"},
                 {10000001000, "10.000001"},
                 {UINT64_MAX, "18446744073.709551615"}};
    unsalt_stats_t stats = numbered();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stats.wait_sum_ns = cases[i].ns;
        CHECK_STR(find(parse(print(&stats, NULL)), "unsalt_wait_seconds_sum", "")->value, cases[i].seconds);
    }
}

TEST(stats_prometheus, labels_stand_in_every_series) {
    static const char mine[] = "client=\"a \\\"b\\\"\",dc=\"x\"";
    unsalt_stats_t stats = numbered();
    const struct page *page = parse(print(&stats, mine));
    for (size_t i = 0; i < page->count; i++) {
        const char *labels = page->series[i].labels;
        CHECK_THAT(strncmp(labels, mine, strlen(mine)) == 0, "%s{%s}", page->series[i].name, labels);
        CHECK_THAT(!labels[strlen(mine)] || labels[strlen(mine)] == ',', "%s", labels);
    }
    CHECK(find(page, "unsalt_gaps_total", "client=\"a \\\"b\\\"\",dc=\"x\",reason=\"timeout\""));
    CHECK(find(page, "unsalt_sessions", mine));
}

/* Nothing in the text comes from the locale. If the machine has none with a comma, this proves nothing. */
TEST(stats_prometheus, no_decimal_comma) {
    static char before[TEXT];
    unsalt_stats_t stats = numbered();
    stats.wait_sum_ns = 1500000000;
    snprintf(before, sizeof before, "%s", print(&stats, NULL));
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        setlocale(LC_ALL, "fr_FR.UTF-8");
    CHECK_STR(print(&stats, NULL), before);
    setlocale(LC_ALL, "C");
}

/* The header says how much room is enough. */
TEST(stats_prometheus, never_longer_than_promised) {
    unsalt_stats_t stats;
    memset(&stats, 0xff, sizeof stats);
    CHECK(unsalt_stats_prometheus(&stats, sizeof stats, NULL, NULL, 0) < 16 * 1024);
}

TEST(stats_prometheus, a_small_buffer_is_filled_and_terminated) {
    unsalt_stats_t stats = numbered();
    static char whole[TEXT];
    int n = unsalt_stats_prometheus(&stats, sizeof stats, "a=\"b\"", whole, sizeof whole);
    CHECK_I64(unsalt_stats_prometheus(&stats, sizeof stats, "a=\"b\"", NULL, 0), n);
    for (size_t size = 1; size <= (size_t)n + 1; size += 37) {
        char *text = malloc(size);
        CHECK(text);
        CHECK_I64(unsalt_stats_prometheus(&stats, sizeof stats, "a=\"b\"", text, size), n);
        CHECK_U64(strlen(text), size - 1);
        CHECK(memcmp(text, whole, size - 1) == 0);
        free(text);
    }
}
