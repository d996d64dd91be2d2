/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim SCHEDULES [SEED [PLANT]]: plays the schedules of the seeds SEED, SEED + 1, ... in as many processes as there are
 * processors, and says how often what happened. One schedule alone is told step by step. At a failure it names the seed
 * and prints the schedule again, as short as it gets. Ends with 0 if nothing was wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <sim/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 16, ENOUGH = 20000 };
/* A worker that needs so many seconds for so many schedules hangs. */
enum { ALARM = 30, ALARM_EACH = 128 };

/* Shared with a worker. */
struct worker {
    pid_t pid;
    uint64_t seed;   /* that it plays now */
    uint64_t played; /* schedules that were right */
    bool failed;
    struct sim_coverage coverage;
};

static double wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct sim *the_sim(void) {
    static struct sim sim;
    return &sim;
}

static void work(struct worker *workers, unsigned self, unsigned n, uint64_t first, uint64_t count,
                 enum sim_plant plant) {
    static struct sim_plan plan;
    for (uint64_t i = self; i < count; i += n) {
        if (workers[self].played % ALARM_EACH == 0)
            alarm(ALARM);
        workers[self].seed = first + i;
        sim_plan_draw(&plan, first + i, plant);
        if (sim_play(the_sim(), &plan, &workers[self].coverage, false) != SIM_OK) {
            workers[self].failed = true;
            break;
        }
        workers[self].played++;
    }
    _exit(0);
}

/* Plays it again and tells it, shorter if it fails. */
static void tell(uint64_t seed, enum sim_plant plant, bool whole) {
    static struct sim_plan plan;
    struct sim_coverage unused = {0};
    sim_plan_draw(&plan, seed, plant);
    if (whole)
        sim_plan_print(&plan);
    enum sim_check check = sim_play(the_sim(), &plan, &unused, whole);
    if (check == SIM_OK)
        return;
    printf("not ok: SEED=%" PRIu64 ": %s\n", seed, the_sim()->why);
    sim_shrink(the_sim(), &plan, check);
    printf("the same, shorter:\n");
    sim_plan_print(&plan);
    for (unsigned i = 0; i < plan.n; i++)
        printf("  %s who=%u a=%u b=%u\n", sim_op_name((enum sim_kind)plan.ops[i].kind), plan.ops[i].who,
               plan.ops[i].a, plan.ops[i].b);
    sim_play(the_sim(), &plan, &unused, true);
    printf("not ok: SEED=%" PRIu64 ": %s\n", seed, the_sim()->why);
}

/* A machine that is full refuses a process now and then: another try, for as long as a worker may take. Returns -1
 * when there is none even then. */
static pid_t fork_at_last(void) {
    pid_t pid = fork();
    for (int i = 0; pid < 0 && i < ALARM * 10; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        pid = fork();
    }
    if (pid < 0)
        printf("not ok: no process: %s\n", strerror(errno));
    return pid;
}

/* Returns whether the process ended with 0; says how it ended otherwise. */
static bool ended_well(const struct worker *worker) {
    int status = 0;
    pid_t ended = -1;
    while (worker->pid > 0 && (ended = waitpid(worker->pid, &status, 0)) < 0 && errno == EINTR)
        continue;
    if (ended != worker->pid || ended < 0)
        printf("not ok: SEED=%" PRIu64 ": nobody played it and what follows\n", worker->seed);
    else if (WIFSIGNALED(status))
        printf("not ok: SEED=%" PRIu64 ": the program died of signal %d\n", worker->seed, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        printf("not ok: SEED=%" PRIu64 ": the program ended with %d\n", worker->seed, WEXITSTATUS(status));
    else
        return true;
    return false;
}

/* Waits for all, adds up. Returns the lowest seed that failed, UINT64_MAX = none. */
static uint64_t gather(struct worker *workers, unsigned n, struct sim_coverage *sum, uint64_t *played) {
    uint64_t failed = UINT64_MAX;
    for (unsigned i = 0; i < n; i++) {
        bool died = !ended_well(&workers[i]);
        if ((died || workers[i].failed) && workers[i].seed < failed)
            failed = workers[i].seed;
        sim_coverage_add(sum, &workers[i].coverage);
        *played += workers[i].played;
    }
    return failed;
}

/* Told in a process of its own, since it may die again. */
static void tell_apart(uint64_t seed, enum sim_plant plant) {
    fflush(stdout);
    pid_t pid = fork_at_last();
    if (pid == 0) {
        alarm(ALARM);
        tell(seed, plant, false);
        fflush(stdout);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static bool run(uint64_t first, uint64_t count, enum sim_plant plant) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = cpus < 1 ? 1 : cpus > WORKERS_MAX ? WORKERS_MAX : (unsigned)cpus;
    struct worker *workers =
        mmap(NULL, n * sizeof(*workers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sim_coverage sum = {0};
    uint64_t played = 0;
    double began = wall();
    if (workers == MAP_FAILED)
        return false;
    fflush(stdout);
    for (unsigned i = 0; i < n; i++) {
        workers[i].seed = first + i;
        pid_t pid = fork_at_last();
        if (pid == 0)
            work(workers, i, n, first, count, plant);
        workers[i].pid = pid; /* by the parent alone: the child writes to the same memory */
    }
    uint64_t failed = gather(workers, n, &sum, &played);
    double took = wall() - began;
    if (failed != UINT64_MAX) {
        tell_apart(failed, plant);
        printf("not ok - SEED=%" PRIu64 " fails: `make sim SEED=%" PRIu64 " SCHEDULES=1` tells all of it\n", failed,
               failed);
        return false;
    }
    if (played != count) {
        printf("not ok: %" PRIu64 " of %" PRIu64 " schedules were played\n", played, count);
        return false;
    }
    sim_coverage_print(&sum);
    bool holes = count >= ENOUGH && sim_coverage_holes(&sum) > 0;
    printf("%" PRIu64 " schedules from SEED=%" PRIu64 " on, %.1f s, %.0f a second in %u processes\n", count, first,
           took, (double)count / took, n);
    return !holes;
}

static enum sim_plant plant_named(const char *name) {
    static const char *const names[] = {
#define X(C, name, text) #name,
        SIM_PLANTS(X)
#undef X
    };
    for (int i = 0; i < SIM_PLANT__CNT; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum sim_plant)i;
    return SIM_PLANT__CNT;
}

int main(int argc, char **argv) {
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 && *argv[2] ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL) * 1000000;
    enum sim_plant plant = argc > 3 ? plant_named(argv[3]) : SIM_PLANT_NONE;
    if (count == 0 || plant == SIM_PLANT__CNT) {
        fprintf(stderr, "sim SCHEDULES [SEED [PLANT]]\n");
        return 2;
    }
    if (count == 1) {
        tell(seed, plant, true);
        return the_sim()->failed != SIM_OK;
    }
    printf("seeds from SEED=%" PRIu64 " on\n", seed);
    bool ok = run(seed, count, plant);
    printf("%s\n", ok ? "1 passed, 0 failed" : "0 passed, 1 failed");
    return !ok;
}
