/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target is a function of some bytes that aborts when something is wrong. Each stands in a file of its own,
 * fuzz_NAME.c, and is called in two ways: by libFuzzer (CONFIG=fuzz), and by tests/unit/test_fuzz_corpus.c, which plays
 * the inputs kept in corpus/NAME and some mutations of them under any compiler.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int fuzz_target_t(const uint8_t *data, size_t size);

/* X(name): every target. The bytes are borrowed for the call; the result is always 0. */
#define FUZZ_TARGETS(X) X(core) X(hostile) X(codec) X(checkpoint) X(json) X(extract) X(conf) X(gap)
#define X(name) fuzz_target_t fuzz_##name;
FUZZ_TARGETS(X)
#undef X

/* Begins the definition of a target. */
#ifdef UNSALT_FUZZ
#define FUZZ(name)                                                                                                    \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                                     \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {                                                    \
        return fuzz_##name(data, size);                                                                               \
    }                                                                                                                 \
    int fuzz_##name(const uint8_t *data, size_t size)
#else
#define FUZZ(name) int fuzz_##name(const uint8_t *data, size_t size)
#endif

/* Says what is wrong and aborts. */
#define FUZZ_CHECK(condition, ...)                                                                                    \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition);                                   \
            fprintf(stderr, __VA_ARGS__);                                                                             \
            fputc('\n', stderr);                                                                                      \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)

#endif
