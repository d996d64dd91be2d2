/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a checkpoint is for: the cursors of a core, each restored into a new one, which is then asked by records. Its
 * number comes out, what is done doesn't, and what was given up, or may have been, is late and no copy.
 */
#ifndef TESTS_SUPPORT_CARRY_H
#define TESTS_SUPPORT_CARRY_H
#include <unsalt/core.h>

/*
 * Takes the cursors of `core`, which was made with `params` (its allocator isn't used here), and ends as `kept` says.
 * sets: the tags are below. Returns NULL, or what is wrong; out of memory in `core` is not.
 */
const char *carry_cursors(unsalt_core_t *core, const unsalt_core_params_t *params, uint32_t sets, bool kept);
#endif
