/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that say what they saw, on top of Criterion. A failed check ends the test at once.
 *
 * Criterion's own typed comparisons leak under AddressSanitizer, and its teardown swallows failures: check in the
 * body of the test, with these.
 */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A test with a time limit of 30 seconds. */
#define TEST(suite, name) Test(suite, name, .timeout = 30)

#define CHECK(condition) cr_assert((condition), "%s:%d: not so: %s", __FILE__, __LINE__, #condition)
/* With a printf text about the case at hand. */
#define CHECK_THAT(condition, ...) cr_assert((condition), __VA_ARGS__)

#define CHECK_U64(is, wanted)                                                                                         \
    do {                                                                                                              \
        uint64_t check_is_ = (uint64_t)(is), check_wanted_ = (uint64_t)(wanted);                                      \
        cr_assert(check_is_ == check_wanted_, "%s:%d: %s is %" PRIu64 ", not %" PRIu64, __FILE__, __LINE__, #is,      \
                  check_is_, check_wanted_);                                                                          \
    } while (0)

#define CHECK_I64(is, wanted)                                                                                         \
    do {                                                                                                              \
        int64_t check_is_ = (int64_t)(is), check_wanted_ = (int64_t)(wanted);                                         \
        cr_assert(check_is_ == check_wanted_, "%s:%d: %s is %" PRId64 ", not %" PRId64, __FILE__, __LINE__, #is,      \
                  check_is_, check_wanted_);                                                                          \
    } while (0)

#define CHECK_STR(is, wanted)                                                                                         \
    do {                                                                                                              \
        const char *check_is_ = (is), *check_wanted_ = (wanted);                                                      \
        cr_assert(check_is_ && strcmp(check_is_, check_wanted_) == 0, "%s:%d: %s is \"%s\", not \"%s\"", __FILE__,    \
                  __LINE__, #is, check_is_ ? check_is_ : "(null)", check_wanted_);                                    \
    } while (0)

/* The same bytes, and as many of them. */
#define CHECK_BYTES(is, is_len, wanted, wanted_len)                                                                   \
    do {                                                                                                              \
        size_t check_len_ = (is_len), check_wanted_len_ = (wanted_len);                                               \
        CHECK_U64(check_len_, check_wanted_len_);                                                                     \
        cr_assert(memcmp((is), (wanted), check_wanted_len_) == 0, "%s:%d: %s has other bytes than %s", __FILE__,      \
                  __LINE__, #is, #wanted);                                                                            \
    } while (0)
#endif
