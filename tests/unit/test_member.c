/* SPDX-License-Identifier: BSD-2-Clause */
/* With what metadata of a group offsets may be sent to a transaction. */
#include <kafka/member.h>
#include <support/check.h>

static bool of_generation(rd_kafka_consumer_group_metadata_t *metadata) {
    bool is = us_member_is_of_generation(metadata);
    rd_kafka_consumer_group_metadata_destroy(metadata);
    return is;
}

TEST(member, of_a_generation) {
    CHECK(of_generation(rd_kafka_consumer_group_metadata_new_with_genid("group", 7, "member", NULL)));
    CHECK(of_generation(rd_kafka_consumer_group_metadata_new_with_genid("group", 0, "m", "instance")));
}

/* As librdkafka has it after the group has thrown the member out: a broker takes offsets of that. */
TEST(member, of_none) {
    CHECK(!of_generation(rd_kafka_consumer_group_metadata_new_with_genid("group", -1, "member", NULL)));
    CHECK(!of_generation(rd_kafka_consumer_group_metadata_new_with_genid("group", -1, "", NULL)));
    CHECK(!of_generation(rd_kafka_consumer_group_metadata_new_with_genid("group", 7, "", NULL)));
    CHECK(!of_generation(rd_kafka_consumer_group_metadata_new_with_genid("group", 7, "", "instance")));
    CHECK(!of_generation(rd_kafka_consumer_group_metadata_new("group")));
}
