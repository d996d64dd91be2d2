/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading in order against reading without, on a real broker: wall time and processor time per record, from the first
 * record to the last. All readers (readers.h) read the same topic from its beginning, with the same configuration of
 * librdkafka, in one process, in turns: a round is one run of each, and each round begins with another one.
 *
 *   consumer [-t TOPIC [-d]] [-w all-hot|one-hot] [-f header|plain|json|key] [-s BYTES] [-c CODEC] [-n RECORDS]
 *            [-r ROUNDS] [-o] [READER...]
 *
 * -t: the topic is used as it is if it exists, so that several runs can share one; -d deletes it. -o: only one run of
 * each reader, and nothing is compared: for a profiler. UNSALT_TEST_BOOTSTRAP names the cluster.
 */
#include "readers.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plan {
    struct topic_load load;
    const char *topic, *form, *traffic;
    size_t rounds;
    bool drop, only;
    bool wanted[READER__CNT];
};

static const char *const forms[] = {"header", "plain", "json", "key", NULL};
static const char *const traffics[] = {"one-hot", "all-hot", NULL};

static const struct pair {
    enum reader ours, theirs;
} pairs[] = {
    {READER_ORDERED_POLL, READER_POLL_LOOK},     {READER_ORDERED_BATCH, READER_POLL_LOOK},
    {READER_ORDERED_CALLBACK, READER_POLL_LOOK}, {READER_ORDERED_EXTRACT, READER_POLL_LOOK},
    {READER_ORDERED_POLL, READER_POLL},          {READER_ORDERED_BATCH, READER_POLL},
    {READER_ORDERED_CALLBACK, READER_POLL},      {READER_ORDERED_EXTRACT, READER_POLL},
    {READER_ORDERED_BATCH, READER_BATCH_LOOK},   {READER_ORDERED_BATCH, READER_BATCH},
    {READER_ORDERED_POLL, READER_SPLIT_LOOK},    {READER_ORDERED_BATCH, READER_SPLIT_LOOK},
    {READER_ORDERED_CALLBACK, READER_SPLIT_LOOK}, {READER_ORDERED_BATCH, READER_SPLIT},
};

static int find(const char *const *words, const char *word) {
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    topic_fail("an unknown word; the head of bench/consumer.c has the usage");
}

/* Without words: all that says something of a form. */
static void choose(struct plan *plan, char **words) {
    bool look = plan->load.form != FORM_KEY;
    for (; *words; words++) {
        enum reader reader = 0;
        while (reader < READER__CNT && strcmp(reader_word(reader), *words) != 0)
            reader++;
        if (reader == READER__CNT)
            topic_fail("an unknown reader; bench/readers.c has their words");
        plan->wanted[reader] = true;
    }
    for (enum reader reader = 0; reader < READER__CNT; reader++)
        if (plan->wanted[reader])
            return;
    for (enum reader reader = 0; reader < READER__CNT; reader++)
        plan->wanted[reader] = reader != READER_ORDERED_EXTRACT;
    plan->wanted[READER_ORDERED_EXTRACT] = plan->load.form == FORM_KEY;
    plan->wanted[READER_POLL_LOOK] = plan->wanted[READER_BATCH_LOOK] = plan->wanted[READER_SPLIT_LOOK] = look;
}

static struct plan parse(int argc, char **argv) {
    struct plan plan = {.load = {TRAFFIC_ALL_HOT, FORM_HEADER, "none", 100, 1, bench_full() ? 3000000 : 1000000, 0},
                        .form = "header", .traffic = "all-hot", .rounds = 7};
    for (int option; (option = getopt(argc, argv, "t:dw:f:s:c:n:r:o")) != -1;) {
        switch (option) {
        case 't': plan.topic = optarg; break;
        case 'd': plan.drop = true; break;
        case 'w': plan.load.traffic = (enum traffic)find(traffics, plan.traffic = optarg); break;
        case 'f': plan.load.form = (enum form)find(forms, plan.form = optarg); break;
        case 's': plan.load.payload = (size_t)atol(optarg); break;
        case 'c': plan.load.codec = optarg; break;
        case 'n': plan.load.records = atol(optarg); break;
        case 'r': plan.rounds = (size_t)atol(optarg); break;
        case 'o': plan.only = true; break;
        default: topic_fail("the head of bench/consumer.c has the usage");
        }
    }
    if (plan.rounds < 1 || plan.rounds > BENCH_RUNS_MAX || plan.load.records < 1)
        topic_fail("1 to 64 rounds, and 1 record or more");
    plan.load.records = (long)bench_size((size_t)plan.load.records);
    choose(&plan, argv + optind);
    return plan;
}

static void report(const struct plan *plan, struct bench_runs *runs) {
    char name[96];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        enum reader ours = pairs[i].ours, theirs = pairs[i].theirs;
        if (!plan->wanted[ours] || !plan->wanted[theirs])
            continue;
        snprintf(name, sizeof name, "%s %s %s %zu B %s, %s", reader_word(ours), plan->form, plan->traffic,
                 plan->load.payload, plan->load.codec, rd_kafka_version_str());
        bench_compare(name, "time_per_record", "ns", &runs[ours], reader_text(theirs), &runs[theirs]);
    }
}

int main(int argc, char **argv) {
    static struct bench_runs runs[READER__CNT];
    struct plan plan = parse(argc, argv);
    if (!plan.topic || !topic_use(plan.topic))
        topic_open(plan.topic, &plan.load);
    for (size_t round = 0; round < (plan.only ? 1 : plan.rounds); round++)
        for (size_t i = 0; i < READER__CNT; i++) {
            enum reader reader = (enum reader)((i + round) % READER__CNT);
            if (plan.wanted[reader])
                reader_run(reader, plan.load.form, plan.load.records, &runs[reader]);
        }
    if (!plan.only)
        report(&plan, runs);
    if (!plan.topic || plan.drop)
        topic_close();
    return 0;
}
