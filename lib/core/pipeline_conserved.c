/* SPDX-License-Identifier: BSD-2-Clause */
/* The invariants of pipeline.h, counted anew. */
#include <core/pipeline.h>
#include <string.h>

struct count {
    uint64_t state[US_PIPE_STATES];
    struct us_pipe_load waits, turned, halted;
    uint64_t queued, timers, strays;
};

static void add(struct count *count, const struct us_pipe_job *job) {
    struct us_pipe_load *load = !job->turned ? &count->waits
                                : job->session->stand == US_PIPE_STANDS ? &count->halted
                                                                        : &count->turned;
    load->records++;
    load->bytes += job->bytes;
    count->state[job->state]++;
    count->queued += job->state == US_PIPE_QUEUED && !job->parked;
    count->timers += job->timer.index != US_HEAP_OUT;
}

static bool same(const struct us_pipe_load *a, const struct us_pipe_load *b) {
    return a->records == b->records && a->bytes == b->bytes;
}

/* What must be true of one record. */
static bool is_sound(const struct us_pipe_job *job) {
    const struct us_pipe_session *session = job->session;
    const struct us_pipe_job *first = us_pipe_first(session);
    bool acts = job->state == US_PIPE_DELIVERING || job->state == US_PIPE_BURYING;
    bool rests = job->state == US_PIPE_REDELIVERING || job->state == US_PIPE_REBURYING;
    bool waits = rests || job->state == US_PIPE_RETRYING;
    if ((acts || rests || job->state == US_PIPE_HALTED) && job != first) {
        return false;
    }
    if (job == first && (session->stand == US_PIPE_BUSY) != acts) {
        return false;
    }
    if ((session->stand == US_PIPE_READY) != us_link_in(&session->ready)) {
        return false;
    }
    return waits == (job->timer.index != US_HEAP_OUT);
}

static uint64_t length(const struct us_links *list) {
    uint64_t n = 0;
    for (const struct us_link *link = us_links_first(list); link; link = us_links_after(list, link)) {
        n++;
    }
    return n;
}

bool us_pipe_conserved(const struct us_pipe *pipe) {
    struct count count;
    uint64_t sum = 0;
    memset(&count, 0, sizeof(count));
    for (struct us_link *link = us_links_first(&pipe->all); link; link = us_links_after(&pipe->all, link)) {
        const struct us_pipe_job *job = US_LINKED(link, struct us_pipe_job, all);
        count.strays += job->strays;
        if (job->left) {
            continue;
        }
        if (!is_sound(job)) {
            return false;
        }
        add(&count, job);
    }
    for (int i = 0; i < US_PIPE_STATES; i++) {
        sum += pipe->counters.state[i];
        if (count.state[i] != pipe->counters.state[i]) {
            return false;
        }
    }
    for (int i = 0; i < US_PIPE_OUTCOMES; i++) {
        sum += pipe->counters.outcome[i];
    }
    return sum == pipe->counters.entered && same(&count.waits, &pipe->waits) && same(&count.turned, &pipe->turned) &&
           same(&count.halted, &pipe->halted) && count.timers == pipe->timers.count &&
           count.queued == length(&pipe->urgent) + length(&pipe->early) && count.queued == pipe->queued &&
           count.strays == pipe->counters.strays &&
           length(&pipe->standing) == pipe->counters.standing;
}
