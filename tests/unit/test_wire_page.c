/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vectors of docs/wire-format.md, which another language's implementer uses, against the library. A reader and a
 * writer in Python are checked against the same tables by tests/api/wire.sh.
 */
#include <codec/header.h>
#include <codec/key_trailer.h>
#include <codec/murmur2.h>
#include <codec/plain.h>
#include <kafka/producer_lanes.h>
#include <stdlib.h>
#include <support/check.h>
#include <unit/fixture/page.h>

static const char page_path[] = "docs/wire-format.md";

static unsalt_header_fault_t fault_of(const char *cell) {
    static const char *const names[] = {
#define X(C, text) #C,
        UNSALT_HEADER_FAULTS(X)
#undef X
    };
    return (unsalt_header_fault_t)page_name(cell, names, UNSALT_HEADER__CNT);
}

static bool same(const unsalt_header_t *a, const unsalt_header_t *b) {
    return a->flags == b->flags && a->lane == b->lane && a->lanes == b->lanes && a->epoch == b->epoch &&
           a->seq == b->seq && a->since == b->since && a->una == b->una;
}

static bool rules_seen[UNSALT_HEADER__CNT];

static void check_header(const struct page_row *row) {
    uint8_t bytes[PAGE_BYTES_MAX], written[UNSALT_HEADER_SIZE];
    size_t size = page_bytes(row->cells[1], bytes);
    unsalt_header_t found = {0};
    unsalt_header_fault_t wanted = fault_of(row->cells[2]), fault = unsalt_header_read(bytes, size, &found);
    CHECK_THAT(fault == wanted, "%s:%d: %s", page_path, row->line, unsalt_header_fault_text(fault));
    rules_seen[wanted] = true;
    if (wanted != UNSALT_HEADER_OK)
        return;
    unsalt_header_t fields = {
        .flags = (uint8_t)page_number(row->cells[3]),
        .lane = (uint16_t)page_number(row->cells[4]),
        .lanes = (uint16_t)page_number(row->cells[5]),
        .epoch = page_number(row->cells[6]),
        .seq = page_number(row->cells[7]),
        .since = page_number(row->cells[8]),
        .una = page_number(row->cells[9]),
    };
    CHECK_THAT(same(&found, &fields), "%s:%d: other fields were read", page_path, row->line);
    CHECK_U64(unsalt_header_write(&fields, written), UNSALT_HEADER_OK);
    bool is_same = size == sizeof written && memcmp(bytes, written, size) == 0;
    CHECK_THAT(is_same == (strcmp(row->cells[10], "same") == 0), "%s:%d: other bytes were written", page_path,
               row->line);
}

TEST(wire_page, headers) {
    page_for_each(page_path, "header", 11, check_header);
    for (int i = 0; i < UNSALT_HEADER__CNT; i++)
        CHECK_THAT(rules_seen[i], "no vector for: %s", unsalt_header_fault_text((unsalt_header_fault_t)i));
}

static void check_plain(const struct page_row *row) {
    uint8_t bytes[PAGE_BYTES_MAX];
    size_t size = page_bytes(row->cells[0], bytes);
    uint64_t seq = 0;
    bool found = us_plain_read(bytes, size, &seq);
    CHECK_THAT(found == !page_none(row->cells[1]), "%s:%d: %d", page_path, row->line, found);
    if (found)
        CHECK_U64(seq, page_number(row->cells[1]));
}

TEST(wire_page, plain_headers) {
    page_for_each(page_path, "plain", 2, check_plain);
}

static void check_trailer(const struct page_row *row) {
    uint8_t key[PAGE_BYTES_MAX], head[PAGE_BYTES_MAX];
    size_t size = page_bytes(row->cells[0], key), head_len, found_len = 0;
    unsigned digits = (unsigned)page_number(row->cells[1]);
    uint64_t seq = 0;
    bool found = us_key_trailer_read(digits, key, size, &seq, &found_len) == US_TRAILER_FOUND;
    CHECK_THAT(found == !page_none(row->cells[3]), "%s:%d: %d", page_path, row->line, found);
    if (!found)
        return;
    CHECK_U64(seq, page_number(row->cells[3]));
    CHECK_BYTES(key, found_len, head, page_bytes(row->cells[2], head));
    head_len = page_bytes(row->cells[2], head);
    head_len += unsalt_key_trailer_write(seq, digits, head + head_len, sizeof head - head_len);
    CHECK_BYTES(head, head_len, key, size);
}

TEST(wire_page, key_trailers) {
    page_for_each(page_path, "trailer", 4, check_trailer);
}

static void check_murmur2(const struct page_row *row) {
    uint8_t key[PAGE_BYTES_MAX];
    CHECK_U64(us_murmur2(key, page_bytes(row->cells[0], key)) & 0x7fffffff, page_number(row->cells[1]));
}

TEST(wire_page, hashes) {
    page_for_each(page_path, "murmur2", 2, check_murmur2);
}

static void check_partitions(const struct page_row *row) {
    uint8_t session[PAGE_BYTES_MAX];
    size_t len = page_bytes(row->cells[1], session);
    uint16_t lanes = (uint16_t)page_number(row->cells[3]);
    struct us_lane_map map = {.partitions = (int32_t)page_number(row->cells[2])};
    int32_t probed[64];
    char *at = row->cells[5];
    map.layout = row->cells[0][0] == 'h'   ? US_LAYOUT_HASH
                 : row->cells[0][0] == 't' ? US_LAYOUT_TOPICS
                                           : US_LAYOUT_BLOCK;
    map.lanes = map.layout == US_LAYOUT_BLOCK ? (uint16_t)page_number(row->cells[4]) : lanes;
    CHECK(us_salt_pattern_parse("#<k>", &map.pattern));
    struct us_lane_table table = {.entries = probed, .wanted = us_lane_map_entries(&map, lanes)};
    if (table.wanted)
        table.found = us_lane_map_probe(&map, session, len, table.wanted, probed);
    uint32_t hash = us_lane_map_hash(session, len);
    for (uint16_t lane = 0; lane < lanes; lane++)
        CHECK_THAT(us_lane_map_partition(&map, hash, &table, lanes, lane) == strtol(at, &at, 10), "%s:%d: lane %u",
                   page_path, row->line, (unsigned)lane);
    CHECK_THAT(*at == '\0', "%s:%d: more partitions than lanes", page_path, row->line);
}

TEST(wire_page, partitions) {
    page_for_each(page_path, "partitions", 6, check_partitions);
}
