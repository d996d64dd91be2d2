/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A storm of joins, leaves and kills while a producer goes on: members are processes, read in batches, commit every
 * 50 ms, half of them with late acknowledgements. Nothing may be missing; each member delivers its sessions in order
 * from assignment to assignment; what comes again stands above what was committed.
 */
#include <broker/fixture/pack.h>
#include <inttypes.h>
#include <support/check.h>
#include <support/prng.h>
#include <time.h>

enum { MOST = 5 };

struct storm {
    struct pack pack;
    struct prng prng;
    int churned[MOST]; /* numbers of the members that come and go */
    int count;
    int joins, leaves, kills, seen;
};

static void pause_ms(uint64_t ms) {
    struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

static void join(struct storm *storm) {
    int member = pack_join(&storm->pack);
    storm->churned[storm->count++] = member;
    storm->joins++;
    /* Mostly until it takes part; now and then the next blow comes amid the rebalance. */
    if (prng_below(&storm->prng, 3) > 0)
        pack_wait_for(&storm->pack, member, 10);
    else
        pause_ms(prng_below(&storm->prng, 300));
}

static void go(struct storm *storm, bool killed) {
    int i = (int)prng_below(&storm->prng, (uint64_t)storm->count), member = storm->churned[i];
    storm->churned[i] = storm->churned[--storm->count];
    if (killed)
        pack_kill(&storm->pack, member);
    else
        pack_leave(&storm->pack, member);
    storm->kills += killed;
    storm->leaves += !killed;
}

/* One of three that are not joins is a kill. */
static void blow(struct storm *storm) {
    bool full = storm->count == MOST - 2, none = storm->count == 0;
    if (none || (!full && prng_below(&storm->prng, 2) == 0))
        join(storm);
    else
        go(storm, (storm->leaves + storm->kills) % 3 == 2);
    pack_look(&storm->pack);
    pause_ms(prng_below(&storm->prng, 150));
}

static void rage(const char *const *conf, const char *word, int operations) {
    struct storm storm = {.prng = prng_start(6)};
    double began = scene_now();
    uint64_t missing;
    int steady[2], taken = 0, i;
    storm.pack.scene = (struct scene){.layout = "topics", .partitions = 8, .lanes = 3};
    storm.pack.conf = conf;
    storm.pack.pause_ms = 5;
    pack_open(&storm.pack, word);
    steady[0] = pack_join(&storm.pack);
    steady[1] = pack_join(&storm.pack);
    CHECK(pack_wait_for(&storm.pack, steady[0], 20));
    CHECK(pack_wait_for(&storm.pack, steady[1], 20));
    for (i = 0; i < operations; i++)
        blow(&storm);
    missing = pack_finish(&storm.pack, 40);
    for (i = 0; i < storm.pack.started; i++)
        taken += storm.pack.passes->by_member[i] > 0;
    fprintf(stderr, "storm: %d joins, %d leaves, %d kills, %d members delivered; %" PRIu64 " records, %" PRIu64
            " of them again, %" PRIu64 " missing, %.1f s\n", storm.joins, storm.leaves, storm.kills, taken,
            storm.pack.passes->records, storm.pack.passes->again, missing, scene_now() - began);
    CHECK_U64(missing, 0);
    CHECK(storm.joins + storm.leaves + storm.kills >= 20 && storm.kills >= 3);
    CHECK(taken >= 2 + storm.joins / 2);
    pack_leave_all(&storm.pack);
    pack_look(&storm.pack);
    pack_close(&storm.pack);
}

Test(rebalance_storm, joins_leaves_and_kills_under_production, .timeout = 150) {
    static const char *const conf[] = {"session.timeout.ms", "1500", "heartbeat.interval.ms", "100",
                                       "partition.assignment.strategy", "range", NULL};
    rage(conf, "storm", 32);
}

/*
 * The same where single partitions come and go: all joins, leaves and kills are felt with a heartbeat or a session's
 * end, which the broker sets. A librdkafka that hasn't the whole of the protocol has nothing to show.
 */
Test(rebalance_storm, with_the_group_protocol_of_servers, .timeout = 150) {
    static const char *const conf[] = {"group.protocol", "consumer", NULL};
    if (rd_kafka_version() < 0x020c00ff)
        return;
    rage(conf, "server", 22);
}
