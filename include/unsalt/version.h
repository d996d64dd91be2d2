/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_VERSION_H
#define UNSALT_VERSION_H
/** @file version.h  @brief The version of the headers, and of the library that is loaded. */
#include <unsalt/types.h>

/** Also the number of the SONAME: it changes with what breaks programs. */
#define UNSALT_VERSION_MAJOR 0
/** It changes with what is new. */
#define UNSALT_VERSION_MINOR 1
/** It changes with what was mended. */
#define UNSALT_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif
/** @returns the version of the loaded library as (major << 16) | (minor << 8) | patch. Any thread. */
UNSALT_EXPORT int unsalt_version(void);
/** @returns the same as text, "0.1.0". Static storage. Any thread. */
UNSALT_EXPORT const char *unsalt_version_str(void);
#ifdef __cplusplus
}
#endif
#endif
