/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member is killed again and again while it works and commits all the time, so at every step of a commit. Whatever
 * a commit that returned has covered never comes again; of the one that was under way either all is covered or nothing.
 */
#include <broker/fixture/child.h>
#include <broker/fixture/course.h>
#include <broker/fixture/sender.h>
#include <stdlib.h>
#include <support/check.h>
#include <support/prng.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOT = 4000, COLD = 40, EACH = 50, BATCH = 40 };

struct task {
    struct scene scene;
    char path[64];
    const char *const *conf;
    bool to_the_end;
};

static void send_all(void *arg) {
    const struct task *task = arg;
    checker_log_t *accepted = checker_log_new();
    scene_create(&task->scene);
    sender_weave(&task->scene, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    checker_log_free(accepted);
}

/* A static member: the group takes it back at once, and its producer ends what the one before has left open. */
static void work(void *arg) {
    const struct task *task = arg;
    struct course_member member = {.scene = &task->scene, .conf = task->conf, .every = 3};
    member.log = child_open(task->path);
    course_join(&member);
    while (!task->to_the_end || !course_stopped(task->path)) {
        uint64_t n = course_poll(&member, task->to_the_end ? 5 * BATCH : BATCH, 100, true);
        course_ack_late(&member, n ? BATCH : 0);
        if (course_commit(&member) && task->to_the_end)
            scene_die("a commit failed: %s", member.texts[UNSALT_EVENT_COMMIT_FAILED]);
        unsigned bad = member.events[UNSALT_EVENT_GAP] + member.events[UNSALT_EVENT_RESUMED] +
                       member.events[UNSALT_EVENT_CHECKPOINT_IGNORED] + member.events[UNSALT_EVENT_CHECKPOINT_REFUSED];
        if (bad)
            scene_die("a false gap, or a checkpoint that doesn't fit: %s%s%s%s", member.texts[UNSALT_EVENT_GAP],
                      member.texts[UNSALT_EVENT_RESUMED], member.texts[UNSALT_EVENT_CHECKPOINT_IGNORED],
                      member.texts[UNSALT_EVENT_CHECKPOINT_REFUSED]);
    }
    course_leave(&member);
}

static void nap_us(uint64_t us) {
    struct timespec pause = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    nanosleep(&pause, NULL);
}

/* Until something is delivered, up to 30 s, and a moment longer. */
static void let_work(struct course *course, const char *path, long *from, uint64_t us) {
    uint64_t before = course->deliveries;
    for (double until = scene_now() + 30; course->deliveries == before && scene_now() < until; nap_us(2000))
        course_replay(course, path, from);
    CHECK_THAT(course->deliveries > before, "the member delivers nothing");
    nap_us(us);
}

static uint64_t all_open(const struct course *course) {
    uint64_t open = 0;
    for (int s = 0; s <= COLD; s++)
        open += course_open_numbers(course, s, s ? EACH : HOT);
    return open;
}

static void killed_often(const char *layout, int kills) {
    static const char *const conf[] = {"group.instance.id", "one", NULL};
    struct task task = {.scene = {.layout = layout, .partitions = 3, .lanes = 3}, .conf = conf};
    struct prng prng = prng_start(1);
    struct course course;
    long from = 0;
    course_open(&course);
    scene_name(&task.scene, "killed");
    course_path(task.path, sizeof task.path);
    child_run(send_all, &task);
    int kill = 0;
    for (; kill < kills && all_open(&course) > 500; kill++) {
        pid_t pid = child_start(work, &task);
        let_work(&course, task.path, &from, prng_below(&prng, 250000));
        child_kill(pid);
        course_replay(&course, task.path, &from);
    }
    task.to_the_end = true;
    pid_t last = child_start(work, &task);
    int status;
    for (double until = scene_now() + 60; all_open(&course) > 0 && scene_now() < until; nap_us(5000))
        course_replay(&course, task.path, &from);
    course_stop(task.path);
    CHECK_I64(waitpid(last, &status, 0), last);
    CHECK_I64(status, 0);
    fprintf(stderr, "%d kills; of the commits under way %u were done, %u not; %d records delivered\n", kill,
            course.were_done, course.were_not, (int)course.deliveries);
    course_unlink(task.path);
    CHECK(kill >= 2);
    CHECK_U64(all_open(&course), 0);
    course_close(&course);
}

Test(checkpoint_crash, killed_at_every_step_of_a_commit, .timeout = 120) {
    killed_often("topics", getenv("UNSALT_LONG") ? 60 : 5);
}

Test(checkpoint_crash, killed_at_every_step_of_a_commit_in_hash, .timeout = 120) {
    killed_often("hash", getenv("UNSALT_LONG") ? 60 : 3);
}
