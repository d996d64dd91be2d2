/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/json.h>
#include <codec/json_text.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/failmem.h>

#define LIMIT 4096

/* One reading of a payload that is copied to memory of its exact size, so that a read beyond it is found. */
struct reading {
    struct us_json *json;
    char *payload;
    enum us_json_fault fault;
    struct us_json_found found;
};

static struct reading read_bytes(const void *payload, size_t size) {
    struct reading reading = {.json = us_json_new(&us_mem_default, "globalSeq", "sessionId", LIMIT)};
    CHECK(reading.json != NULL);
    if (size) {
        reading.payload = malloc(size);
        CHECK(reading.payload != NULL);
        memcpy(reading.payload, payload, size);
    }
    reading.fault = us_json_read(reading.json, reading.payload, size, &reading.found);
    return reading;
}

static void end(struct reading *reading) {
    free(reading->payload);
    us_json_destroy(reading->json);
}

static void check_seq(const char *payload, uint64_t seq) {
    struct reading reading = read_bytes(payload, strlen(payload));
    CHECK_THAT(reading.fault == US_JSON_OK && reading.found.seq_fault == US_JSON_OK && reading.found.has_seq, "%s: %s",
               payload, us_json_fault_text(reading.fault ? reading.fault : reading.found.seq_fault));
    CHECK_U64(reading.found.seq, seq);
    end(&reading);
}

static void check_seq_fault(const char *payload, enum us_json_fault fault) {
    struct reading reading = read_bytes(payload, strlen(payload));
    CHECK_THAT(reading.fault == US_JSON_OK, "%s: %s", payload, us_json_fault_text(reading.fault));
    CHECK_THAT(reading.found.seq_fault == fault, "%s: %s", payload, us_json_fault_text(reading.found.seq_fault));
    CHECK(!reading.found.has_seq);
    end(&reading);
}

static void check_session(const char *payload, const char *session, size_t len) {
    struct reading reading = read_bytes(payload, strlen(payload));
    CHECK_THAT(reading.fault == US_JSON_OK && reading.found.session_fault == US_JSON_OK && reading.found.has_session,
               "%s: %s", payload, us_json_fault_text(reading.fault ? reading.fault : reading.found.session_fault));
    CHECK_BYTES(reading.found.session, reading.found.session_len, session, len);
    end(&reading);
}

static void check_session_fault(const char *payload, enum us_json_fault fault) {
    struct reading reading = read_bytes(payload, strlen(payload));
    CHECK_THAT(reading.fault == US_JSON_OK, "%s: %s", payload, us_json_fault_text(reading.fault));
    CHECK_THAT(reading.found.session_fault == fault, "%s: %s", payload,
               us_json_fault_text(reading.found.session_fault));
    CHECK(!reading.found.has_session);
    end(&reading);
}

static void check_refused(const void *payload, size_t size, enum us_json_fault fault) {
    struct reading reading = read_bytes(payload, size);
    CHECK_THAT(reading.fault == fault, "%.*s: %s", (int)(size < 80 ? size : 80), size ? (const char *)payload : "",
               us_json_fault_text(reading.fault));
    CHECK(!reading.found.has_seq && !reading.found.has_session);
    CHECK(reading.found.seq_fault == fault && reading.found.session_fault == fault);
    end(&reading);
}

TEST(json, finds_both_fields) {
    static const char payload[] = "{\"sessionId\": \"room\", \"globalSeq\": 17, \"text\": \"hello\"}";
    check_seq(payload, 17);
    check_session(payload, "room", 4);
}

TEST(json, numbers_survive_to_the_last) {
    check_seq("{\"globalSeq\":0}", 0);
    check_seq("{\"globalSeq\":9007199254740993}", UINT64_C(9007199254740993)); /* no double holds it */
    check_seq("{\"globalSeq\":18446744073709551614}", UINT64_MAX - 1);
}

TEST(json, numbers_out_of_range_are_refused) {
    check_seq_fault("{\"globalSeq\":18446744073709551615}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":18446744073709551616}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":118446744073709551614}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":-1}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":-0}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":1.0}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":1.5}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":1e3}", US_JSON_NUMBER);
    check_seq_fault("{\"globalSeq\":1E+3}", US_JSON_NUMBER);
}

TEST(json, what_is_no_number_is_refused) {
    check_seq_fault("{\"globalSeq\":\"17\"}", US_JSON_TYPE);
    check_seq_fault("{\"globalSeq\":true}", US_JSON_TYPE);
    check_seq_fault("{\"globalSeq\":null}", US_JSON_TYPE);
    check_seq_fault("{\"globalSeq\":[17]}", US_JSON_TYPE);
    check_seq_fault("{\"globalSeq\":{\"globalSeq\":17}}", US_JSON_TYPE);
}

TEST(json, missing_fields_are_said) {
    check_seq_fault("{}", US_JSON_MISSING);
    check_session_fault(" { } ", US_JSON_MISSING);
    check_seq_fault("{\"sessionId\":\"room\"}", US_JSON_MISSING);
    check_seq_fault("{\"globalseq\":17,\"globalSe\":1,\"globalSeqq\":1,\"\":1}", US_JSON_MISSING);
    check_seq_fault("{\"a\":\"globalSeq\",\"b\":17}", US_JSON_MISSING);
}

TEST(json, only_the_top_level_counts) {
    check_seq_fault("{\"a\":{\"globalSeq\":17},\"b\":[{\"globalSeq\":18}]}", US_JSON_MISSING);
    check_seq("{\"a\":{\"globalSeq\":1,\"x\":[1,[2,{\"y\":[]}]]},\"globalSeq\":17,\"b\":{\"globalSeq\":2}}", 17);
}

TEST(json, the_last_of_equal_names_counts) {
    check_seq("{\"globalSeq\":1,\"globalSeq\":17}", 17);
    check_seq("{\"globalSeq\":\"x\",\"globalSeq\":17}", 17);
    check_seq_fault("{\"globalSeq\":17,\"globalSeq\":\"x\"}", US_JSON_TYPE);
    check_session("{\"sessionId\":\"\\u0061\",\"sessionId\":\"b\"}", "b", 1);
}

TEST(json, names_are_compared_after_unescaping) {
    check_seq("{\"global\\u0053eq\":17}", 17);
    check_seq("{\"\\u0067\\u006c\\u006f\\u0062\\u0061\\u006c\\u0053\\u0065\\u0071\":17}", 17);
    check_seq_fault("{\"global\\u0054eq\":17}", US_JSON_MISSING);
    check_seq_fault("{\"global\\\\Seq\":17}", US_JSON_MISSING);
    check_seq_fault("{\"globalSe\\n\":17}", US_JSON_MISSING);
}

TEST(json, sessions_are_unescaped) {
    check_session("{\"sessionId\":\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\te\"}", "a\"b\\c/d\b\f\n\r\te", 13);
    check_session("{\"sessionId\":\"\\u0041\\u00e9\\u20ac\"}", "A\xc3\xa9\xe2\x82\xac", 6);
    check_session("{\"sessionId\":\"\\uD83D\\uDE00\"}", "\xf0\x9f\x98\x80", 4);
    check_session("{\"sessionId\":\"\\ud800\\udc00\\udbff\\udfff\"}", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8);
    check_session("{\"sessionId\":\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"}",
                  "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 11);
    check_session("{\"sessionId\":\"a\\u0000b\"}", "a\0b", 3);
    check_session("{\"sessionId\":\"caf\xc3\xa9\"}", "caf\xc3\xa9", 5);
}

TEST(json, a_number_is_a_session_by_its_digits) {
    check_session("{\"sessionId\":4711}", "4711", 4);
    check_session("{\"sessionId\": -1.5e3 }", "-1.5e3", 6);
    check_session("{\"sessionId\":123456789012345678901234567890}", "123456789012345678901234567890", 30);
}

TEST(json, faulty_sessions_are_refused) {
    check_session_fault("{\"sessionId\":\"\"}", US_JSON_ESCAPE);
    check_session_fault("{\"sessionId\":\"\\ud83d\"}", US_JSON_ESCAPE);
    check_session_fault("{\"sessionId\":\"\\ud83dx\\ude00\"}", US_JSON_ESCAPE);
    check_session_fault("{\"sessionId\":\"\\ude00\\ud83d\"}", US_JSON_ESCAPE);
    check_session_fault("{\"sessionId\":\"\\ud83d\\u0041\"}", US_JSON_ESCAPE);
    check_session_fault("{\"sessionId\":\"\\udc00\\udc00\"}", US_JSON_ESCAPE);
    check_session_fault("{\"sessionId\":\"\\ud83d\\ndc00\"}", US_JSON_ESCAPE);
    check_session_fault("{\"sessionId\":null}", US_JSON_TYPE);
    check_session_fault("{\"sessionId\":[\"room\"]}", US_JSON_TYPE);
    check_session_fault("{\"sessionId\":{}}", US_JSON_TYPE);
}

TEST(json, one_faulty_field_leaves_the_other) {
    check_session("{\"globalSeq\":-1,\"sessionId\":\"room\"}", "room", 4);
    check_seq("{\"globalSeq\":17,\"sessionId\":\"\"}", 17);
}

TEST(json, what_is_not_one_object_is_refused) {
    static const char *const wrong[] = {
        "", " ", "x", "17", "\"globalSeq\"", "null", "[]", "[{\"globalSeq\":17}]", "{", "}", "{\"globalSeq\":17",
        "{\"globalSeq\":17}}", "{\"globalSeq\":17}{\"globalSeq\":18}", "{\"globalSeq\":17} 18", "17 {\"globalSeq\":17}",
        "{\"globalSeq\":17},", "{\"globalSeq\":17}:}", "{\"globalSeq\"}", "{\"globalSeq\":}", "{\"globalSeq\" 17}",
        "{globalSeq:17}", "{'globalSeq':17}", "{17:17}", "{\"globalSeq\":17,}", "{,\"globalSeq\":17}",
        "{\"a\":1,,\"globalSeq\":17}", "{\"a\":1 \"globalSeq\":17}", "{\"a\":\"b\" \"globalSeq\":17}",
        "{\"a\":1:\"globalSeq\":17}", "{\"a\"::17}", "{\"a\",\"globalSeq\":17}", "{\"a\":,\"globalSeq\":17}",
        "{\"globalSeq\":17]", "{\"globalSeq\":[17}", "{\"globalSeq\":\"17}", "{\"globalSeq\\u12\":17}",
        "{\"a\\x\":1}", "{\"globalSeq\":\"\\\"}", "{{}:1}", "{[]:1}", "{\"a\":{}{}}", "{\"a\":[]:1}", "{\"a\":1 2}",
        "\xef\xbb\xbf{\"globalSeq\":17}", "{\"globalSeq\":+17}", "{\"globalSeq\":.5}", "{\"globalSeq\":NaN}",
        "{\"globalSeq\":017}", "{\"globalSeq\":1.}", "{\"globalSeq\":1e}", "{\"globalSeq\":1e+}", "{\"globalSeq\":-}",
        "{\"globalSeq\":0x11}", "{\"globalSeq\":17abc}", "{\"globalSeq\":1-1}", "{\"globalSeq\":--1}", "{\"a\":nul}",
        "{\"a\":nothing}", "{\"a\":truefalse}", "{\"a\":00}", ",{\"globalSeq\":17}", " ,{\"globalSeq\":17}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(wrong[i], strlen(wrong[i]), US_JSON_SYNTAX);
}

TEST(json, nul_bytes_do_not_end_the_payload) {
    static const char behind[] = "{\"globalSeq\":17}\0", inside[] = "{\"globalSeq\":17\0}", name[] = "{\"a\0b\":17}";
    check_refused(behind, sizeof behind - 1, US_JSON_SYNTAX);
    check_refused(inside, sizeof inside - 1, US_JSON_SYNTAX);
    check_refused(name, sizeof name - 1, US_JSON_SYNTAX);
    check_refused("\0", 1, US_JSON_SYNTAX);
}

TEST(json, a_null_payload_is_refused) {
    check_refused(NULL, 0, US_JSON_SYNTAX);
}

TEST(json, white_space_is_allowed_where_json_allows_it) {
    check_seq("\r\n\t {\n\t\"a\" :\r[ 1 , 2 ] , \"globalSeq\"\n:\n17\n}\n \t\r\n", 17);
}

/* Every beginning of a good payload is cut off somewhere, and none is read beyond its end. */
TEST(json, every_cut_is_refused) {
    static const char payload[] =
        "{\"a\":[{\"b\":\"\\ud83d\\ude00\"},true],\"sessionId\":\"\\u0041\",\"globalSeq\":17}";
    for (size_t size = 0; size < sizeof payload - 1; size++)
        check_refused(payload, size, US_JSON_SYNTAX);
    check_seq(payload, 17);
}

/* `depth` arrays around nothing as the value of "a", then the sequence. */
static size_t nest(char *out, size_t depth) {
    size_t len = (size_t)sprintf(out, "{\"a\":");
    memset(out + len, '[', depth);
    memset(out + len + depth, ']', depth);
    len += 2 * depth;
    return len + (size_t)sprintf(out + len, ",\"globalSeq\":17}");
}

TEST(json, nesting_is_skipped_up_to_the_limit) {
    char payload[4 * US_JSON_DEPTH_MAX];
    size_t len = nest(payload, US_JSON_DEPTH_MAX - 1); /* the object itself is a level */
    payload[len] = '\0';
    check_seq(payload, 17);
    len = nest(payload, US_JSON_DEPTH_MAX);
    check_refused(payload, len, US_JSON_TOO_LARGE);
}

TEST(json, nesting_far_over_the_limit_costs_no_time) {
    enum { DEPTH = 1000000 };
    char *payload = malloc(2 * DEPTH + 100);
    CHECK(payload != NULL);
    check_refused(payload, nest(payload, 10000), US_JSON_TOO_LARGE);
    check_refused(payload, nest(payload, DEPTH), US_JSON_TOO_LARGE);
    memset(payload, '[', 2 * DEPTH);
    check_refused(payload, 2 * DEPTH, US_JSON_TOO_LARGE);
    free(payload);
}

TEST(json, brackets_in_strings_nest_nothing) {
    char payload[4096];
    size_t len = (size_t)sprintf(payload, "{\"a\":\"\\\"");
    memset(payload + len, '[', 3000);
    strcpy(payload + len + 3000, "\",\"globalSeq\":17}");
    check_seq(payload, 17);
}

TEST(json, wide_payloads_are_bounded_by_the_token_limit) {
    enum { NUMBERS = 5000 };
    char payload[2 * NUMBERS + 100];
    for (int numbers = LIMIT - 6; numbers <= LIMIT - 3; numbers++) {
        size_t len = (size_t)sprintf(payload, "{\"globalSeq\":17,\"a\":[");
        for (int i = 0; i < numbers; i++)
            len += (size_t)sprintf(payload + len, "%s1", i ? "," : "");
        len += (size_t)sprintf(payload + len, "]}");
        if (numbers + 5 <= LIMIT) /* object, two names, number, array */
            check_seq(payload, 17);
        else
            check_refused(payload, len, US_JSON_TOO_LARGE);
    }
}

TEST(json, the_smallest_limit_works) {
    struct us_json *json = us_json_new(&us_mem_default, "n", NULL, 16);
    struct us_json_found found;
    static const char fits[] = "{\"n\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7}";
    static const char over[] = "{\"n\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8}";
    CHECK(us_json_read(json, fits, sizeof fits - 1, &found) == US_JSON_OK);
    CHECK_U64(found.seq, 1);
    CHECK(us_json_read(json, over, sizeof over - 1, &found) == US_JSON_TOO_LARGE);
    us_json_destroy(json);
}

TEST(json, without_a_session_field_none_is_looked_for) {
    static const char *const fields[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        struct us_json *json = us_json_new(&us_mem_default, "n", fields[i], 64);
        struct us_json_found found;
        CHECK(us_json_read(json, "{\"\":\"a\",\"n\":3}", 14, &found) == US_JSON_OK);
        CHECK(found.has_seq && !found.has_session);
        CHECK(found.session_fault == US_JSON_MISSING);
        us_json_destroy(json);
    }
}

TEST(json, one_field_may_be_both) {
    struct us_json *json = us_json_new(&us_mem_default, "n", "n", 64);
    struct us_json_found found;
    CHECK(us_json_read(json, "{\"n\":31}", 8, &found) == US_JSON_OK);
    CHECK_U64(found.seq, 31);
    CHECK_BYTES(found.session, found.session_len, "31", 2);
    us_json_destroy(json);
}

TEST(json, the_longest_field_name_is_found_however_it_is_written) {
    char name[256], payload[2048];
    memset(name, 'n', 255);
    name[255] = '\0';
    struct us_json *json = us_json_new(&us_mem_default, name, NULL, 64);
    struct us_json_found found;
    int len = sprintf(payload, "{\"%s\":31}", name);
    CHECK(us_json_read(json, payload, (size_t)len, &found) == US_JSON_OK);
    CHECK_U64(found.seq, 31);
    len = sprintf(payload, "{\"");
    for (int i = 0; i < 255; i++)
        len += sprintf(payload + len, "\\u006e");
    len += sprintf(payload + len, "\":32}");
    CHECK(us_json_read(json, payload, (size_t)len, &found) == US_JSON_OK);
    CHECK_U64(found.seq, 32);
    us_json_destroy(json);
}

TEST(json, reading_again_leaves_nothing_over) {
    struct us_json *json = us_json_new(&us_mem_default, "globalSeq", "sessionId", 64);
    struct us_json_found found;
    CHECK(us_json_read(json, "{\"globalSeq\":17,\"sessionId\":\"\\u0041\"}", 37, &found) == US_JSON_OK);
    CHECK(found.has_seq && found.has_session);
    CHECK(us_json_read(json, "{}", 2, &found) == US_JSON_OK);
    CHECK(!found.has_seq && !found.has_session && !found.session);
    us_json_destroy(json);
}

TEST(json, a_longer_session_follows_a_shorter_one) {
    struct us_json *json = us_json_new(&us_mem_default, "globalSeq", "sessionId", 64);
    struct us_json_found found;
    CHECK(us_json_read(json, "{\"sessionId\":\"\\n\"}", 18, &found) == US_JSON_OK);
    CHECK_BYTES(found.session, found.session_len, "\n", 1);
    CHECK(us_json_read(json, "{\"sessionId\":\"\\nabcdefghijklmnopqrstuvwxyz\"}", 44, &found) == US_JSON_OK);
    CHECK_BYTES(found.session, found.session_len, "\nabcdefghijklmnopqrstuvwxyz", 27);
    us_json_destroy(json);
}

TEST(json, plain_payloads_allocate_nothing) {
    struct failmem fail;
    failmem_init(&fail);
    struct us_json *json = us_json_new(&fail.mem, "globalSeq", "sessionId", LIMIT);
    struct us_json_found found;
    uint64_t calls = fail.calls;
    CHECK(us_json_read(json, "{\"globalSeq\":17,\"sessionId\":\"A\"}", 32, &found) == US_JSON_OK);
    CHECK(found.has_seq && found.has_session);
    CHECK_U64(fail.calls, calls);
    us_json_destroy(json);
    us_json_destroy(NULL);
    CHECK(failmem_is_balanced(&fail));
}

TEST(json, unescaping_refuses_what_jsmn_lets_through) {
    static const char *const wrong[] = {"\\", "\\x", "\\u", "\\u1", "\\u123", "\\u12g4", "\\ud800\\u", "\\ud800\\udc0"};
    char out[32];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_THAT(us_json_unescape(wrong[i], strlen(wrong[i]), out) == SIZE_MAX, "%s", wrong[i]);
    for (size_t size = 1; size < 12; size++) /* the other half of the pair stands beyond the end */
        CHECK_U64(us_json_unescape("\\ud800\\udc00", size, out), SIZE_MAX);
    CHECK_U64(us_json_unescape("\\ud800\\udc00", 12, out), 4);
    CHECK_U64(us_json_unescape("", 0, out), 0);
}

TEST(json, faults_have_texts) {
    CHECK_STR(us_json_fault_text(US_JSON_MISSING), "the field is missing");
    CHECK_STR(us_json_fault_text((enum us_json_fault)(US_JSON_ESCAPE + 1)), "?");
    CHECK_STR(us_json_fault_text((enum us_json_fault)-1), "?");
}
