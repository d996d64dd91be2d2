/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/conf.h>
#include <kafka/conf_table.h>
#include <stdlib.h>
#include <support/check.h>

static unsalt_conf_t *fresh(void) {
    unsalt_conf_t *conf = unsalt_conf_new();
    CHECK(conf);
    return conf;
}

static void put(unsalt_conf_t *conf, const char *name, const char *value) {
    char err[256] = "";
    CHECK_THAT(unsalt_conf_set(conf, name, value, err, sizeof err) == UNSALT_CONF_OK, "%s=%s: %s", name, value, err);
}

static void check_get(const unsalt_conf_t *conf, const char *name, const char *wanted) {
    char value[256];
    size_t size = sizeof value;
    CHECK(unsalt_conf_get(conf, name, value, &size) == UNSALT_CONF_OK);
    CHECK_THAT(strcmp(value, wanted) == 0, "%s is \"%s\", not \"%s\"", name, value, wanted);
    CHECK_U64(size, strlen(wanted) + 1);
}

/* The value is refused, the text names key, value and every part of `allowed`, and the old value stays. */
static void check_refused(const char *name, const char *value, const char *allowed) {
    unsalt_conf_t *conf = fresh();
    char err[256] = "", before[256], after[256];
    size_t n = sizeof before, m = sizeof after;
    unsalt_conf_get(conf, name, before, &n);
    CHECK_THAT(unsalt_conf_set(conf, name, value, err, sizeof err) == UNSALT_CONF_INVALID, "%s=%s", name, value);
    CHECK_THAT(strstr(err, name) && strstr(err, value) && strstr(err, allowed), "%s=%s: \"%s\"", name, value, err);
    unsalt_conf_get(conf, name, after, &m);
    CHECK_STR(after, before);
    unsalt_conf_destroy(conf);
}

TEST(conf, every_default_is_allowed_and_reads_back) {
    unsalt_conf_t *conf = fresh();
    CHECK(us_keys_count > 30);
    for (size_t i = 0; i < us_keys_count; i++) {
        const struct us_key *key = &us_keys[i];
        char err[256] = "";
        check_get(conf, key->name, key->fallback);
        CHECK_THAT(unsalt_conf_set(conf, key->name, key->fallback, err, sizeof err) == UNSALT_CONF_OK, "%s", err);
        check_get(conf, key->name, key->fallback);
        CHECK_THAT(strlen(key->doc) > 20 && strchr("CPBRT", key->scope), "%s is described", key->name);
        for (size_t j = 0; j < i; j++)
            CHECK_THAT(key->offset != us_keys[j].offset, "%s and %s share a field", key->name, us_keys[j].name);
    }
    unsalt_conf_destroy(conf);
}

TEST(conf, choices_stand_in_the_order_of_their_constants) {
    unsalt_conf_t *conf = fresh();
    static const struct {
        const char *name, *value;
        size_t offset;
        int64_t constant;
    } choices[] = {
        {"layout", "topics", offsetof(struct unsalt_conf, layout), US_LAYOUT_TOPICS},
        {"layout", "block", offsetof(struct unsalt_conf, layout), US_LAYOUT_BLOCK},
        {"colocation", "report", offsetof(struct unsalt_conf, colocation), US_COLOCATION_REPORT},
        {"seq.source", "unsalt", offsetof(struct unsalt_conf, seq_source), US_SEQ_UNSALT},
        {"seq.source", "header", offsetof(struct unsalt_conf, seq_source), US_SEQ_HEADER},
        {"seq.source", "json", offsetof(struct unsalt_conf, seq_source), US_SEQ_JSON},
        {"seq.source", "key", offsetof(struct unsalt_conf, seq_source), US_SEQ_KEY},
        {"seq.source", "callback", offsetof(struct unsalt_conf, seq_source), US_SEQ_CALLBACK},
        {"seq.key", "binary", offsetof(struct unsalt_conf, seq_key), US_SEQ_KEY_BINARY},
        {"seq.key", "decimal", offsetof(struct unsalt_conf, seq_key), US_SEQ_KEY_DECIMAL},
        {"offset.reset", "earliest", offsetof(struct unsalt_conf, offset_reset), US_RESET_EARLIEST},
        {"offset.reset", "latest", offsetof(struct unsalt_conf, offset_reset), US_RESET_LATEST},
        {"malformed", "dead-letter", offsetof(struct unsalt_conf, malformed), UNSALT_MALFORMED_DEAD_LETTER},
        {"start", "first", offsetof(struct unsalt_conf, start), UNSALT_START_FIRST},
        {"start", "seen", offsetof(struct unsalt_conf, start), UNSALT_START_SEEN},
        {"late", "dead-letter", offsetof(struct unsalt_conf, late), UNSALT_LATE_DEAD_LETTER},
        {"late", "drop", offsetof(struct unsalt_conf, late), UNSALT_LATE_DROP},
        {"gap.clock", "wall", offsetof(struct unsalt_conf, gap_clock), UNSALT_CLOCK_WALL},
        {"budget.policy", "block", offsetof(struct unsalt_conf, budget_policy), UNSALT_BUDGET_BLOCK},
        {"ack", "manual", offsetof(struct unsalt_conf, ack), US_ACK_MANUAL},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        int64_t number;
        put(conf, choices[i].name, choices[i].value);
        memcpy(&number, (const char *)conf + choices[i].offset, sizeof number);
        CHECK_THAT(number == choices[i].constant, "%s=%s", choices[i].name, choices[i].value);
        check_get(conf, choices[i].name, choices[i].value);
    }
    unsalt_conf_destroy(conf);
}

TEST(conf, wrong_values_are_refused_with_what_is_allowed) {
    check_refused("layout", "blocks", "hash, topics or block");
    check_refused("layout", "", "hash, topics or block");
    check_refused("layout", "HASH", "hash, topics or block");
    check_refused("layout", "hash|topics", "hash, topics or block");
    check_refused("seq.source", "keys", "auto, unsalt, header, json, key or callback");
    check_refused("seq.key", "hex", "none, binary or decimal");
    check_refused("seq.key.digits", "0", "1..20");
    check_refused("seq.key.digits", "21", "1..20");
    check_refused("malformed", "drop", "deliver or dead-letter");
    check_refused("seq.json", "/meta/~2", "~ written ~0");
    check_refused("seq.json", "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", "up to 16 names");
    check_refused("seq.json", "", "a name of 1 to 255 bytes");
    check_refused("session.json", "/~", "or a pointer such as /a/b");
    check_refused("salt.trust", "yes", "true or false");
    check_refused("session.id.max", "4097", "1..4096");
    check_refused("session.id.max", "0", "1..4096");
    check_refused("read.batch", "10001", "1..10000");
    check_refused("read.batch", "1e3", "1..10000");
    check_refused("read.batch", " 5", "1..10000");
    check_refused("read.batch", "5 ", "1..10000");
    check_refused("read.batch", "99999999999999999999999", "1..10000");
    check_refused("gap.timeout.ms", "-2", "-1 (off)");
    check_refused("gap.timeout.ms", "500ms", "-1 (off)");
    check_refused("revoke.timeout.ms", "-1", "0..600000");
    check_refused("revoke.timeout.ms", "off", "0..600000");
    check_refused("seq.first", "18446744073709551615", "18446744073709551614");
    check_refused("seq.first", "-1", "18446744073709551614");
    check_refused("salt.pattern", "#<k>#", "<k>");
    check_refused("salt.pattern", "salt", "<k>");
    check_refused("seq.header", "", "1 to 255");
    check_refused("lane.topics", "a,,b", "topic names");
    check_refused("lane.topics", "a,b,", "topic names");
    check_refused("lane.topics", "a,b,a", "each once");
    check_refused("lane.topics", "a,b/c", "topic names");
}

TEST(conf, an_unknown_key_names_the_nearest) {
    unsalt_conf_t *conf = fresh();
    char err[256];
    CHECK(unsalt_conf_set(conf, "gap.timout.ms", "5", err, sizeof err) == UNSALT_CONF_UNKNOWN);
    CHECK_THAT(strstr(err, "gap.timout.ms") && strstr(err, "gap.timeout.ms"), "%s", err);
    CHECK(unsalt_conf_set(conf, "lane", "5", err, sizeof err) == UNSALT_CONF_UNKNOWN);
    CHECK_THAT(strstr(err, "\"lanes\""), "%s", err);
    CHECK(unsalt_conf_set(conf, "bootstrap.servers", "x", err, sizeof err) == UNSALT_CONF_UNKNOWN);
    CHECK_THAT(strstr(err, "bootstrap.servers") && !strstr(err, "did you mean"), "%s", err);
    CHECK(unsalt_conf_set(conf, "", "x", err, sizeof err) == UNSALT_CONF_UNKNOWN);
    CHECK(unsalt_conf_set(conf, NULL, "x", err, sizeof err) == UNSALT_CONF_UNKNOWN);
    CHECK(unsalt_conf_set(conf, "nonsense", "x", NULL, 0) == UNSALT_CONF_UNKNOWN);
    char lengthy[4000];
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
    CHECK(unsalt_conf_set(conf, lengthy, "x", err, sizeof err) == UNSALT_CONF_UNKNOWN);
    CHECK(unsalt_conf_set(conf, "layout", lengthy, err, sizeof err) == UNSALT_CONF_INVALID);
    CHECK_THAT(strstr(err, "hash, topics or block"), "%s", err);
    unsalt_conf_destroy(conf);
}

TEST(conf, never_is_minus_one_or_off) {
    unsalt_conf_t *conf = fresh();
    put(conf, "gap.timeout.ms", "off");
    CHECK_I64(conf->gap_timeout_ms, INT64_MAX);
    check_get(conf, "gap.timeout.ms", "-1");
    put(conf, "gap.timeout.ms", "0");
    CHECK_I64(conf->gap_timeout_ms, 0);
    put(conf, "gap.timeout.ms", "-1");
    CHECK_I64(conf->gap_timeout_ms, INT64_MAX);
    put(conf, "gap.timeout.ms", NULL);
    check_get(conf, "gap.timeout.ms", "500");
    unsalt_conf_destroy(conf);
}

TEST(conf, get_tells_the_size_it_needs) {
    unsalt_conf_t *conf = fresh();
    char value[4];
    size_t size = 0;
    CHECK(unsalt_conf_get(conf, "seq.json", NULL, &size) == UNSALT_CONF_OK);
    CHECK_U64(size, 10);
    size = sizeof value;
    CHECK(unsalt_conf_get(conf, "seq.json", value, &size) == UNSALT_CONF_OK);
    CHECK_STR(value, "glo");
    CHECK_U64(size, 10);
    CHECK(unsalt_conf_get(conf, "seq.jsn", value, &size) == UNSALT_CONF_UNKNOWN);
    put(conf, "seq.first", "18446744073709551614");
    check_get(conf, "seq.first", "18446744073709551614");
    unsalt_conf_destroy(conf);
}

TEST(conf, a_copy_is_its_own) {
    unsalt_conf_t *conf = fresh();
    put(conf, "lane.topics", "a,b");
    put(conf, "seq.json", "n");
    unsalt_conf_t *copy = unsalt_conf_dup(conf);
    CHECK(copy);
    put(conf, "lane.topics", "");
    put(conf, "seq.json", "m");
    check_get(conf, "lane.topics", "");
    CHECK(!conf->lane_topics);
    unsalt_conf_destroy(conf);
    check_get(copy, "lane.topics", "a,b");
    check_get(copy, "seq.json", "n");
    unsalt_conf_destroy(copy);
    unsalt_conf_destroy(NULL);
}

/* settings: "key=value key=value". NULL `wanted`: allowed; else a part of the error. */
static void check_whole(bool (*check)(const struct unsalt_conf *, char *, size_t), const char *settings,
                        const char *wanted) {
    unsalt_conf_t *conf = fresh();
    char err[256] = "", text[256];
    CHECK(strlen(settings) < sizeof text);
    strcpy(text, settings);
    for (char *key = strtok(text, " "); key; key = strtok(NULL, " ")) {
        char *value = strchr(key, '=');
        *value++ = '\0';
        put(conf, key, value);
    }
    bool allowed = check(conf, err, sizeof err);
    CHECK_THAT(allowed == !wanted, "%s: \"%s\"", settings, err);
    CHECK_THAT(!wanted || strstr(err, wanted), "%s: \"%s\"", settings, err);
    unsalt_conf_destroy(conf);
}

TEST(conf, combinations_for_a_consumer) {
    check_whole(us_conf_check_consumer, "", NULL);
    check_whole(us_conf_check_consumer, "layout=topics", "needs partitions");
    check_whole(us_conf_check_consumer, "layout=topics partitions=7", "needs lanes");
    check_whole(us_conf_check_consumer, "layout=topics partitions=7 lanes=4", NULL);
    check_whole(us_conf_check_consumer, "layout=topics partitions=7 lane.topics=a,b", NULL);
    check_whole(us_conf_check_consumer, "layout=topics partitions=7 lanes=2 lane.topics=a,b", NULL);
    check_whole(us_conf_check_consumer, "layout=topics partitions=7 lanes=3 lane.topics=a,b", "2 names");
    check_whole(us_conf_check_consumer, "lane.topics=a,b", "layout=topics");
    check_whole(us_conf_check_consumer, "lane.topics=a,b", "\"a,b\"");
    check_whole(us_conf_check_consumer, "lane.topics=a,b layout=block partitions=6 lanes=2", "layout is block");
    check_whole(us_conf_check_consumer, "layout=block", "needs partitions");
    check_whole(us_conf_check_consumer, "layout=block partitions=6", "needs lanes");
    check_whole(us_conf_check_consumer, "layout=block partitions=6 lanes=3", NULL);
    check_whole(us_conf_check_consumer, "layout=block partitions=6 lanes=6", NULL);
    check_whole(us_conf_check_consumer, "layout=block partitions=6 lanes=1", NULL);
    check_whole(us_conf_check_consumer, "layout=block partitions=6 lanes=4", "partitions=6 is not allowed");
    check_whole(us_conf_check_consumer, "layout=block partitions=6 lanes=4", "lanes=4: it must be a multiple");
    check_whole(us_conf_check_consumer, "layout=block partitions=6 lanes=4", "such as 8");
    check_whole(us_conf_check_consumer, "layout=block partitions=3 lanes=65535", "such as 65535");
    check_whole(us_conf_check_consumer, "late=dead-letter", "late=dead-letter needs a callback");
    check_whole(us_conf_check_consumer, "malformed=dead-letter", "malformed=dead-letter needs a callback");
    check_whole(us_conf_check_consumer, "seq.source=callback", "unsalt_conf_set_extract_cb()");
    check_whole(us_conf_check_consumer, "seq.source=key", "seq.source=key needs seq.key=");
    check_whole(us_conf_check_consumer, "seq.source=key seq.key=binary", NULL);
    check_whole(us_conf_check_consumer, "seq.source=key seq.key=decimal seq.key.digits=1", NULL);
    check_whole(us_conf_check_consumer, "seq.key=decimal", NULL);
    check_whole(us_conf_check_consumer, "gap.wait.max.ms=499", "gap.timeout.ms=500");
    check_whole(us_conf_check_consumer, "gap.wait.max.ms=499 gap.timeout.ms=off", NULL);
    check_whole(us_conf_check_consumer, "gap.wait.max.ms=500", NULL);
}

static void take(void *opaque, const struct rd_kafka_message_s *message, const char *reason) {
    (void)opaque;
    (void)message;
    (void)reason;
}

static unsalt_extract_res_t none(void *opaque, const struct rd_kafka_message_s *message, unsalt_extract_t *found) {
    (void)opaque;
    (void)message;
    (void)found;
    return UNSALT_EXTRACT_NONE;
}

TEST(conf, a_callback_source_with_its_callback) {
    unsalt_conf_t *conf = fresh();
    char err[256];
    put(conf, "seq.source", "callback");
    unsalt_conf_set_extract_cb(conf, none, conf);
    CHECK(us_conf_check_consumer(conf, err, sizeof err));
    unsalt_conf_t *copy = unsalt_conf_dup(conf);
    CHECK(copy && copy->extract_cb == none && copy->extract_opaque == conf);
    unsalt_conf_destroy(copy);
    unsalt_conf_destroy(conf);
}

TEST(conf, a_dead_letter_policy_with_its_callback) {
    unsalt_conf_t *conf = fresh();
    char err[256];
    put(conf, "late", "dead-letter");
    put(conf, "malformed", "dead-letter");
    unsalt_conf_set_dead_letter_cb(conf, take, conf);
    CHECK(us_conf_check_consumer(conf, err, sizeof err));
    CHECK(conf->dead_letter_opaque == conf);
    unsalt_conf_destroy(conf);
}

TEST(conf, combinations_for_a_producer) {
    check_whole(us_conf_check_producer, "", "needs partitions");
    check_whole(us_conf_check_producer, "partitions=7", "needs lanes");
    check_whole(us_conf_check_producer, "partitions=7 lanes=4", NULL);
    check_whole(us_conf_check_producer, "partitions=7 lanes=1025", "1024 lanes");
    check_whole(us_conf_check_producer, "partitions=7 lanes=4 seq.first=0", "seq.first=0");
    check_whole(us_conf_check_producer, "partitions=7 layout=topics lane.topics=a,b", NULL);
    check_whole(us_conf_check_producer, "lanes=4 layout=topics", "needs partitions");
}

TEST(conf, core_parameters) {
    unsalt_conf_t *conf = fresh();
    unsalt_core_params_t defaults, params;
    unsalt_core_params_init(&defaults);
    params = defaults;
    us_conf_core_params(conf, &params);
    /* The configuration's defaults are the core's. */
    CHECK_BYTES((char *)&params, sizeof params, (char *)&defaults, sizeof defaults);
    put(conf, "gap.timeout.ms", "-1");
    put(conf, "seq.first", "18446744073709551614");
    put(conf, "gap.clock", "wall");
    put(conf, "malformed", "dead-letter");
    put(conf, "lanes", "65535");
    put(conf, "block.max.ms", "7");
    us_conf_core_params(conf, &params);
    CHECK_U64(params.gap_timeout_ns, UNSALT_NEVER);
    CHECK_U64(params.seq_first, UINT64_MAX - 1);
    CHECK_U64(params.gap_clock, UNSALT_CLOCK_WALL);
    CHECK_U64(params.malformed, UNSALT_MALFORMED_DEAD_LETTER);
    CHECK_U64(params.lanes, 65535);
    CHECK_U64(params.block_max_ns, 7000000);
    put(conf, "lane.topics", "a,b,c");
    us_conf_core_params(conf, &params);
    CHECK_U64(params.lanes, 3);
    unsalt_conf_destroy(conf);
}

/* What the configuration allows, the core takes: checked at both ends of every number. */
TEST(conf, the_core_takes_every_limit) {
    char err[256], value[32];
    for (size_t i = 0; i < 2 * us_keys_count; i++) {
        const struct us_key *key = &us_keys[i / 2];
        if (key->type != US_KEY_INT && key->type != US_KEY_MS)
            continue;
        unsalt_conf_t *conf = fresh();
        unsalt_core_params_t params;
        snprintf(value, sizeof value, "%" PRId64, i % 2 ? key->max : key->min);
        put(conf, key->name, value);
        unsalt_core_params_init(&params);
        us_conf_core_params(conf, &params);
        unsalt_core_t *core = unsalt_core_new(&params, err, sizeof err);
        CHECK_THAT(core, "%s=%s: %s", key->name, value, err);
        unsalt_core_destroy(core);
        unsalt_conf_destroy(conf);
    }
}

TEST(conf, lane_topics_are_split) {
    unsalt_conf_t *conf = fresh();
    struct us_conf_lanes lanes;
    CHECK(us_conf_lanes_init(&lanes, conf));
    CHECK_U64(lanes.topics.count, 1);
    CHECK(!lanes.topics.names);
    us_conf_lanes_destroy(&lanes);
    put(conf, "lanes", "5");
    CHECK(us_conf_lanes_init(&lanes, conf));
    CHECK_U64(lanes.topics.count, 5);
    us_conf_lanes_destroy(&lanes);
    put(conf, "lane.topics", "a,bc,d");
    CHECK(us_conf_lanes_init(&lanes, conf));
    CHECK_U64(lanes.topics.count, 3);
    CHECK_STR(lanes.topics.names[0], "a");
    CHECK_STR(lanes.topics.names[1], "bc");
    CHECK_STR(lanes.topics.names[2], "d");
    check_get(conf, "lane.topics", "a,bc,d");
    us_conf_lanes_destroy(&lanes);
    us_conf_lanes_destroy(&lanes);
    unsalt_conf_destroy(conf);
}

TEST(conf, the_table_has_a_row_per_key) {
    char *text = NULL;
    size_t size, rows = 0;
    FILE *to = open_memstream(&text, &size);
    CHECK(to);
    unsalt_conf_print_table(to);
    fclose(to);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), rows++) {
        size_t bars = 0;
        for (const char *c = line; *c; c++)
            bars += *c == '|' && (c == line || c[-1] != '\\');
        CHECK_THAT(bars == 6, "%s", line);
        CHECK_THAT(rows < 2 || strstr(line, us_keys[rows - 2].name), "%s", line);
    }
    CHECK_U64(rows, us_keys_count + 2);
    free(text);
}
