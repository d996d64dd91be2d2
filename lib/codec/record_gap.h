/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands between two neighbours of a record batch (Kafka's message format 2): behind the value of a record its
 * headers, then, in front of the key of the next one, that record's length, attributes, time, offset and key length.
 * Numbers are zigzag varints. See "Record" in Kafka's protocol documentation, "Implementation: Message Format".
 *
 * A consumer that gives out pointers into the batch shows this gap to whoever has both records, so the one header that
 * matters is there to be read, where parsing and copying all headers costs more than the rest of what is done with a
 * record. The gap must fit in every byte, or it isn't one: then nothing is read from it.
 */
#ifndef US_CODEC_RECORD_GAP_H
#define US_CODEC_RECORD_GAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define US_RECORD_GAP_MAX 160 /* bytes; a longer one has headers that aren't ours */

/*
 * Finds the only header of the first record.
 *   gap, size     borrowed: from the end of a value to the next key. Nothing outside is looked at.
 *   next_key_len  of the next record, 0 and more.
 *   name          of the header; name_len 1..63.
 *   value         set when found: within the gap, value_len 0..63 bytes.
 * Returns true; false if the first record has no header, several, one of another name, without a value or with a
 * longer one, or if the bytes are anything else than such a gap. Any thread.
 */
bool us_record_gap_header(const void *gap, size_t size, size_t next_key_len, const char *name, size_t name_len,
                          const void **value, size_t *value_len);
#endif
