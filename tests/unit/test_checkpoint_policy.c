/* SPDX-License-Identifier: BSD-2-Clause */
/* Which values of cleanup.policy keep a topic of checkpoints small and whole. */
#include <kafka/checkpoint_topic.h>
#include <support/check.h>

Test(checkpoint_policy, compact_among_the_values) {
    static const char *const good[] = {"compact", "compact,delete", "delete,compact", "delete, compact", " compact "};
    static const char *const bad[] = {"", "delete", "compacted", "delete,", ",", "none", "uncompact,delete"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_THAT(us_checkpoint_topic_compacts(good[i]), "\"%s\"", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_THAT(!us_checkpoint_topic_compacts(bad[i]), "\"%s\"", bad[i]);
}
