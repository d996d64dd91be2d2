/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator for tests: it fails when told to, counts what is alive, fills fresh memory with rubbish, moves at
 * every resize (so that a pointer kept across one is found by the sanitizers) and aborts when it is given a pointer
 * that is not one of its blocks. One thread at a time.
 */
#ifndef TESTS_SUPPORT_FAILMEM_H
#define TESTS_SUPPORT_FAILMEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unsalt/types.h>

struct failmem {
    struct unsalt_mem mem; /* pass this one on; its user is the failmem, which must not move */
    uint64_t calls;        /* alloc and resize, failed ones included */
    uint64_t fail_at;      /* number of the call that fails, counted from 1; 0 = none */
    bool fail_after;       /* every call behind fail_at fails too */
    uint64_t failed;       /* calls that failed */
    uint64_t blocks;       /* alive */
    size_t bytes, peak;    /* alive, and the most that were */
};

void failmem_init(struct failmem *fail);
/* Lets the nth call from now on fail: 1 = the next one; 0 = none. With `after` all behind it fail too. */
void failmem_arm(struct failmem *fail, uint64_t nth, bool after);
/* Is nothing alive? Says to stderr what is, if not. */
bool failmem_is_balanced(const struct failmem *fail);
#endif
