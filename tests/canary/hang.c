/* SPDX-License-Identifier: BSD-2-Clause */
/* canary release: still running */
/* A plain program that never ends, with a child that doesn't either: the alarm ends both. */
#include <unistd.h>

int main(void) {
    if (fork() < 0)
        return 1;
    for (;;)
        pause();
}
