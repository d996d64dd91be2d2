/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of the lane topics, taken out of the configuration. */
#include <base/mem.h>
#include <kafka/conf.h>
#include <string.h>

static uint16_t split(char *text, const char **names) {
    uint16_t count = 0;
    for (char *p = text; p; count++) {
        char *comma = strchr(p, ',');
        if (names)
            names[count] = p;
        if (comma && names)
            *comma = '\0';
        p = comma ? comma + 1 : NULL;
    }
    return count;
}

bool us_conf_lanes_init(struct us_conf_lanes *lanes, const struct unsalt_conf *conf) {
    memset(lanes, 0, sizeof *lanes);
    lanes->topics.count = conf->lanes > 1 ? (uint16_t)conf->lanes : 1;
    if (!conf->lane_topics)
        return true;
    size_t size = strlen(conf->lane_topics) + 1;
    lanes->text = us_alloc(&us_mem_default, size);
    if (!lanes->text)
        return false;
    memcpy(lanes->text, conf->lane_topics, size);
    lanes->topics.count = split(lanes->text, NULL);
    lanes->names = us_calloc(&us_mem_default, lanes->topics.count, sizeof *lanes->names);
    if (!lanes->names) {
        us_conf_lanes_destroy(lanes);
        return false;
    }
    split(lanes->text, lanes->names);
    lanes->topics.names = lanes->names;
    return true;
}

void us_conf_lanes_destroy(struct us_conf_lanes *lanes) {
    us_free(&us_mem_default, lanes->names);
    us_free(&us_mem_default, lanes->text);
    memset(lanes, 0, sizeof *lanes);
}
