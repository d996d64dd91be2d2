/* SPDX-License-Identifier: BSD-2-Clause */
#include <unsalt/version.h>

#define TEXT(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

int unsalt_version(void) {
    return (UNSALT_VERSION_MAJOR << 16) | (UNSALT_VERSION_MINOR << 8) | UNSALT_VERSION_PATCH;
}

const char *unsalt_version_str(void) {
    return VERSION_TEXT(UNSALT_VERSION_MAJOR, UNSALT_VERSION_MINOR, UNSALT_VERSION_PATCH);
}
