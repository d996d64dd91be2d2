/* SPDX-License-Identifier: BSD-2-Clause */
/* Owning, setting and reading the configuration. Invariant: every field holds an allowed value at all times. */
#include <base/mem.h>
#include <kafka/conf.h>
#include <kafka/conf_table.h>
#include <string.h>

/* So much of a value is repeated in an error text. */
#define SHOWN_MAX 64

static void *field_of(struct unsalt_conf *conf, const struct us_key *key) {
    return (char *)conf + key->offset;
}

static int64_t *number_of(struct unsalt_conf *conf, const struct us_key *key) {
    return field_of(conf, key);
}

static char **text_of(struct unsalt_conf *conf, const struct us_key *key) {
    return field_of(conf, key);
}

/* A copy of the text; an empty list is NULL. Returns false when out of memory. */
static bool copy_text(const struct us_key *key, const char *value, char **copy) {
    size_t size = strlen(value) + 1;
    *copy = NULL;
    if (key->type == US_KEY_LIST && size == 1)
        return true;
    *copy = us_alloc(&us_mem_default, size);
    if (*copy)
        memcpy(*copy, value, size);
    return *copy != NULL;
}

/* `value` is allowed. Returns false when out of memory: nothing changed. */
static bool store(struct unsalt_conf *conf, const struct us_key *key, const char *value) {
    char *copy;
    if (!us_key_is_text(key))
        return us_key_read(key, value, number_of(conf, key));
    if (!copy_text(key, value, &copy))
        return false;
    us_free(&us_mem_default, *text_of(conf, key));
    *text_of(conf, key) = copy;
    return true;
}

unsalt_conf_t *unsalt_conf_new(void) {
    struct unsalt_conf *conf = us_calloc(&us_mem_default, 1, sizeof *conf);
    for (size_t i = 0; conf && i < us_keys_count; i++) {
        if (!store(conf, &us_keys[i], us_keys[i].fallback)) {
            unsalt_conf_destroy(conf);
            conf = NULL;
        }
    }
    return conf;
}

unsalt_conf_t *unsalt_conf_dup(const unsalt_conf_t *conf) {
    struct unsalt_conf *dup = us_calloc(&us_mem_default, 1, sizeof *dup);
    bool complete = dup != NULL;
    if (!dup)
        return NULL;
    *dup = *conf;
    /* Every text is set, so that destroying a half-made copy frees no text of the original. */
    for (size_t i = 0; i < us_keys_count; i++) {
        const struct us_key *key = &us_keys[i];
        if (!us_key_is_text(key))
            continue;
        const char *value = *text_of(dup, key);
        if (!copy_text(key, value ? value : "", text_of(dup, key)))
            complete = false;
    }
    if (!complete) {
        unsalt_conf_destroy(dup);
        return NULL;
    }
    return dup;
}

void unsalt_conf_destroy(unsalt_conf_t *conf) {
    if (!conf)
        return;
    for (size_t i = 0; i < us_keys_count; i++)
        if (us_key_is_text(&us_keys[i]))
            us_free(&us_mem_default, *text_of(conf, &us_keys[i]));
    us_free(&us_mem_default, conf);
}

static unsalt_conf_res_t unknown(const char *name, char *errstr, size_t size) {
    const char *nearest = us_key_nearest(name);
    if (nearest)
        snprintf(errstr, size, "no configuration key \"%.*s\"; did you mean \"%s\"?", SHOWN_MAX, name, nearest);
    else
        snprintf(errstr, size, "no configuration key \"%.*s\"", SHOWN_MAX, name);
    return UNSALT_CONF_UNKNOWN;
}

static unsalt_conf_res_t invalid(const struct us_key *key, const char *value, char *errstr, size_t size) {
    char allowed[160];
    us_key_allowed(key, allowed, sizeof allowed);
    snprintf(errstr, size, "%s=\"%.*s\"%s is not allowed: %s", key->name, SHOWN_MAX, value,
             strlen(value) > SHOWN_MAX ? "..." : "", allowed);
    return UNSALT_CONF_INVALID;
}

unsalt_conf_res_t unsalt_conf_set(unsalt_conf_t *conf, const char *name, const char *value, char *errstr,
                                  size_t errstr_size) {
    const struct us_key *key = us_key_find(name ? name : "");
    int64_t number;
    if (!key)
        return unknown(name ? name : "", errstr, errstr_size);
    if (!value)
        value = key->fallback;
    if (us_key_is_text(key) ? !us_key_text_allowed(key, value) : !us_key_read(key, value, &number))
        return invalid(key, value, errstr, errstr_size);
    if (!store(conf, key, value)) {
        snprintf(errstr, errstr_size, "%s: out of memory", key->name);
        return UNSALT_CONF_INVALID;
    }
    return UNSALT_CONF_OK;
}

unsalt_conf_res_t unsalt_conf_get(const unsalt_conf_t *conf, const char *name, char *dest, size_t *dest_size) {
    const struct us_key *key = us_key_find(name ? name : "");
    char number[32];
    const char *value = number;
    if (!key)
        return UNSALT_CONF_UNKNOWN;
    /* The field is only read; the accessors serve both directions. */
    if (us_key_is_text(key))
        value = *text_of((struct unsalt_conf *)conf, key);
    else
        us_key_write(key, *number_of((struct unsalt_conf *)conf, key), number, sizeof number);
    if (!value)
        value = "";
    if (dest)
        snprintf(dest, *dest_size, "%s", value);
    *dest_size = strlen(value) + 1;
    return UNSALT_CONF_OK;
}

void unsalt_conf_set_event_cb(unsalt_conf_t *conf, unsalt_event_cb *cb, void *opaque) {
    conf->event_cb = cb;
    conf->event_opaque = opaque;
}

void unsalt_conf_set_log_cb(unsalt_conf_t *conf, unsalt_log_cb *cb, void *opaque) {
    conf->log_cb = cb;
    conf->log_opaque = opaque;
}

void unsalt_conf_set_dead_letter_cb(unsalt_conf_t *conf, unsalt_dead_letter_cb *cb, void *opaque) {
    conf->dead_letter_cb = cb;
    conf->dead_letter_opaque = opaque;
}

void unsalt_conf_set_checkpoint_cb(unsalt_conf_t *conf, unsalt_checkpoint_load_cb *load_cb,
                                   unsalt_checkpoint_store_cb *store_cb, void *opaque) {
    conf->checkpoint_load_cb = load_cb;
    conf->checkpoint_store_cb = store_cb;
    conf->checkpoint_opaque = opaque;
}

void unsalt_conf_set_assignment_cb(unsalt_conf_t *conf, unsalt_assignment_cb *cb, void *opaque) {
    conf->assignment_cb = cb;
    conf->assignment_opaque = opaque;
}

void unsalt_conf_set_extract_cb(unsalt_conf_t *conf, unsalt_extract_cb *cb, void *opaque) {
    conf->extract_cb = cb;
    conf->extract_opaque = opaque;
}

void unsalt_conf_set_relay_cb(unsalt_conf_t *conf, unsalt_relay_cb *cb, void *opaque) {
    conf->relay_cb = cb;
    conf->relay_opaque = opaque;
}

void unsalt_conf_set_relay_dead_letter_cb(unsalt_conf_t *conf, unsalt_relay_dead_letter_cb *cb, void *opaque) {
    conf->relay_dead_letter_cb = cb;
    conf->relay_dead_letter_opaque = opaque;
}
