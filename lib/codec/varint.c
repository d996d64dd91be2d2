/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/varint.h>

size_t us_varint_size(uint64_t value) {
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

size_t us_varint_write(uint64_t value, uint8_t *bytes) {
    size_t size = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    return size;
}

enum us_varint us_varint_read(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    const uint8_t *byte = *at;
    uint64_t sum = 0;
    for (unsigned shift = 0; byte < end; shift += 7, byte++) {
        if (shift == 63 && *byte > 1)
            return US_VARINT_WRONG;
        sum |= (uint64_t)(*byte & 0x7f) << shift;
        if (*byte & 0x80)
            continue;
        if (*byte == 0 && shift > 0)
            return US_VARINT_WRONG;
        *at = byte + 1;
        *value = sum;
        return US_VARINT_OK;
    }
    return US_VARINT_SHORT;
}
