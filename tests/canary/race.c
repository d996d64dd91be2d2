/* SPDX-License-Identifier: BSD-2-Clause */
/* canary tsan: ThreadSanitizer */
/* Two threads count without a lock. A plain program: Criterion can't start under ThreadSanitizer. */
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *count(void *arg) {
    (void)arg;
    for (int i = 0; i < 10000; i++)
        counter++;
    return NULL;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, count, NULL);
    pthread_create(&b, NULL, count, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    puts("ok - counted");
    return 0;
}
