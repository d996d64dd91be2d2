/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the demo runs: librdkafka's mock cluster inside this process, or a real one. */
#ifndef DEMO_CLUSTER_H
#define DEMO_CLUSTER_H
#include "demo.h"

struct cluster;

/*
 * Starts the mock cluster, or connects to `bootstrap` if that is not empty, and creates the topic of the demo under a
 * name of its own. Fills demo->bootstrap and demo->topic. Returns NULL after saying why.
 */
struct cluster *cluster_open(struct demo *demo, const char *bootstrap);
/* Deletes the topic on a real cluster; ends the mock cluster. */
void cluster_close(struct cluster *cluster);
#endif
