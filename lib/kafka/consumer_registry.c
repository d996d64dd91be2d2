/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/consumer.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct unsalt *first;

void us_registry_add(struct unsalt *u) {
    pthread_mutex_lock(&lock);
    u->next_registered = first;
    first = u;
    pthread_mutex_unlock(&lock);
}

void us_registry_remove(struct unsalt *u) {
    pthread_mutex_lock(&lock);
    for (struct unsalt **link = &first; *link; link = &(*link)->next_registered) {
        if (*link == u) {
            *link = u->next_registered;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

struct unsalt *us_registry_find(const rd_kafka_t *rk) {
    pthread_mutex_lock(&lock);
    struct unsalt *u = first;
    while (u && u->rk != rk) {
        u = u->next_registered;
    }
    pthread_mutex_unlock(&lock);
    return u;
}
