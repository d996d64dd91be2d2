/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which lane a result goes to, and what its header may say there.
 *
 * A record with an `unsalt` header whose lanes the result has too keeps the header as it is. The order that `una` rests
 * on is kept then: what stood before it on its lane was relayed before it, by the same member or by one whose
 * transaction was over before the next one began, and lane k of the result carries nothing but lane k of the input. So
 * what the producer had proven of a lane of the input is true of that lane of the result.
 *
 * Everything else is spread over the result's lanes anew, by number: a lane carries numbers of several lanes of the
 * input then, or of partitions that nobody knows, and those are relayed by several members, one ahead of the other. Of
 * such a lane nothing is proven: `una` goes. Nor is anything said of the numbers below: `since` is the record's own.
 */
#ifndef US_KAFKA_RELAY_HEADER_H
#define US_KAFKA_RELAY_HEADER_H
#include <kafka/conf.h>
#include <unsalt/wire.h>

/*
 * in: SEQUENCED, or CONTROL with flag MARKER; its number isn't 0. lanes: of the result, >= 1. dropped: the record has
 * no result, so a marker for its number is what goes out. Returns whether the lane is kept. Any thread.
 */
bool us_relay_header(const unsalt_core_in_t *in, uint16_t lanes, bool dropped, unsalt_header_t *header);
#endif
