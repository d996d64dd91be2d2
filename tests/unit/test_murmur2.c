/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/murmur2.h>
#include <stdio.h>
#include <support/check.h>

struct row {
    const char *key;
    int32_t hash;
};

/* The cases of UtilsTest.testMurmur2 in apache/kafka, and the empty key. */
static const struct row rows[] = {
    {"21", -973932308},
    {"foobar", -790332482},
    {"a-little-bit-long-string", -985981536},
    {"a-little-bit-longer-string", -1486304829},
    {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
    {"abc", 479470107},
    {"", 275646681},
    {"kafka", -798503068}, /* this and the next: librdkafka's own test of its murmur2 partitioner */
    {"giberish123456789", -1890243828},
};

TEST(murmur2, hashes_as_the_java_client) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_I64((int32_t)us_murmur2(rows[i].key, strlen(rows[i].key)), rows[i].hash);
}

/* Computed by hand along the Java source, whose signed bytes are masked to 0..255, in blocks and in the tail. */
TEST(murmur2, takes_bytes_above_127_as_unsigned) {
    static const unsigned char key[] = {0xff, 0x80, 0xfe, 0x81, 0xff, 0x80, 0x90};
    CHECK_I64((int32_t)us_murmur2(key, sizeof key), 1310757997);
}

TEST(murmur2, takes_unaligned_keys) {
    static const char text[] = "?foobar";
    CHECK_I64((int32_t)us_murmur2(text + 1, 6), -790332482);
}

TEST(murmur2, partition_masks_the_sign) {
    CHECK_I64(us_murmur2_partition("foobar", 6, 1000), (-790332482 & 0x7fffffff) % 1000);
    CHECK_I64(us_murmur2_partition("abc", 3, 7), 479470107 % 7);
    CHECK_I64(us_murmur2_partition("abc", 3, 1), 0);
    for (int32_t n = 1; n < 500; n++) {
        int32_t partition = us_murmur2_partition("a-little-bit-long-string", 24, n);
        CHECK(partition >= 0 && partition < n);
    }
    CHECK_I64(us_murmur2_partition("21", 2, INT32_MAX), (-973932308 & 0x7fffffff) % INT32_MAX);
}

/* Printed by the kafka-clients jar (tests/field/java/murmur2.sh): key, Utils.murmur2(), Utils.toPositive() of it. */
TEST(murmur2, agrees_with_the_java_client_on_hundreds_of_keys) {
    static const char path[] = "tests/field/murmur2.txt";
    char hex[2 * 1024 + 1];
    uint8_t key[1024];
    int32_t hash, positive;
    int keys = 0;
    FILE *file = fopen(path, "r");
    CHECK_THAT(file, "%s can't be opened: run the tests in the root of the source", path);
    while (fscanf(file, "%2048s %" SCNd32 " %" SCNd32, hex, &hash, &positive) == 3) {
        size_t size = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
        for (size_t i = 0; i < size; i++) {
            unsigned byte;
            CHECK(sscanf(hex + 2 * i, "%2x", &byte) == 1);
            key[i] = (uint8_t)byte;
        }
        keys++;
        CHECK_THAT((int32_t)us_murmur2(key, size) == hash, "%s:%d: %s", path, keys, hex);
        CHECK_THAT(us_murmur2_partition(key, size, INT32_MAX) == positive % INT32_MAX, "%s:%d: %s", path, keys, hex);
        CHECK_THAT(us_murmur2_partition(key, size, 12) == positive % 12, "%s:%d: %s", path, keys, hex);
    }
    CHECK(feof(file));
    CHECK(keys > 300);
    fclose(file);
}
