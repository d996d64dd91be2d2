/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/evidence.h>

void us_evidence_destroy(struct us_evidence *evidence, const struct unsalt_mem *mem) {
    if (!evidence) {
        return;
    }
    us_skips_destroy(&evidence->proven, mem);
    us_away_destroy(&evidence->away, mem);
    us_free(mem, evidence->marks);
    us_free(mem, evidence->parts);
    us_free(mem, evidence->shown);
    us_free(mem, evidence);
}

void us_evidence_forget(struct us_evidence *evidence) {
    if (evidence) {
        evidence->mark_count = evidence->part_count = evidence->away.count = 0;
        evidence->lanes = 0;
    }
}
