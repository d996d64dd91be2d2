/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the version of the librdkafka that the dynamic linker found, so that a run can say what it ran on. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>

int main(void) {
    puts(rd_kafka_version_str());
    return 0;
}
