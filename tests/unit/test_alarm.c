/* SPDX-License-Identifier: BSD-2-Clause */
/* A test that hangs says where, and how its subjects stand, before it is killed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/alarm.h>
#include <support/check.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(void *subject) {
    fprintf(stderr, "told of %s\n", (const char *)subject);
}

static void __attribute__((noinline)) waits_for_ever(void) {
    for (;;) {
        pause();
    }
}

static void hang(int fd) {
    static char here[] = "what is here", gone[] = "what is gone";
    dup2(fd, STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    alarm_arm_in(0.2);
    alarm_add(tell, here);
    alarm_add(tell, gone);
    alarm_remove(gone);
    waits_for_ever();
}

TEST(alarm, a_test_that_hangs_says_where) {
    static char said[8192];
    size_t len = 0;
    ssize_t n;
    int fds[2], status;
    CHECK(pipe(fds) == 0);
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        hang(fds[1]);
    }
    close(fds[1]);
    while ((n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_THAT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %x: %s", (unsigned)status, said);
    CHECK_THAT(strstr(said, "hangs: after") && strstr(said, "waits_for_ever") && strstr(said, "test_alarm.c"), "%s",
               said);
    CHECK_THAT(strstr(said, "told of what is here") && !strstr(said, "what is gone"), "%s", said);
}
