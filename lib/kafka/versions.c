/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/versions.h>

struct us_versions us_versions(int version) {
    int64_t v = (uint32_t)version;
    struct us_versions versions;
#define X(field, first, end, issue, why) versions.field = (first) <= v && v < (end);
    US_VERSIONS(X)
#undef X
    return versions;
}
