/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ordering engine alone, without Kafka and without a clock: two partitions carry a session whose even numbers are
 * in lane 0 and whose odd ones are in lane 1. Number 5 never comes. Experimental: it may change in any release.
 */
#define UNSALT_ENABLE_CORE_API
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unsalt/core.h>

#define MS UINT64_C(1000000) /* time is an argument: monotonic nanoseconds */

static uint32_t assign(unsalt_core_t *core, int32_t lane) {
    unsalt_core_partition_t partition = {.set = 0, .set_size = 2, .lane = lane, .start_offset = 0, .log_start = 0};
    int part = unsalt_core_assign(core, &partition);
    if (part < 0)
        exit(1);
    return (uint32_t)part;
}

/* What came out is done at once, so it may be committed. */
static void use(unsalt_core_t *core, const unsalt_core_out_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        printf("  %s: %s %" PRIu64 ", waited %" PRIu64 " ms%s\n", (const char *)out[i].msg,
               unsalt_state_name((unsalt_state_t)out[i].state), out[i].seq, out[i].waited_ns / MS,
               out[i].flags & UNSALT_OUT_AFTER_GAP ? ", after a gap" : "");
        unsalt_core_ack(core, out[i].part, out[i].generation, out[i].ticket);
    }
}

/* What an arrival or a verdict has released, and what was decided. */
static void pull(unsalt_core_t *core, uint64_t now) {
    unsalt_core_out_t out[16];
    unsalt_core_event_t event;
    size_t n;
    while (unsalt_core_events(core, &event, 1) == 1)
        printf("  event %s: %" PRIu64 "..%" PRIu64 "\n", unsalt_core_event_name(event.type), event.first, event.last);
    while ((n = unsalt_core_pull(core, now, out, 16)) > 0)
        use(core, out, n);
}

static void push(unsalt_core_t *core, uint32_t part, uint64_t seq, int64_t offset, uint64_t now) {
    static char text[] = "order-17"; /* the caller's handle of a record; comes back with it */
    unsalt_core_in_t in = {.msg = text, .session = "order-17", .session_len = 8, .part = part, .seq = seq, .lanes = 2,
                           .lane = (uint16_t)(seq % 2), .since = 1, .una = UNSALT_NO_SEQ, .offset = offset,
                           .timestamp = -1, .bytes = 100, .kind = UNSALT_KIND_SEQUENCED};
    unsalt_core_out_t out[1];
    size_t n;
    int status;
    printf("at %" PRIu64 " ms, partition %u brings number %" PRIu64 "\n", now / MS, (unsigned)part, seq);
    if (unsalt_core_push(core, &in, 1, now, out, &n, &status) != 1)
        exit(1);
    use(core, out, n);
    pull(core, now);
}

int main(void) {
    char errstr[256];
    unsalt_core_params_t params;
    unsalt_core_params_init(&params);
    params.gap_timeout_ns = 500 * MS;
    unsalt_core_t *core = unsalt_core_new(&params, errstr, sizeof errstr);
    if (!core)
        return fprintf(stderr, "%s\n", errstr), 1;
    uint32_t even = assign(core, 0), odd = assign(core, 1);
    unsalt_core_reading(core, true, 0);
    push(core, even, 2, 0, 10 * MS);
    push(core, even, 4, 1, 20 * MS);
    push(core, odd, 1, 0, 30 * MS); /* releases 1 and 2 */
    push(core, odd, 3, 1, 40 * MS); /* and 3 and 4 */
    push(core, even, 6, 2, 50 * MS);

    /*
     * In time, number 5 falls due. It is given up when everything that stood in its partition at that moment was read:
     * the engine asks for the end of the log, and two records, the offsets 0 and 1, is what we have read of it.
     */
    uint32_t asked;
    uint64_t now;
    do {
        now = unsalt_core_deadline(core);
        unsalt_core_expire(core, now);
    } while (unsalt_core_questions(core, now, &asked, 1) == 0);
    printf("at %" PRIu64 " ms, where does partition %u end? At offset 2.\n", now / MS, (unsigned)asked);
    unsalt_core_answer(core, asked, unsalt_core_generation(core, asked), 2, now + 3 * MS);
    unsalt_core_expire(core, now + 3 * MS);
    pull(core, now + 3 * MS);
    printf("to commit: %" PRId64 " and %" PRId64 "\n", unsalt_core_position(core, even),
           unsalt_core_position(core, odd));
    unsalt_core_destroy(core);
    return 0;
}
