/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/big_endian.h>
#include <codec/plain.h>

#define DIGITS_MAX 20 /* of 2^64 - 1 */

bool us_decimal_read(const char *text, size_t size, uint64_t *value) {
    uint64_t sum = 0;
    if (size < 1 || size > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, (uint64_t)(text[i] - '0'), &sum))
            return false;
    }
    if (sum == UINT64_MAX)
        return false;
    *value = sum;
    return true;
}

static bool all_digits(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < '0' || bytes[i] > '9')
            return false;
    return true;
}

bool us_plain_read(const void *bytes, size_t size, uint64_t *seq) {
    const uint8_t *at = bytes;
    if (size != 8 || all_digits(at, size))
        return us_decimal_read(bytes, size, seq);
    uint64_t value = us_big_endian_64(at);
    if (value == UINT64_MAX)
        return false;
    *seq = value;
    return true;
}
