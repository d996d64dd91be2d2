/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/record_gap.h>
#include <codec/varint.h>
#include <string.h>

#define LEN_MAX 63 /* one byte as a zigzag varint */

/* Most numbers here take one byte, or two. */
static inline bool read_number(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    const uint8_t *bytes = *at;
    if (bytes < end && bytes[0] < 0x80) {
        *value = bytes[0];
        *at = bytes + 1;
        return true;
    }
    if (end - bytes >= 2 && bytes[1] < 0x80 && bytes[1] > 0) {
        *value = (uint64_t)(bytes[0] & 0x7f) | (uint64_t)bytes[1] << 7;
        *at = bytes + 2;
        return true;
    }
    return us_varint_read(at, end, value) == US_VARINT_OK;
}

/* Lengths and counts are never negative here. */
static inline bool read_length(const uint8_t **at, const uint8_t *end, uint64_t *length) {
    uint64_t zigzag;
    if (!read_number(at, end, &zigzag) || zigzag & 1)
        return false;
    *length = zigzag >> 1;
    return true;
}

/* A length of at most LEN_MAX, and so many bytes behind it. */
static inline const uint8_t *read_bytes(const uint8_t **at, const uint8_t *end, size_t *size) {
    uint64_t length;
    if (!read_length(at, end, &length) || length > LEN_MAX || length > (uint64_t)(end - *at))
        return NULL;
    const uint8_t *bytes = *at;
    *size = (size_t)length;
    *at += length;
    return bytes;
}

/* Does the next record begin here, so that its key begins at the end? */
static bool begins_record(const uint8_t *at, const uint8_t *end, uint64_t next_key_len) {
    uint64_t length, time, offset, key_len;
    if (!read_length(&at, end, &length))
        return false;
    const uint8_t *body = at;
    if (at == end || *at++ != 0) /* attributes: none is defined */
        return false;
    return read_number(&at, end, &time) && read_length(&at, end, &offset) &&
           read_length(&at, end, &key_len) && at == end && key_len == next_key_len &&
           length >= (uint64_t)(end - body) + key_len + 2; /* there are a value length and a count of headers */
}

bool us_record_gap_header(const void *gap, size_t size, size_t next_key_len, const char *name, size_t name_len,
                          const void **value, size_t *value_len) {
    const uint8_t *at = gap, *end = at + size;
    uint64_t headers;
    size_t found_len, bytes_len;
    if (size > US_RECORD_GAP_MAX || !read_length(&at, end, &headers) || headers != 1)
        return false;
    const uint8_t *found = read_bytes(&at, end, &found_len);
    if (!found || found_len != name_len || memcmp(found, name, name_len) != 0)
        return false;
    const uint8_t *bytes = read_bytes(&at, end, &bytes_len);
    if (!bytes || !begins_record(at, end, next_key_len))
        return false;
    *value = bytes;
    *value_len = bytes_len;
    return true;
}
