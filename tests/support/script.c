/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/script.h>

enum { PARTS = 64, SESSIONS = 64, OPEN_MAX = 64 };

/* What stands in one partition for one session and was not read yet. */
struct log {
    unsalt_core_in_t *v;
    size_t n, cap, read;
};

/* A number whose fate the producer doesn't know yet: acknowledged, or abandoned, after so many more records. */
struct open {
    unsalt_core_in_t in;
    unsigned left;
    bool lost;
};

struct producer {
    uint64_t seq, epoch, since;
    uint64_t made; /* records of this epoch */
    unsigned lanes;
    bool done; /* the numbers are used up */
    struct log logs[PARTS];
    unsalt_core_in_t later[8]; /* to be sent (again) */
    unsigned later_n;
    struct open open[OPEN_MAX];
    unsigned open_n;
};

struct world {
    const struct script_conf *conf;
    struct prng *prng;
    struct script *script;
    size_t cap;
    struct producer producers[SESSIONS];
};

static struct script_op *add(struct world *world, enum script_kind kind, uint32_t part, uint64_t value) {
    struct script *script = world->script;
    if (script->n == world->cap) {
        world->cap = world->cap ? 2 * world->cap : 256;
        script->ops = realloc(script->ops, world->cap * sizeof(*script->ops));
        if (!script->ops)
            abort();
    }
    struct script_op *op = &script->ops[script->n++];
    *op = (struct script_op){.kind = kind, .part = part, .value = value};
    return op;
}

static void log_add(struct log *log, const unsalt_core_in_t *in) {
    if (log->n == log->cap) {
        log->cap = log->cap ? 2 * log->cap : 32;
        log->v = realloc(log->v, log->cap * sizeof(*log->v));
        if (!log->v)
            abort();
    }
    log->v[log->n++] = *in;
}

/* ---- producing */

/* The lowest number that is unresolved while `seq` is being stamped. */
static uint64_t una(const struct producer *producer, uint64_t seq) {
    uint64_t lowest = seq;
    for (unsigned i = 0; i < producer->open_n; i++)
        if (producer->open[i].in.seq < lowest)
            lowest = producer->open[i].in.seq;
    for (unsigned i = 0; i < producer->later_n; i++)
        if (producer->later[i].seq < lowest)
            lowest = producer->later[i].seq;
    return lowest;
}

static void mark(struct world *world, struct producer *producer, const struct open *open) {
    unsalt_core_in_t in = open->in;
    if (!open->lost || !prng_chance(world->prng, world->conf->marker))
        return;
    in.kind = UNSALT_KIND_CONTROL;
    in.flags = UNSALT_F_MARKER;
    in.since = in.seq;
    in.una = una(producer, producer->seq);
    log_add(&producer->logs[in.part], &in);
}

/* Time goes on for what is in flight. */
static void resolve(struct world *world, struct producer *producer) {
    for (unsigned i = 0; i < producer->open_n;) {
        struct open open = producer->open[i];
        if (open.left > 0) {
            producer->open[i++].left--;
            continue;
        }
        producer->open[i] = producer->open[--producer->open_n];
        mark(world, producer, &open);
    }
}

static void open_number(struct world *world, struct producer *producer, const unsalt_core_in_t *in, bool lost) {
    if (producer->open_n == OPEN_MAX || !world->conf->una)
        return;
    unsigned left = (unsigned)prng_below(world->prng, lost ? 20 : 6);
    producer->open[producer->open_n++] = (struct open){.in = *in, .left = left, .lost = lost};
}

static void stamp(struct world *world, struct producer *producer, uint32_t set, unsalt_core_in_t *in) {
    const struct script_conf *conf = world->conf;
    *in = (unsalt_core_in_t){.seq = producer->seq,
                             .epoch = producer->epoch,
                             .since = UNSALT_NO_SEQ,
                             .una = UNSALT_NO_SEQ,
                             .bytes = (uint32_t)prng_between(world->prng, 1, 400)};
    uint32_t where = (uint32_t)prng_below(world->prng, conf->parts);
    if (conf->lanes) {
        uint32_t lane = (uint32_t)(producer->seq % producer->lanes);
        where = lane % conf->parts;
        if (!conf->hide_lanes) {
            in->lane = (uint16_t)lane;
            in->lanes = (uint16_t)producer->lanes;
            in->since = producer->since;
            in->una = conf->una ? una(producer, producer->seq) : UNSALT_NO_SEQ;
        }
    }
    in->part = set * conf->parts + where;
}

static void restart(struct world *world, struct producer *producer) {
    producer->epoch++;
    producer->seq = world->conf->seq_first;
    producer->since = producer->seq;
    producer->made = 0;
    producer->later_n = producer->open_n = 0;
    producer->done = false;
}

/* Now and then a run of its own: a far jump, a higher epoch, another number of lanes. */
static void turn(struct world *world, struct producer *producer) {
    const struct script_conf *conf = world->conf;
    uint64_t left = UINT64_MAX - 1 - producer->seq;
    if (prng_below(world->prng, 1000) < conf->jump && left > 10) {
        uint64_t width = (uint64_t)1 << prng_below(world->prng, 60);
        producer->seq += prng_between(world->prng, 1, width < left ? width : left);
    }
    if (conf->resize && conf->lanes && prng_below(world->prng, 1000) < conf->resize) {
        producer->lanes = (unsigned)prng_between(world->prng, 1, conf->lanes);
        producer->since = producer->seq;
    }
    if (prng_below(world->prng, 1000) < conf->epoch && producer->made > 4 * conf->parts)
        restart(world, producer);
}

static void produce(struct world *world, uint32_t session) {
    const struct script_conf *conf = world->conf;
    struct producer *producer = &world->producers[session];
    unsalt_core_in_t in;
    resolve(world, producer);
    turn(world, producer);
    if (producer->later_n && prng_chance(world->prng, 20)) {
        in = producer->later[producer->later_n - 1];
        in.una = in.una == UNSALT_NO_SEQ ? in.una : una(producer, in.seq);
        producer->later_n--;
        log_add(&producer->logs[in.part], &in);
    }
    if (producer->done)
        return;
    stamp(world, producer, session % conf->sets, &in);
    bool later = prng_chance(world->prng, conf->again) && producer->later_n < 8;
    bool lost = prng_chance(world->prng, conf->loss);
    if (later)
        producer->later[producer->later_n++] = in;
    else
        open_number(world, producer, &in, lost);
    if (!lost)
        log_add(&producer->logs[in.part], &in);
    if (!lost && prng_chance(world->prng, conf->twice))
        log_add(&producer->logs[in.part], &in);
    producer->made++;
    producer->done = producer->seq == UINT64_MAX - 1;
    producer->seq += !producer->done;
}

/* ---- reading */

static void odd_record(struct world *world, uint32_t part) {
    static const uint16_t kinds[] = {UNSALT_KIND_UNSEQUENCED, UNSALT_KIND_CONTROL, UNSALT_KIND_SEQUENCED,
                                     UNSALT_KIND_MALFORMED};
    struct script_op *op = add(world, OP_RECORD, part, prng_between(world->prng, 1, 3));
    op->session = (uint32_t)prng_below(world->prng, world->conf->sessions / world->conf->sets) * world->conf->sets +
                  part / world->conf->parts;
    op->in = (unsalt_core_in_t){.part = part,
                                .kind = kinds[prng_below(world->prng, 4)],
                                .seq = world->conf->seq_first ? world->conf->seq_first - 1 : UNSALT_NO_SEQ,
                                .since = UNSALT_NO_SEQ,
                                .una = UNSALT_NO_SEQ,
                                .bytes = 1};
    op->joined = prng_chance(world->prng, 50);
}

static void read_stretch(struct world *world) {
    const struct script_conf *conf = world->conf;
    uint32_t session = (uint32_t)prng_below(world->prng, conf->sessions);
    struct producer *producer = &world->producers[session];
    uint32_t set = session % conf->sets;
    uint32_t part = set * conf->parts + (uint32_t)prng_below(world->prng, conf->parts);
    if (prng_chance(world->prng, conf->odd))
        odd_record(world, part);
    size_t unread = 0;
    for (uint32_t i = set * conf->parts; i < (set + 1) * conf->parts; i++)
        unread += producer->logs[i].n - producer->logs[i].read;
    for (size_t i = unread; i < conf->ahead; i++)
        produce(world, session);
    struct log *log = &producer->logs[part];
    size_t burst = prng_between(world->prng, 1, conf->burst);
    while (burst-- && log->read < log->n) {
        uint64_t jump = prng_chance(world->prng, 5) ? (uint64_t)1 << prng_below(world->prng, 30) : 1;
        struct script_op *op = add(world, OP_RECORD, part, jump);
        op->session = session;
        op->in = log->v[log->read++];
        op->joined = prng_chance(world->prng, 80);
    }
}

/* ---- everything else that happens */

static void happen(struct world *world) {
    const struct script_conf *conf = world->conf;
    struct prng *prng = world->prng;
    uint32_t part = (uint32_t)prng_below(prng, conf->sets * conf->parts);
    if (prng_chance(prng, conf->advance))
        add(world, OP_ADVANCE, 0, prng_between(prng, 1, conf->advance_max));
    if (prng_chance(prng, conf->horizon))
        add(world, OP_HORIZON, part, prng_chance(prng, 50) ? 0 : prng_below(prng, 2 * conf->advance_max));
    if (prng_chance(prng, conf->question))
        add(world, OP_QUESTIONS, 0, 0);
    if (prng_chance(prng, 2 * conf->question))
        add(world, prng_chance(prng, 10) ? OP_FAIL : OP_ANSWER, part, prng_below(prng, 4));
    if (prng_chance(prng, conf->eof))
        add(world, OP_EOF, part, prng_below(prng, 3));
    if (prng_chance(prng, conf->ack))
        for (uint64_t n = prng_below(prng, 20); n; n--)
            add(world, OP_ACK, part, prng_next(prng));
    if (prng_chance(prng, conf->pull))
        add(world, OP_PULL, 0, prng_chance(prng, 20) ? 1000 : prng_between(prng, 1, 9));
    if (prng_below(prng, 1000) < conf->flush)
        add(world, OP_FLUSH, 0, 0);
    if (prng_below(prng, 1000) < conf->pause)
        add(world, OP_PAUSE, part, prng_below(prng, 2));
    if (prng_below(prng, 1000) < conf->pause)
        add(world, OP_READING, part, prng_below(prng, 2));
    if (prng_below(prng, 1000) < conf->revoke)
        add(world, prng_chance(prng, 40) ? OP_REVOKE : OP_ASSIGN, part, 0);
}

static void begin(struct world *world) {
    const struct script_conf *conf = world->conf;
    for (uint32_t i = 0; i < conf->sessions; i++) {
        struct producer *producer = &world->producers[i];
        producer->seq = producer->since = conf->seq_first;
        producer->lanes = conf->lanes;
        for (unsigned n = 0; conf->trim && n < 3 * conf->trim; n++)
            produce(world, i);
        for (uint32_t part = 0; conf->trim && part < conf->sets * conf->parts; part++) {
            struct log *log = &producer->logs[part];
            size_t trim = prng_below(world->prng, conf->trim);
            log->read = trim < log->n ? trim : log->n;
        }
    }
}

void script_make(struct script *script, const struct script_conf *conf, struct prng *prng) {
    struct world *world = calloc(1, sizeof(*world));
    if (!world)
        abort();
    *script = (struct script){0};
    world->conf = conf;
    world->prng = prng;
    world->script = script;
    begin(world);
    for (unsigned i = 0; i < conf->steps && !prng_is_over(prng); i++) {
        read_stretch(world);
        happen(world);
    }
    for (int i = 0; i < SESSIONS; i++)
        for (int part = 0; part < PARTS; part++)
            free(world->producers[i].logs[part].v);
    free(world);
}

void script_free(struct script *script) {
    free(script->ops);
    *script = (struct script){0};
}

void script_without(struct script *less, const struct script *script, size_t first, size_t n) {
    less->ops = malloc((script->n + 1) * sizeof(*less->ops));
    if (!less->ops)
        abort();
    less->n = script->n - n;
    if (first)
        memcpy(less->ops, script->ops, first * sizeof(*less->ops));
    if (script->n - first - n)
        memcpy(less->ops + first, script->ops + first + n, (script->n - first - n) * sizeof(*less->ops));
}

void script_print(const struct script *script) {
    static const char *const names[] = {"record", "advance", "pull",  "horizon", "questions", "answer", "fail",
                                        "eof",    "ack",     "flush", "pause",   "reading",   "revoke", "assign"};
    fprintf(stderr, "script of %zu operations\n", script->n);
    for (size_t i = 0; i < script->n && i < 200; i++) {
        const struct script_op *op = &script->ops[i];
        fprintf(stderr, "%4zu %-9s part %u", i, names[op->kind], op->part);
        if (op->kind != OP_RECORD)
            fprintf(stderr, " value %" PRIu64 "\n", op->value);
        else
            fprintf(stderr,
                    " s%u seq %" PRIu64 " epoch %" PRIu64 " lane %u/%u since %" PRIu64 " una %" PRIu64
                    " kind %u offset +%" PRIu64
                    "%s\n",
                    op->session, op->in.seq, op->in.epoch, op->in.lane, op->in.lanes, op->in.since, op->in.una,
                    op->in.kind,
                    op->value, op->joined ? " joined" : "");
    }
}
