/* SPDX-License-Identifier: BSD-2-Clause */
/* What the halves of the ledger share. */
#ifndef TESTS_SUPPORT_LEDGER_INNER_H
#define TESTS_SUPPORT_LEDGER_INNER_H
#include <stdio.h>
#include <support/ledger.h>

#define LEDGER_TRACE(ledger, ...)                                                                                     \
    do {                                                                                                              \
        if ((ledger)->trace)                                                                                          \
            fprintf(stderr, __VA_ARGS__);                                                                             \
    } while (0)

/* Notes a record that came back; `pulled`: not from the push that took it. */
bool ledger_take_out(struct ledger *ledger, const unsalt_core_out_t *out, bool pulled);
/* Takes the head off the partition's list. */
void ledger_unlist(struct ledger *ledger, struct ledger_part *part);
/* The lowest offset that is outstanding, after what is acknowledged was taken off; what comes next if none is. */
int64_t ledger_lowest(struct ledger *ledger, struct ledger_part *part);
#endif
