/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/big_endian.h>
#include <codec/key_trailer.h>
#include <codec/plain.h>
#include <string.h>

#define BINARY_SIZE 8u

static size_t size_of(unsigned digits) {
    return digits ? digits : BINARY_SIZE;
}

static bool are_digits(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

enum us_trailer us_key_trailer_read(unsigned digits, const void *key, size_t key_len, uint64_t *seq,
                                    size_t *session_len) {
    size_t size = size_of(digits);
    uint64_t value = UNSALT_NO_SEQ;
    if (key_len < size)
        return US_TRAILER_NONE;
    const char *trailer = (const char *)key + (key_len - size);
    if (digits == 0)
        value = us_big_endian_64((const uint8_t *)trailer);
    else if (!are_digits(trailer, size))
        return US_TRAILER_NONE;
    else
        us_decimal_read(trailer, size, &value); /* leaves it alone if the number is too large */
    if (value == UNSALT_NO_SEQ)
        return US_TRAILER_RESERVED;
    *seq = value;
    *session_len = key_len - size;
    return US_TRAILER_FOUND;
}

size_t unsalt_key_trailer_write(uint64_t seq, unsigned digits, void *bytes, size_t size) {
    uint8_t trailer[UNSALT_KEY_TRAILER_MAX];
    size_t need = size_of(digits);
    unsigned base = digits ? 10 : 256, zero = digits ? '0' : 0;
    if (seq == UNSALT_NO_SEQ || need > sizeof trailer || size < need)
        return 0;
    for (size_t i = need; i-- > 0; seq /= base)
        trailer[i] = (uint8_t)(zero + seq % base);
    if (seq != 0) /* more digits than there is room for */
        return 0;
    memcpy(bytes, trailer, need);
    return need;
}
