/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_WIRE_H
#define UNSALT_WIRE_H
/**
 * @file wire.h
 * @brief The record header `unsalt`, version 1: 40 bytes, big-endian. Below it, a sequence in the record key.
 *
 * | offset | size | field    | meaning                                                                      |
 * |--------|------|----------|------------------------------------------------------------------------------|
 * | 0      | 1    | version  | 1                                                                            |
 * | 1      | 1    | flags    | UNSALT_F_*                                                                   |
 * | 2      | 2    | lane     | lane of this record, < lanes                                                 |
 * | 4      | 2    | lanes    | S, >= 1                                                                      |
 * | 6      | 2    | reserved | 0 when written, ignored when read                                            |
 * | 8      | 8    | epoch    | run of the producer                                                          |
 * | 16     | 8    | seq      | number of the record in its session, never UINT64_MAX                        |
 * | 24     | 8    | since    | first number to which `lanes` applies: for m in since..seq the lane is m mod lanes |
 * | 32     | 8    | una      | lowest number neither acknowledged nor abandoned when this one was stamped   |
 *
 * Version rule: a reader that meets an unknown version takes the record as unsequenced and says so. A longer
 * header of a known version is read by its first 40 bytes. A heartbeat carries no sequence: seq, since and una
 * are 0 whatever stands there. A marker's range is since..seq, both included; any lane may carry it, and its `una`
 * may lie above its seq, since its own numbers are abandoned already.
 */
#include <unsalt/types.h>

/** Name of the record header. */
#define UNSALT_HEADER_NAME "unsalt"
/** First byte of the header. */
#define UNSALT_HEADER_VERSION 1
/** Bytes of the header. */
#define UNSALT_HEADER_SIZE 40
/** The most bytes of a sequence at the end of a record key. */
#define UNSALT_KEY_TRAILER_MAX 20
/**
 * @name Entries of a checkpoint
 * Who keeps them (`checkpoint=callback`) stores key and value as bytes and needn't look inside. The first byte of a key
 * tells the kind. docs/checkpoint-format.md has the rest.
 * @{
 */
#define UNSALT_CHECKPOINT_VERSION 1       /**< first byte of a value */
#define UNSALT_CHECKPOINT_SESSION 0x53    /**< first byte of a key, 'S': how far a session has come */
#define UNSALT_CHECKPOINT_PARTITION 0x50  /**< first byte of a key, 'P': what is done above a frontier */
#define UNSALT_CHECKPOINT_TRUNCATED 0x01  /**< flag of a partition: ranges were left out for lack of room */
#define UNSALT_CHECKPOINT_ERA 0x02        /**< flag of both: the last field is the lane set's era, else it is 0 */
#define UNSALT_CHECKPOINT_KEY_MAX 4347    /**< the most bytes of a key */
/** @} */

#ifdef __cplusplus
extern "C" {
#endif

/** The fields of the header. */
typedef struct unsalt_header {
    uint8_t flags;  /**< UNSALT_F_* */
    uint16_t lane;  /**< lane of this record, < lanes */
    uint16_t lanes; /**< S, >= 1 */
    uint64_t epoch; /**< run of the producer */
    uint64_t seq;   /**< number of the record in its session */
    uint64_t since; /**< first number to which `lanes` applies */
    uint64_t una;   /**< lowest number neither acknowledged nor abandoned */
} unsalt_header_t;

/** What is wrong with a header. X(CONSTANT, text). */
#define UNSALT_HEADER_FAULTS(X)                                                                     \
    X(OK, "well formed")                                                                            \
    X(SHORT, "shorter than 40 bytes")                                                               \
    X(UNKNOWN_VERSION, "unknown version")                                                           \
    X(LANES, "lanes is 0, or lane >= lanes")                                                        \
    X(SEQ, "sequence 0 or reserved where one is required")                                          \
    X(LANE_RULE, "lane is not seq mod lanes")                                                       \
    X(RANGE, "since is above seq, or una is above seq and it is no marker")

/** A fault of a header. */
typedef enum unsalt_header_fault {
#define X(C, text) UNSALT_HEADER_##C,
    UNSALT_HEADER_FAULTS(X)
#undef X
    UNSALT_HEADER__CNT /**< how many there are */
} unsalt_header_fault_t;

/**
 * Reads a header.
 * @param bytes borrowed; may be NULL when size is 0.
 * @param header filled on UNSALT_HEADER_OK only.
 * @returns UNSALT_HEADER_OK or the first fault found, in the order of the table. Any thread.
 */
UNSALT_EXPORT unsalt_header_fault_t unsalt_header_read(const void *bytes, size_t size, unsalt_header_t *header);

/**
 * Writes a header.
 * @param header borrowed; @param bytes room for UNSALT_HEADER_SIZE.
 * @returns UNSALT_HEADER_OK, or the fault that a reader would find; then nothing is written. Any thread.
 */
UNSALT_EXPORT unsalt_header_fault_t unsalt_header_write(const unsalt_header_t *header, void *bytes);

/** @returns the text of a fault; "?" out of range. Any thread. */
UNSALT_EXPORT const char *unsalt_header_fault_text(unsalt_header_fault_t fault);

/**
 * Writes a sequence as it stands at the end of a record key (`seq.source=key`). Such a key is the session id, then the
 * salt if there is one, then this trailer: `room` + `#3` + `00000000000000000007`. The trailer's length is fixed, so
 * any id can stand before it. For topics that aren't compacted, since every record has its own key; the partition is
 * set explicitly, since the key would pick another one for each record.
 * @param seq 0..UINT64_MAX - 1.
 * @param digits 0: 8 bytes big-endian (`seq.key=binary`); 1..20: so many decimal digits with leading zeros
 *               (`seq.key=decimal`, `seq.key.digits`).
 * @param bytes receives the trailer, without a final 0; @param size its room, UNSALT_KEY_TRAILER_MAX is always enough.
 * @returns the trailer's length; 0 if seq is reserved or needs more digits, digits is above 20, or there is no room:
 *          then nothing is written. Any thread.
 */
UNSALT_EXPORT size_t unsalt_key_trailer_write(uint64_t seq, unsigned digits, void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
