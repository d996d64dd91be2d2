/* SPDX-License-Identifier: BSD-2-Clause */
#include "journal.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 4096, ROOM = 256 * 1024 };

static int journal_fd = -1;
static char lines[ROOM];
static size_t used;

void chaos_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "chaos: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(2);
}

uint64_t chaos_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void chaos_sleep(uint64_t microseconds) {
    struct timespec rest = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000};
    nanosleep(&rest, NULL);
}

void journal_open(const char *path) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    journal_fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (journal_fd < 0)
        chaos_die("%s: %s", path, strerror(errno));
}

static void add(const char *word, const char *format, va_list args) {
    char text[LINE];
    int head = snprintf(text, sizeof text, "%s %" PRIu64 " ", word, chaos_clock());
    int body = vsnprintf(text + head, sizeof text - (size_t)head - 1, format, args);
    size_t len = (size_t)head + (size_t)body;
    if (len > sizeof text - 2)
        len = sizeof text - 2;
    text[len++] = '\n';
    if (used + len > sizeof lines)
        journal_flush();
    memcpy(lines + used, text, len);
    used += len;
}

void journal(const char *word, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add(word, format, args);
    va_end(args);
}

void journal_now(const char *word, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add(word, format, args);
    va_end(args);
    journal_flush();
}

void journal_flush(void) {
    size_t done = 0;
    while (done < used) {
        ssize_t n = write(journal_fd, lines + done, used - done);
        if (n < 0 && errno != EINTR)
            chaos_die("the journal: %s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    used = 0;
}

const char *chaos_argument(char **argv, const char *name, const char *otherwise) {
    size_t len = strlen(name);
    for (char **one = argv + 1; *one; one++)
        if (strncmp(*one, name, len) == 0 && (*one)[len] == '=')
            return *one + len + 1;
    return otherwise;
}

long long chaos_number(char **argv, const char *name, long long otherwise) {
    const char *value = chaos_argument(argv, name, NULL);
    return value ? atoll(value) : otherwise;
}

void chaos_set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char errstr[256];
    if (rd_kafka_conf_set(conf, name, value, errstr, sizeof errstr) != RD_KAFKA_CONF_OK)
        chaos_die("%s", errstr);
}

rd_kafka_conf_t *chaos_conf(void) {
    const char *bootstrap = getenv("UNSALT_TEST_BOOTSTRAP");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (!bootstrap)
        chaos_die("UNSALT_TEST_BOOTSTRAP is not set: use `make chaos`");
    chaos_set(conf, "bootstrap.servers", bootstrap);
    chaos_set(conf, "reconnect.backoff.max.ms", "1000");
    return conf;
}

int chaos_lane(const char *topic) {
    static const char lane[] = CHAOS_TOPIC ".lane-";
    if (strcmp(topic, CHAOS_TOPIC) == 0)
        return 0;
    return strncmp(topic, lane, sizeof lane - 1) == 0 ? atoi(topic + sizeof lane - 1) : -1;
}

const char *chaos_topic(int lane, char *name, size_t size) {
    if (lane == 0)
        snprintf(name, size, CHAOS_TOPIC);
    else
        snprintf(name, size, CHAOS_TOPIC ".lane-%d", lane);
    return name;
}

uint64_t chaos_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

void chaos_payload(char *payload, size_t len, const struct chaos_name *name) {
    char text[128];
    int n = snprintf(text, sizeof text, "{\"who\":\"%s\",\"number\":%" PRIu64 ",\"run\":%" PRIu64 ",\"x\":\"",
                     name->session, name->number, name->run);
    if ((size_t)n + 2 > len)
        chaos_die("a payload of %zu bytes is too short", len);
    memset(payload, 'x', len);
    memcpy(payload, text, (size_t)n);
    memcpy(payload + len - 2, "\"}", 2);
}

int chaos_parse(const void *payload, size_t len, struct chaos_name *name) {
    char text[128];
    int n;
    if (!payload || len < 2)
        return -1;
    len = len < sizeof text - 1 ? len : sizeof text - 1;
    memcpy(text, payload, len);
    text[len] = '\0';
    n = sscanf(text, "{\"who\":\"%31[^\"]\",\"number\":%" SCNu64 ",\"run\":%" SCNu64 ",", name->session,
               &name->number, &name->run);
    return n == 3 ? 0 : -1;
}
