/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consume, transform, produce, in the application's own transactions, while members are killed at every step of the
 * loop, stopped until they are thrown out, or killed beside others. In the end the output, read by somebody who
 * sees what was committed, has each record once, in the order of its session.
 */
#include <broker/fixture/child.h>
#include <broker/fixture/transformer.h>
#include <signal.h>
#include <stdlib.h>
#include <support/check.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOT = 600, COLD = 20, EACH = 20 };

static void finish(struct transformer *transformer, pid_t pid) {
    struct checker_report report;
    CHECK_I64(transformer_wait(pid, 40), 0);
    CHECK(transformer->shared->finished);
    transformer_judge(transformer, &report);
    CHECK_THAT(checker_clean(&report), "%s", report.fault);
    CHECK_U64(report.delivered, HOT + COLD * EACH);
    transformer_close(transformer);
}

/* ---- every step */

/*
 * All of them side by side, since starting takes most of the time. Offsets alone are enough for records without
 * numbers, which come in the order of their partition.
 */
Test(transaction_steps, killed_at_every_step, .timeout = 150) {
    struct transformer all[] = {
        {.in = {.layout = "topics", .partitions = 2, .lanes = 3}, .checkpoint = "topic"},
        {.in = {.layout = "hash", .partitions = 4, .lanes = 4}, .checkpoint = "topic"},
        {.in = {.layout = "hash", .partitions = 3, .lanes = 1}, .checkpoint = "none", .form = SENDER_JSON},
    };
    static const char *const words[] = {"stepa", "stepb", "stepc"};
    enum { N = sizeof all / sizeof *all };
    int kills = TRANSFORMER_STEPS * (getenv("UNSALT_LONG") ? 4 : 1);
    pid_t pids[N];
    for (int k = 0; k < N; k++) {
        transformer_open(&all[k], words[k], HOT, COLD, EACH);
        transformer_fill(&all[k]);
        all[k].name = "one";
        all[k].fixed = true;
        all[k].batch = TRANSFORMER_BATCH;
        all[k].signal_number = SIGKILL;
    }
    for (int i = 0; i < kills; i++) {
        for (int k = 0; k < N; k++) {
            all[k].step = (i + k) % TRANSFORMER_STEPS;
            all[k].round = 1 + (i + i / TRANSFORMER_STEPS) % 3;
            pids[k] = transformer_start(&all[k]);
        }
        for (int k = 0; k < N; k++) {
            int status = transformer_wait(pids[k], 30);
            CHECK_THAT(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                       "%s: step %d was not reached: status %d", words[k], all[k].step, status);
        }
    }
    for (int k = 0; k < N; k++) {
        all[k].step = TRANSFORMER_NEVER;
        all[k].batch = TRANSFORMER_BATCH_MAX;
        pids[k] = transformer_start(&all[k]);
    }
    for (int k = 0; k < N; k++)
        finish(&all[k], pids[k]);
}

/* ---- zombies */

struct zombie {
    struct transformer transformer;
    const char *word;
    pid_t pid;
};

/* A member is stopped at a step until another one has done everything. */
static void stop_and_inherit(struct zombie *zombie, int step, bool knows) {
    struct transformer *transformer = &zombie->transformer;
    transformer_open(transformer, zombie->word, HOT, COLD, EACH);
    transformer_fill(transformer);
    transformer->name = "zombie";
    transformer->batch = TRANSFORMER_BATCH;
    transformer->step = step;
    transformer->round = 3;
    transformer->knows = knows;
    transformer->signal_number = SIGSTOP;
    zombie->pid = transformer_start(transformer);
    CHECK_THAT(transformer_wait_stopped(zombie->pid, 30), "the step was not reached");
    transformer->name = "heir";
    transformer->knows = false;
    transformer->batch = TRANSFORMER_BATCH_MAX;
    transformer->step = TRANSFORMER_NEVER;
}

/* Then it goes on where it was. */
static void go_on(struct zombie *zombie, pid_t heir, int step) {
    struct transformer *transformer = &zombie->transformer;
    const struct transformer_error *error = &transformer->shared->error;
    CHECK_I64(transformer_wait(heir, 60), 0);
    CHECK_STR(error->call, "");
    kill(zombie->pid, SIGCONT);
    CHECK_I64(transformer_wait(zombie->pid, 30), 0);
    CHECK_STR(error->call, step == TRANSFORMER_SENDING ? "send" : "commit");
    if (step == TRANSFORMER_SENDING) {
        CHECK_THAT(error->requires_abort && !error->fatal, "%s", rd_kafka_err2name(error->code));
    } else { /* its transaction has timed out meanwhile, which fences its producer */
        CHECK_THAT(error->fatal || error->requires_abort, "%s", rd_kafka_err2name(error->code));
    }
    finish(transformer, transformer_start(transformer)); /* there is nothing left to be done */
}

Test(transaction_steps, zombies_are_fenced, .timeout = 90) {
    struct zombie with_cursors = {
        .transformer = {.in = {.layout = "topics", .partitions = 2, .lanes = 2}, .checkpoint = "topic"},
        .word = "zombiea"};
    struct zombie with_offsets = {.transformer = {.in = {.layout = "hash", .partitions = 3, .lanes = 1},
                                                  .checkpoint = "none",
                                                  .form = SENDER_JSON},
                                  .word = "zombieb"};
    stop_and_inherit(&with_cursors, TRANSFORMER_SENDING, false);
    stop_and_inherit(&with_offsets, TRANSFORMER_SENDING, true);
    pid_t first = transformer_start(&with_cursors.transformer), second = transformer_start(&with_offsets.transformer);
    go_on(&with_cursors, first, TRANSFORMER_SENDING);
    go_on(&with_offsets, second, TRANSFORMER_SENDING);
}

/* Its offsets are pending: the heir waits until a broker ends the transaction, 13 s or more. */
Test(transaction_steps, a_zombie_that_has_sent_is_fenced, .timeout = 120) {
    struct zombie zombie = {
        .transformer = {.in = {.layout = "topics", .partitions = 2, .lanes = 2}, .checkpoint = "topic"},
        .word = "zombiec"};
    if (getenv("UNSALT_LONG")) {
        stop_and_inherit(&zombie, TRANSFORMER_COMMITTING, false);
        go_on(&zombie, transformer_start(&zombie.transformer), TRANSFORMER_COMMITTING);
    }
}

/* ---- two members */

Test(transaction_steps, two_members_and_one_is_killed, .timeout = 90) {
    struct transformer transformer = {.in = {.layout = "topics", .partitions = 2, .lanes = 3}, .checkpoint = "topic"};
    transformer_open(&transformer, "two", HOT, COLD, EACH);
    transformer.batch = 20;
    transformer.step = TRANSFORMER_NEVER;
    transformer.name = "stays";
    pid_t stays = transformer_start(&transformer);
    transformer.name = "goes";
    transformer.number = 1;
    transformer.step = TRANSFORMER_SENT;
    transformer.round = 5;
    transformer.signal_number = SIGKILL;
    pid_t goes = transformer_start(&transformer);
    const volatile int *owned = transformer.shared->owned;
    for (double until = scene_now() + 20; owned[0] != 3 || owned[1] != 3; usleep(10000))
        CHECK_THAT(scene_now() < until, "they have %d and %d partitions", owned[0], owned[1]);
    transformer_fill(&transformer);
    int status = transformer_wait(goes, 30);
    CHECK_THAT(status != -1 && WIFSIGNALED(status), "it was not killed: %d", status);
    transformer.step = TRANSFORMER_NEVER; /* it comes again: its producer ends what it has left open */
    pid_t again = transformer_start(&transformer);
    CHECK_I64(transformer_wait(again, 40), 0);
    finish(&transformer, stays);
}
