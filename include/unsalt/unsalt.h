/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNSALT_H
#define UNSALT_H
/**
 * @file unsalt.h
 * @brief unsalt gives back the order of a Kafka key that was spread ("salted") over several partitions.
 *
 * The one header to include. Replacing rd_kafka_consumer_poll() takes three calls: rd_kafka_new() becomes
 * unsalt_new(), rd_kafka_consumer_poll() becomes unsalt_consumer_poll(), close and destroy likewise.
 */
#include <unsalt/checkpoint.h>
#include <unsalt/conf.h>
#include <unsalt/consumer.h>
#include <unsalt/event.h>
#include <unsalt/pipeline.h>
#include <unsalt/producer.h>
#include <unsalt/relay.h>
#include <unsalt/stats.h>
#include <unsalt/types.h>
#include <unsalt/version.h>
#include <unsalt/wire.h>
#endif
