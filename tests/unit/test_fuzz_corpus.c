/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kept inputs of every fuzz target (tests/fuzz/corpus), and mutations of them, under whatever compiler and
 * sanitizer the tests run. A target that finds something aborts; the input's name is the last line before that.
 */
#include <dirent.h>
#include <fuzz/fuzz.h>
#include <support/check.h>
#include <support/drive.h>

enum { INPUT_MAX = 8192, FILES_MAX = 1000, MUTATIONS = 20 };

struct input {
    uint8_t bytes[INPUT_MAX];
    size_t size;
};

static void read_input(const char *path, struct input *input) {
    FILE *file = fopen(path, "rb");
    CHECK_THAT(file, "%s can't be read", path);
    input->size = fread(input->bytes, 1, INPUT_MAX, file);
    fclose(file);
}

/* A copy of its own, so that a step beyond its end is a step out of the block. */
static void play(fuzz_target_t *target, const struct input *input, const char *name, uint64_t mutation) {
    uint8_t *copy = malloc(input->size ? input->size : 1);
    CHECK(copy);
    memcpy(copy, input->bytes, input->size);
    fprintf(stderr, "%s, mutation %" PRIu64 "\n", name, mutation);
    target(copy, input->size);
    free(copy);
}

/* Bytes are changed, moved, repeated, cut off: what a fuzzer does, a little of it. */
static void mutate(struct prng *prng, struct input *input) {
    for (uint64_t n = prng_between(prng, 1, 6); n && input->size; n--) {
        size_t at = prng_below(prng, input->size), len = prng_between(prng, 1, input->size - at);
        switch (prng_below(prng, 4)) {
        case 0:
            input->bytes[at] = (uint8_t)prng_next(prng);
            break;
        case 1:
            memmove(input->bytes + prng_below(prng, INPUT_MAX - len), input->bytes + at, len);
            break;
        case 2:
            input->size = at + 1;
            break;
        default:
            input->bytes[at] ^= (uint8_t)(1 << prng_below(prng, 8));
        }
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of the files, sorted. */
static size_t list(const char *folder, char **names) {
    size_t n = 0;
    DIR *dir = opendir(folder);
    CHECK_THAT(dir, "no folder %s: run from the root of the project", folder);
    for (struct dirent *entry; (entry = readdir(dir)) && n < FILES_MAX;)
        if (entry->d_name[0] != '.')
            names[n++] = strdup(entry->d_name);
    closedir(dir);
    qsort(names, n, sizeof *names, by_name);
    return n;
}

static void corpus(fuzz_target_t *target, const char *name) {
    static struct input input;
    char folder[128], path[512], *names[FILES_MAX];
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name);
    size_t files = list(folder, names);
    CHECK_THAT(files > 0, "no input in %s", folder);
    for (size_t i = 0; i < files; i++) {
        struct prng prng = prng_start(100000 + i);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        read_input(path, &input);
        play(target, &input, path, 0);
        for (unsigned m = 1; m <= drive_cases(MUTATIONS); m++) {
            mutate(&prng, &input);
            play(target, &input, path, m);
        }
        free(names[i]);
    }
}

/* Bytes of no origin. */
static void rubbish(fuzz_target_t *target) {
    static struct input input;
    struct prng prng = prng_start(99999);
    for (unsigned i = 0; i < drive_cases(100); i++) {
        input.size = prng_below(&prng, 300);
        for (size_t at = 0; at < input.size; at++)
            input.bytes[at] = (uint8_t)prng_next(&prng);
        play(target, &input, "rubbish", i);
    }
}

#define X(name)                     \
    TEST(fuzz_corpus, name) {       \
        corpus(fuzz_##name, #name); \
        rubbish(fuzz_##name);       \
    }
FUZZ_TARGETS(X)
#undef X
