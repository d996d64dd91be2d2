/* SPDX-License-Identifier: BSD-2-Clause */
/* Buckets of waiting times. */
#ifndef US_BASE_WAITS_H
#define US_BASE_WAITS_H
#include <stdint.h>

/* The bucket of a time in ns: the first whose upper bound isn't below it. Any thread. */
unsigned us_wait_bucket(uint64_t ns);
#endif
