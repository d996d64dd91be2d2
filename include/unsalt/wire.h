/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_WIRE_H
#define UNSALT_WIRE_H
/**
 * @file wire.h
 * @brief The record header `unsalt`, version 1: 40 bytes, big-endian.
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

#define UNSALT_HEADER_NAME "unsalt"
#define UNSALT_HEADER_VERSION 1
#define UNSALT_HEADER_SIZE 40

#ifdef __cplusplus
extern "C" {
#endif

/** The fields of the header. */
typedef struct unsalt_header {
    uint8_t flags;
    uint16_t lane;
    uint16_t lanes;
    uint64_t epoch;
    uint64_t seq;
    uint64_t since;
    uint64_t una;
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

typedef enum unsalt_header_fault {
#define X(C, text) UNSALT_HEADER_##C,
    UNSALT_HEADER_FAULTS(X)
#undef X
    UNSALT_HEADER__CNT
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

#ifdef __cplusplus
}
#endif
#endif
