/* SPDX-License-Identifier: BSD-2-Clause */
/* Nested fields: JSON pointers as RFC 6901 writes them, and objects on the path. */
#include <codec/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>

/* wanted: the steps, separated by '|'. */
static void check_path(const char *text, const char *wanted) {
    struct us_json_path path;
    char steps[512] = "";
    size_t used = 0;
    CHECK_THAT(us_json_path_parse(text, &path), "%s", text);
    for (unsigned i = 0; i < path.depth; i++)
        used += (size_t)snprintf(steps + used, sizeof steps - used, "%s%.*s", i ? "|" : "", path.steps[i].len,
                                 path.bytes + path.steps[i].at);
    CHECK_STR(steps, wanted);
}

static void check_no_path(const char *text) {
    struct us_json_path path;
    CHECK_THAT(!us_json_path_parse(text, &path), "%s", text);
    CHECK_U64(path.depth, 0);
}

TEST(json_path, names_and_pointers) {
    struct us_json_path path;
    check_path("seq", "seq");
    check_path("meta/seq", "meta/seq"); /* a name: only a pointer begins with '/' */
    check_path("~2", "~2");
    check_path("/seq", "seq");
    check_path("/meta/seq", "meta|seq");
    check_path("/a~1b/m~0n", "a/b|m~n");
    check_path("/~01", "~1"); /* not "/": the order of RFC 6901, section 4 */
    check_path("/", "");
    check_path("/a/", "a|");
    check_path("//a", "|a");
    CHECK(us_json_path_parse("", &path) && path.depth == 0);
    CHECK(us_json_path_parse(NULL, &path) && path.depth == 0);
    CHECK(us_json_path_parse("/", &path) && path.depth == 1 && path.steps[0].len == 0);
}

TEST(json_path, what_is_no_path) {
    char text[400];
    check_no_path("/~");
    check_no_path("/a~");
    check_no_path("/a~2");
    check_no_path("/~/b");
    check_no_path("/a/b~x");
    memset(text, 'n', sizeof text);
    text[256] = '\0';
    check_no_path(text);
    text[0] = '/';
    check_no_path(text);
    text[255] = '\0';
    check_path(text, text + 1);
    text[0] = '\0';
    for (int i = 0; i < US_JSON_PATH_STEPS; i++)
        strcat(text, "/a");
    check_path(text, "a|a|a|a|a|a|a|a|a|a|a|a|a|a|a|a");
    strcat(text, "/a");
    check_no_path(text);
    CHECK(!us_json_new(&us_mem_default, "/~", "", 4096));
    CHECK(!us_json_new(&us_mem_default, "seq", "/~", 4096));
}

/* ---- reading */

static const char *seq_path = "/meta/seq", *session_path = "/meta/id";

/* Reads memory of the exact size. wanted: "seq session", a missing one "-"; or the fault of the payload. */
static void check(const char *payload, const char *wanted) {
    struct us_json *json = us_json_new(&us_mem_default, seq_path, session_path, 4096);
    struct us_json_found found;
    char *copy = malloc(strlen(payload) + 1), is[512], number[32] = "-";
    CHECK(json && copy);
    memcpy(copy, payload, strlen(payload));
    copy = realloc(copy, strlen(payload) ? strlen(payload) : 1);
    enum us_json_fault fault = us_json_read(json, copy, strlen(payload), &found);
    CHECK(found.has_seq == (found.seq_fault == US_JSON_OK) && found.has_session == (found.session_fault == US_JSON_OK));
    if (found.has_seq)
        snprintf(number, sizeof number, "%" PRIu64, found.seq);
    else if (found.seq_fault != US_JSON_MISSING)
        snprintf(number, sizeof number, "!%d", (int)found.seq_fault);
    snprintf(is, sizeof is, "%s %.*s", number, found.has_session ? (int)found.session_len : 1,
             found.has_session ? found.session : "-");
    if (fault != US_JSON_OK)
        snprintf(is, sizeof is, "%s", us_json_fault_text(fault));
    CHECK_THAT(strcmp(is, wanted) == 0, "%s: \"%s\", wanted \"%s\"", payload, is, wanted);
    free(copy);
    us_json_destroy(json);
}

#define SYNTAX "the payload is not a JSON object"

TEST(json_path, both_fields_in_one_object) {
    check("{\"meta\":{\"seq\":17,\"id\":\"room\"},\"data\":[1,{\"seq\":3}]}", "17 room");
    check(" { \"a\" : 1 , \"meta\" : { \"id\" : \"room\" , \"x\" : { } , \"seq\" : 17 } } ", "17 room");
    check("{\"meta\":{\"seq\":18446744073709551614,\"id\":5}}", "18446744073709551614 5");
    check("{\"seq\":1,\"id\":\"x\",\"meta\":{}}", "- -");
    check("{\"a\":{\"meta\":{\"seq\":17}}}", "- -");
    check("{}", "- -");
}

TEST(json_path, fields_in_different_places) {
    seq_path = "/a/b/c";
    session_path = "/x/y";
    check("{\"x\":{\"y\":\"room\"},\"a\":{\"b\":{\"c\":17}}}", "17 room");
    check("{\"a\":{\"b\":{\"c\":17}},\"x\":{}}", "17 -");
    check("{\"x\":{\"y\":\"room\"},\"a\":{\"b\":17}}", "- room");
    session_path = "id";
    check("{\"id\":\"room\",\"a\":{\"b\":{\"c\":17}}}", "17 room");
    session_path = "/a/id";
    check("{\"a\":{\"id\":\"room\",\"b\":{\"c\":17}}}", "17 room");
    session_path = "/a/b/c"; /* the same field */
    check("{\"a\":{\"b\":{\"c\":17}}}", "17 17");
    session_path = "";
    check("{\"a\":{\"b\":{\"c\":17}}}", "17 -");
    seq_path = "n";
    session_path = "/a/b";
    check("{\"n\":17,\"a\":{\"b\":\"room\"}}", "17 room");
}

TEST(json_path, escaped_names_at_each_level) {
    check("{\"m\\u0065ta\":{\"s\\u0065q\":17,\"\\u0069d\":\"r\\u006fom\"}}", "17 room");
    check("{\"m\\u0066ta\":{\"seq\":17}}", "- -");
    seq_path = "/a~1b/m~0n/";
    session_path = "/\xc3\xa9/\"";
    check("{\"a/b\":{\"m~n\":{\"\":17}},\"\xc3\xa9\":{\"\\\"\":\"room\"}}", "17 room");
    check("{\"a\\/b\":{\"m\\u007en\":{\"\":17}},\"\\u00e9\":{\"\\u0022\":\"room\"}}", "17 room");
    check("{\"a~1b\":{\"m~0n\":{\"\":17}}}", "- -");
}

TEST(json_path, the_last_of_equal_names_counts_at_each_level) {
    check("{\"meta\":{\"seq\":1,\"seq\":17}}", "17 -");
    check("{\"meta\":{\"seq\":1},\"meta\":{\"seq\":17}}", "17 -");
    check("{\"meta\":{\"seq\":1,\"id\":\"x\"},\"meta\":{\"id\":\"room\"}}", "- room");
    check("{\"meta\":{\"seq\":1},\"meta\":5}", "- -");
    check("{\"meta\":5,\"m\\u0065ta\":{\"seq\":17}}", "17 -");
}

TEST(json_path, what_is_no_object_on_the_path) {
    static const char *const values[] = {"null", "true", "5", "\"seq\"", "[]", "[{\"seq\":17}]", "[\"seq\",17]"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"meta\":%s}", values[i]);
        check(text, "- -");
    }
    seq_path = "/meta/0"; /* a name, not an index */
    check("{\"meta\":[17]}", "- -");
    check("{\"meta\":{\"0\":17}}", "17 -");
}

TEST(json_path, values_of_the_wrong_kind) {
    check("{\"meta\":{\"seq\":\"17\",\"id\":\"room\"}}", "!5 room");
    check("{\"meta\":{\"seq\":{\"seq\":17},\"id\":[1]}}", "!5 -");
    check("{\"meta\":{\"seq\":-1}}", "!6 -");
    check("{\"meta\":{\"seq\":18446744073709551615}}", "!6 -");
    CHECK(US_JSON_TYPE == 5 && US_JSON_NUMBER == 6);
}

TEST(json_path, objects_on_the_path_are_checked_strictly) {
    static const char *const inside[] = {
        "\"seq\"",           "\"seq\":17,",        ",\"seq\":17", "\"seq\":17 \"id\":1", "\"seq\":17,,\"id\":1",
        "\"seq\"::17",       "\"seq\" 17",         "seq:17",      "\"seq\":17,\"id\"",   "\"x\":nothing,\"seq\":17",
        "\"seq\":17;\"a\":1", "1:\"x\",\"seq\":17",
    };
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"meta\":{%s}}", inside[i]);
        check(text, SYNTAX);
    }
    check("{\"meta\":{\"seq\":17}", SYNTAX);
    check("{\"meta\":{\"seq\":17]}", SYNTAX);
    check("{\"meta\":{\"seq\":17}},1", SYNTAX);
    check("{\"meta\":{\"seq\":17} \"a\":1}", SYNTAX);
    check("[{\"meta\":{\"seq\":17}}]", SYNTAX);
}

/* Every prefix of a payload is refused, and none is read beyond its end. */
TEST(json_path, cut_off_anywhere) {
    static const char whole[] = "{\"a\":[{}],\"meta\":{\"x\":{\"y\":1},\"seq\":17,\"id\":\"r\\u006fom\"}}";
    char text[sizeof whole];
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        memcpy(text, whole, n);
        text[n] = '\0';
        check(text, SYNTAX);
    }
    check(whole, "17 room");
}
