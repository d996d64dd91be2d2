/* SPDX-License-Identifier: BSD-2-Clause */
/* The only source of chance of the library: the kernel's. */
#ifndef US_KAFKA_CHANCE_H
#define US_KAFKA_CHANCE_H
#include <stdint.h>

/*
 * 64 bits that nobody outside can guess: seeds of hashes, so that senders can't choose ids that collide, and parts of
 * names that no other process has. Never waits: as long as the kernel has none (early at boot), or where the call is
 * forbidden, a mix of clock, process and address, another one for each call, which is a worse guess, but one. Any
 * thread.
 */
uint64_t us_chance(void);
#endif
