/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The salt at the end of a record key: `room#3` is lane 3 of `room`, if there is evidence for it. `room#1` and
 * `room#2` may be two unsalted sessions (DESIGN 2), so a suffix is stripped on evidence only.
 */
#ifndef US_CODEC_SALT_H
#define US_CODEC_SALT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pattern such as "#<k>", "#salt_<k>", "_SALT_<k>": a non-empty literal prefix, then the number, at the key's end. */
struct us_salt_pattern {
    char prefix[32];
    uint32_t prefix_len;
};

/*
 * Parses a pattern. Returns true; false if "<k>" is not its end or stands in it twice, or the literal is empty, over
 * 31 bytes, or ends with a digit (the number couldn't be told from it). Then *pattern is untouched.
 */
bool us_salt_pattern_parse(const char *text, struct us_salt_pattern *pattern);

/* What is known about a record that may be evidence for its salt. */
struct us_salt_evidence {
    bool trust;        /* salt.trust: every key that fits the pattern is salted */
    bool has_header;   /* an `unsalt` header was read: lane and lanes are its own */
    uint16_t lane;     /* with has_header */
    uint16_t lanes;    /* with has_header: its lanes; else the configured S, 0 = unknown */
    uint64_t seq;      /* UINT64_MAX: none */
};

/* A key taken apart. */
struct us_salted_key {
    size_t session_len; /* the session id is the first session_len bytes of the key */
    int32_t salt;       /* the number that was stripped; -1: nothing was */
};

/*
 * Splits a key. With a header: stripped if the number equals its lane and lanes > 1. Without: if `lanes` (S) is
 * known and above 1, and the number equals seq mod S. Or, in both cases, if trusted. A number with leading zeros
 * ("#01") or above 65535 is no salt, and a salt that would leave an empty session id is not stripped. Borrows the
 * key. Any thread.
 */
struct us_salted_key us_salt_split(const struct us_salt_pattern *pattern, const void *key, size_t key_len,
                                   const struct us_salt_evidence *evidence);

/*
 * Writes session + salt of lane k to `key`. Returns the length; 0 if it needs more than `size` bytes (nothing
 * useful was written then).
 */
size_t us_salt_join(const struct us_salt_pattern *pattern, const void *session, size_t session_len, uint16_t lane,
                    void *key, size_t size);
#endif
