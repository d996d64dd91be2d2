/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A producer in another language, written from docs/wire-format.md alone: it stamps the `unsalt` header and sets the
 * partition of each record. Sessions over all lanes and over one, one that is spread while it lives and cooled again,
 * marked numbers, heartbeats, and a second run under a higher epoch.
 */
#include <field/fixture/field.h>
#include <support/check.h>

#define STAMPED(name) {.shape = name, .scene = {.layout = name, .partitions = 8, .lanes = 4}}

static const char *const program[] = {"python/run.sh", "stamping_producer.py", NULL};
/* Each of the two runs abandons three numbers of a session, and marks them. */
static const struct field_reading by_default = {.gaps = 2};
static const struct field_reading lane_topics = {
    .settings = {"layout", "topics", "partitions", "8", "lanes", "4"}, .gaps = 2};
static const struct field_reading blocks = {
    .settings = {"layout", "block", "partitions", "8", "lanes", "4"}, .gaps = 2};

Test(field_stamped, python_producer_in_each_layout, .timeout = 90) {
    struct field_topic topics[] = {STAMPED("hash"), STAMPED("topics"), STAMPED("block")};
    const struct field_reading *readings[] = {&by_default, &lane_topics, &blocks};
    enum { COUNT = sizeof topics / sizeof *topics };
    field_produce(program, NULL, topics, COUNT);
    for (int i = 0; i < COUNT; i++) {
        field_check_spread(&topics[i], "hot-a", 4);
        field_check_spread(&topics[i], "warm", 4);
        field_check_reading(&topics[i], readings[i]);
    }
    field_close(topics, COUNT);
}
