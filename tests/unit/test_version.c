/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <support/check.h>
#include <unsalt/version.h>

TEST(version, library_and_headers_agree) {
    CHECK_I64(unsalt_version(), (UNSALT_VERSION_MAJOR << 16) | (UNSALT_VERSION_MINOR << 8) | UNSALT_VERSION_PATCH);
}

TEST(version, text_and_number_agree) {
    int version = unsalt_version();
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", version >> 16, version >> 8 & 0xff, version & 0xff);
    CHECK_STR(unsalt_version_str(), text);
}
