/* SPDX-License-Identifier: BSD-2-Clause */
/* What the reader and the writer of checkpoint entries share. */
#ifndef US_CODEC_CHECKPOINT_INNER_H
#define US_CODEC_CHECKPOINT_INNER_H
#include <codec/checkpoint.h>

/* Every version has its checksum, big-endian, behind the version byte. */
enum { US_CHECKPOINT_AT_SUM = 1, US_CHECKPOINT_AT_BODY = 5 };
/* Highest numbers in a range: 2^64 - 1 is no sequence; above 2^63 - 1 is no offset. */
#define US_CHECKPOINT_SEQ_LAST (UINT64_MAX - 1)
#define US_CHECKPOINT_OFFSET_LAST ((uint64_t)INT64_MAX)

/*
 * Takes a key apart: kind, topic, and session or partition. false: it is malformed, and *entry is all 0. A kind that
 * isn't known is no fault here; then nothing is filled in either.
 */
bool us_checkpoint_read_key(const void *key, size_t key_len, struct us_checkpoint_fields *entry);
/* The checksum: of the key, the version, and what stands behind the checksum. len >= US_CHECKPOINT_AT_BODY. */
uint32_t us_checkpoint_sum(const void *key, size_t key_len, const uint8_t *value, size_t len);
#endif
