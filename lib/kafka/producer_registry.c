/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of librdkafka's handles are stamping producers'. A delivery report brings the handle and the application's
 * opaque; ours stands in the record's opaque, and a record that the producer didn't send has none.
 */
#include <kafka/producer.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct unsalt_producer *first;

void us_producers_add(struct unsalt_producer *p) {
    pthread_mutex_lock(&lock);
    p->next_registered = first;
    first = p;
    pthread_mutex_unlock(&lock);
}

void us_producers_remove(struct unsalt_producer *p) {
    pthread_mutex_lock(&lock);
    for (struct unsalt_producer **link = &first; *link; link = &(*link)->next_registered) {
        if (*link == p) {
            *link = p->next_registered;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

struct unsalt_producer *us_producers_find(const rd_kafka_t *rk) {
    pthread_mutex_lock(&lock);
    struct unsalt_producer *p = first;
    while (p && p->rk != rk)
        p = p->next_registered;
    pthread_mutex_unlock(&lock);
    return p;
}
