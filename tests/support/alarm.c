/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE /* dladdr() */
#include <criterion/types.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/alarm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TELLERS = 64, FRAMES = 40, SIGNAL = SIGUSR2 };

/* NULL where Criterion isn't linked. */
extern const struct criterion_test *const criterion_current_test __attribute__((weak));

static struct timespec began;
static struct {
    alarm_teller *teller;
    void *subject;
} tellers[TELLERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards tellers, and is held while they tell */
static bool armed, is_child;
static pthread_t test_thread;
static void *frames[FRAMES];
static int frame_count;
static sem_t seen;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)(t.tv_sec - began.tv_sec) + (double)(t.tv_nsec - began.tv_nsec) * 1e-9;
}

/* Each test is a process that is executed anew. */
__attribute__((constructor)) static void note_begin(void) {
    clock_gettime(CLOCK_MONOTONIC, &began);
}

/* ---- where the test's thread is */

static void on_signal(int number) {
    (void)number;
    frame_count = backtrace(frames, FRAMES);
    sem_post(&seen);
}

/* By addr2line, which comes with the compiler: the functions of a test are static, so that dladdr() has no names. */
static void say_place(const char *program, unsigned long offset) {
    char command[600], path[400];
    ssize_t len = strchr(program, '/') ? 0 : readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len > 0) { /* Criterion calls its processes by another name */
        path[len] = 0;
        program = path;
    }
    snprintf(command, sizeof(command), "addr2line -fpse '%s' 0x%lx >&2", program, offset);
    if (system(command) != 0) {
        fprintf(stderr, "%s+0x%lx\n", program, offset);
    }
}

static void say_frames(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    if (pthread_kill(test_thread, SIGNAL) != 0 || sem_timedwait(&seen, &until) != 0) {
        fprintf(stderr, "alarm: the test's thread doesn't answer\n");
        return;
    }
    for (int i = 2; i < frame_count; i++) { /* not the handler */
        Dl_info info;
        /* A return address may belong to the next function already. */
        if (!dladdr((char *)frames[i] - 1, &info)) {
            fprintf(stderr, "  %p\n", frames[i]);
        } else if (info.dli_sname) {
            fprintf(stderr, "  %s\n", info.dli_sname);
        } else {
            fprintf(stderr, "  ");
            say_place(info.dli_fname, (unsigned long)((char *)frames[i] - 1 - (char *)info.dli_fbase));
        }
    }
}

/* ---- what the fixtures know */

void alarm_add(alarm_teller *teller, void *subject) {
    alarm_arm();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < TELLERS; i++) {
        if (!tellers[i].teller) {
            tellers[i].teller = teller;
            tellers[i].subject = subject;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void alarm_remove(void *subject) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < TELLERS; i++) {
        if (tellers[i].subject == subject) {
            tellers[i].teller = NULL;
            tellers[i].subject = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
}

void alarm_tell(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < TELLERS; i++) {
        if (tellers[i].teller) {
            tellers[i].teller(tellers[i].subject);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the alarm */

static void *alarm_main(void *opaque) {
    double *at = opaque, left;
    while ((left = *at - now()) > 0) {
        struct timespec pause = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&pause, NULL);
    }
    fprintf(stderr, "alarm: %s hangs: after %.0f s it is here\n", is_child ? "a child of the test" : "the test", now());
    say_frames();
    alarm_tell();
    abort();
}

static void arm(double when) {
    static double at;
    struct sigaction action = {.sa_handler = on_signal};
    pthread_attr_t attr;
    pthread_t thread;
    armed = true;
    at = when;
    test_thread = pthread_self();
    sem_init(&seen, 0, 0);
    backtrace(frames, 1); /* loads what it needs now, and not in the handler */
    sigaction(SIGNAL, &action, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, alarm_main, &at) != 0) {
        fprintf(stderr, "alarm: no thread\n");
    }
    pthread_attr_destroy(&attr);
}

void alarm_arm(void) {
    if (armed || !&criterion_current_test || !criterion_current_test || !criterion_current_test->data) {
        return;
    }
    double timeout; /* Criterion keeps it where no double may be read at once */
    memcpy(&timeout, (const char *)criterion_current_test->data + offsetof(struct criterion_test_extra_data, timeout),
           sizeof timeout);
    if (timeout > 0) {
        arm(timeout - (timeout / 10 > ALARM_LEAD ? timeout / 10 : ALARM_LEAD) - is_child);
    }
}

void alarm_arm_in(double seconds) {
    arm(now() + seconds);
}

void alarm_arm_child(void) {
    if (armed) {
        armed = false;
        is_child = true;
        alarm_arm();
    }
}
