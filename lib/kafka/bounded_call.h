/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call of librdkafka that may not come back, as a rule because a broker is away, is made by a thread of its own, so
 * that it can be left: its caller goes on without it, and what it works with belongs to that thread from then on.
 */
#ifndef US_KAFKA_BOUNDED_CALL_H
#define US_KAFKA_BOUNDED_CALL_H

/* All are given `arg`. */
struct us_bounded_call {
    void (*call)(void *arg);  /* by the thread */
    void (*leave)(void *arg); /* by the caller, who leaves it, while it may still go on; short. NULL: not needed */
    void (*drop)(void *arg);  /* by the thread, when a call that was left has come back. NULL: not needed */
    void *arg;
};

enum us_bounded {
    US_BOUNDED_BACK,    /* the call was made and has come back; `arg` is the caller's */
    US_BOUNDED_LEFT,    /* it hasn't: `arg` isn't the caller's any more */
    US_BOUNDED_NOT_MADE /* no memory, or no thread: nothing was done; `arg` is the caller's */
};

/* Waits for it up to timeout_ms, >= 0. Any thread but librdkafka's own. */
enum us_bounded us_bounded_call(const struct us_bounded_call *what, int timeout_ms);
#endif
