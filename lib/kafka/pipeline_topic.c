/* SPDX-License-Identifier: BSD-2-Clause */
#include <kafka/dead_letter_topic.h>
#include <kafka/pipeline.h>

rd_kafka_resp_err_t us_dead_ready(struct unsalt *u) {
    struct unsalt_pipeline *pl = u->pipeline;
    char text[800];
    if (!pl || !pl->dead || pl->dead_ready) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    const struct us_dead_letter_topic topic = {
        .conf = u->asker.conf,
        .key = "pipeline.dead.letter.topic",
        .name = pl->dead_topic,
        .create = u->conf->pipeline_dead_letter_create,
        .create_key = "pipeline.dead.letter.create=true",
    };
    rd_kafka_resp_err_t err = us_dead_letter_topic(&topic, &pl->dead_ready, text, sizeof(text));
    if (text[0]) {
        us_log(u, err ? 3 : 4, "%s", text);
    }
    return err;
}
