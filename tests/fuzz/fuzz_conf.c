/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration strings: a list of settings, one a line. A line is a byte that picks a key (or 0xff: the name follows,
 * up to a '='), a byte that picks the room of the error text, and the value. Every set is judged by a reader of its
 * own; at the end the whole configuration is checked, and one that passes must make a core.
 */
#include <fuzz/fuzz.h>
#include <kafka/conf.h>
#include <kafka/conf_table.h>

enum { TEXT_MAX = 70000, ROOM_MAX = 255 };

static char before[TEXT_MAX], after[TEXT_MAX];

static size_t get(const unsalt_conf_t *conf, const char *name, char *text) {
    size_t size = TEXT_MAX;
    FUZZ_CHECK(unsalt_conf_get(conf, name, text, &size) == UNSALT_CONF_OK, "key %s", name);
    FUZZ_CHECK(size == strlen(text) + 1, "key %s says %zu bytes, has %zu", name, size, strlen(text));
    return size - 1;
}

/* A whole number as decimal text, with a sign or without. */
static bool whole(const char *text, __int128 *number) {
    const char *digits = text + (*text == '-');
    size_t n = strlen(digits);
    *number = 0;
    if (n < 1 || n > 20 || strspn(digits, "0123456789") != n)
        return false;
    for (size_t i = 0; i < n; i++)
        *number = *number * 10 + (digits[i] - '0');
    if (*text == '-')
        *number = -*number;
    return true;
}

static bool one_of(const char *list, const char *value) {
    char padded[256], entry[256];
    if (!*value || strchr(value, '|') || strlen(value) > 100)
        return false;
    snprintf(padded, sizeof padded, "|%s|", list);
    snprintf(entry, sizeof entry, "|%s|", value);
    return strstr(padded, entry) != NULL;
}

/* What the key's text becomes, if the value is allowed. The texts of lists and patterns are judged elsewhere. */
static bool number_allowed(const struct us_key *key, const char *value, char *canonical, size_t size) {
    __int128 number;
    bool never = key->type == US_KEY_MS && key->min == -1 && (!strcmp(value, "off") || !strcmp(value, "-1"));
    if (key->type == US_KEY_ENUM) {
        snprintf(canonical, size, "%s", value);
        return one_of(key->allowed, value);
    }
    if (key->type == US_KEY_BOOL) {
        snprintf(canonical, size, "%s", !strcmp(value, "1") || !strcmp(value, "true") ? "true" : "false");
        return one_of("true|false|1|0", value);
    }
    if (!never && !whole(value, &number))
        return false;
    if (never)
        number = -1;
    if (key->type == US_KEY_U64) {
        snprintf(canonical, size, "%" PRIu64, (uint64_t)number);
        return *value != '-' && number < UINT64_MAX;
    }
    snprintf(canonical, size, "%" PRId64, (int64_t)number);
    return number >= key->min && number <= key->max;
}

/* A place in JSON that begins with '/' is a pointer: up to 16 steps, and a ~ only before 0 or 1. */
static bool place_allowed(const char *value) {
    unsigned steps = 0;
    if (*value != '/')
        return true;
    for (; *value; value++) {
        steps += *value == '/';
        if (*value == '~' && value[1] != '0' && value[1] != '1')
            return false;
    }
    return steps <= 16;
}

static bool is_place(const struct us_key *key) {
    return !strcmp(key->name, "seq.json") || !strcmp(key->name, "session.json");
}

static void check_text(const struct us_key *key, const char *value, unsalt_conf_res_t result) {
    size_t n = strlen(value);
    bool fits = n >= (size_t)key->min && n <= (size_t)key->max && (!is_place(key) || place_allowed(value));
    FUZZ_CHECK(result != UNSALT_CONF_OK || fits, "%s takes %zu bytes", key->name, n);
    bool any = key->type == US_KEY_STRING && strcmp(key->name, "salt.pattern") != 0;
    FUZZ_CHECK(!any || fits == (result == UNSALT_CONF_OK), "%s: %zu bytes, result %d", key->name, n, (int)result);
}

/* The error text ends within its room; with enough of it, it names key and value. */
static void check_errstr(const struct us_key *key, const char *name, const char *value, const char *errstr,
                         size_t room) {
    char shown[80];
    if (room == 0)
        return;
    FUZZ_CHECK(memchr(errstr, 0, room), "the error text has no end");
    FUZZ_CHECK(room < 2 || *errstr, "no error text");
    if (room < ROOM_MAX)
        return;
    snprintf(shown, sizeof shown, "%.64s", name);
    FUZZ_CHECK(strstr(errstr, shown), "no name in: %s", errstr);
    snprintf(shown, sizeof shown, "%.64s", value);
    FUZZ_CHECK(!key || strstr(errstr, shown), "no value in: %s", errstr);
}

static void check_set(unsalt_conf_t *conf, const struct us_key *key, const char *value, unsalt_conf_res_t result) {
    char canonical[80] = "";
    get(conf, key->name, after);
    if (us_key_is_text(key)) {
        check_text(key, value, result);
        FUZZ_CHECK(strcmp(after, result == UNSALT_CONF_OK ? value : before) == 0, "%s is now \"%s\"", key->name, after);
    } else {
        bool allowed = number_allowed(key, value, canonical, sizeof canonical);
        FUZZ_CHECK(allowed == (result == UNSALT_CONF_OK), "%s=\"%s\": result %d", key->name, value, (int)result);
        FUZZ_CHECK(strcmp(after, allowed ? canonical : before) == 0, "%s=\"%s\" is now \"%s\"", key->name, value,
                   after);
    }
    FUZZ_CHECK(unsalt_conf_set(conf, key->name, after, NULL, 0) == UNSALT_CONF_OK, "%s does not take its own \"%s\"",
               key->name, after);
    get(conf, key->name, before);
    FUZZ_CHECK(strcmp(before, after) == 0, "%s: \"%s\" became \"%s\"", key->name, after, before);
}

/* One line, terminated. */
static void set(unsalt_conf_t *conf, char *line, size_t len) {
    unsigned char pick = (unsigned char)line[0];
    size_t room = (unsigned char)line[1];
    const struct us_key *key = NULL;
    const char *name = "", *value = "";
    if (pick == 0xff && len > 2) {
        char *equals = strchr(line + 2, '=');
        name = line + 2;
        value = equals ? equals + 1 : NULL;
        if (equals)
            *equals = '\0';
        key = us_key_find(name);
    } else {
        key = &us_keys[pick % us_keys_count];
        name = key->name;
        value = line + 2;
    }
    char *errstr = malloc(room ? room : 1);
    FUZZ_CHECK(errstr, "out of memory");
    memset(errstr, 'x', room ? room : 1);
    if (key)
        get(conf, name, before);
    unsalt_conf_res_t result = unsalt_conf_set(conf, name, value, room ? errstr : NULL, room);
    FUZZ_CHECK((result == UNSALT_CONF_UNKNOWN) == !key, "%s: result %d", name, (int)result);
    if (result != UNSALT_CONF_OK)
        check_errstr(key, name, value ? value : "", errstr, room);
    if (key)
        check_set(conf, key, value ? value : key->fallback, result);
    free(errstr);
}

static void check_dup(const unsalt_conf_t *conf) {
    unsalt_conf_t *dup = unsalt_conf_dup(conf);
    FUZZ_CHECK(dup, "out of memory");
    for (size_t i = 0; i < us_keys_count; i++) {
        get(conf, us_keys[i].name, before);
        get(dup, us_keys[i].name, after);
        FUZZ_CHECK(strcmp(before, after) == 0, "%s: the copy has \"%s\", not \"%s\"", us_keys[i].name, after, before);
    }
    unsalt_conf_destroy(dup);
}

static void check_whole(const unsalt_conf_t *conf) {
    char errstr[256] = "";
    unsalt_core_params_t params;
    struct us_conf_lanes lanes;
    FUZZ_CHECK(us_conf_check_producer(conf, errstr, sizeof errstr) || *errstr, "refused without a word");
    *errstr = '\0';
    bool fits = us_conf_check_consumer(conf, errstr, sizeof errstr);
    FUZZ_CHECK(fits || *errstr, "refused without a word");
    FUZZ_CHECK(us_conf_lanes_init(&lanes, conf), "out of memory");
    FUZZ_CHECK(lanes.topics.count >= 1, "no lane");
    us_conf_lanes_destroy(&lanes);
    if (!fits)
        return;
    unsalt_core_params_init(&params);
    us_conf_core_params(conf, &params);
    unsalt_core_t *core = unsalt_core_new(&params, errstr, sizeof errstr);
    FUZZ_CHECK(core, "a configuration that passes makes no core: %s", errstr);
    unsalt_core_destroy(core);
}

FUZZ(conf) {
    unsalt_conf_t *conf = unsalt_conf_new();
    FUZZ_CHECK(conf, "out of memory");
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t len = end ? (size_t)(end - data) - at : size - at;
        char *line = calloc(1, len + 3);
        FUZZ_CHECK(line, "out of memory");
        memcpy(line, data + at, len);
        set(conf, line, len);
        free(line);
        at += len + 1;
    }
    check_dup(conf);
    check_whole(conf);
    unsalt_conf_destroy(conf);
    return 0;
}
