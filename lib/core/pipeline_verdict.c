/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/pipeline.h>

enum us_pipe_verdict us_pipe_judge(enum us_pipe_res res, uint32_t attempts, uint32_t retries) {
    if (res == US_PIPE_OK) {
        return US_PIPE_DONE;
    }
    return res == US_PIPE_FAIL || attempts > retries ? US_PIPE_GIVE_UP : US_PIPE_AGAIN;
}

enum us_pipe_reason us_pipe_reason_of(enum us_pipe_res res) {
    if (res == US_PIPE_LATE) {
        return US_PIPE_TIMEOUT;
    }
    return res == US_PIPE_FAIL ? US_PIPE_REFUSED : US_PIPE_EXHAUSTED;
}

uint64_t us_pipe_backoff(uint64_t base, uint64_t max, uint32_t failures, uint64_t random) {
    uint64_t whole = base < max ? base : max;
    for (uint32_t i = 1; i < failures && whole < max; i++) {
        whole = whole > max / 2 ? max : 2 * whole;
    }
    uint64_t half = whole / 2;
    return whole - (half > 0 ? random % (half + 1) : 0);
}
