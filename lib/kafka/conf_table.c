/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/json_path.h>
#include <codec/plain.h>
#include <inttypes.h>
#include <kafka/conf.h>
#include <kafka/conf_table.h>
#include <stdio.h>
#include <string.h>

/* A key is at most this long where the nearest one is looked for. */
#define NAME_MAX_COMPARED 48
/* Kafka's own limit on the length of a topic name. */
#define TOPIC_MAX 249

const struct us_key us_keys[] = {
#define K(type, scope, name, field, fallback, min, max, allowed, doc)                                                  \
    {US_KEY_##type, #scope[0], name, fallback, min, max, allowed, doc, offsetof(struct unsalt_conf, field)},
#include "conf_keys.def"
#undef K
};
const size_t us_keys_count = sizeof us_keys / sizeof *us_keys;

const struct us_key *us_key_find(const char *name) {
    for (size_t i = 0; i < us_keys_count; i++)
        if (strcmp(us_keys[i].name, name) == 0)
            return &us_keys[i];
    return NULL;
}

static size_t least(size_t a, size_t b, size_t c) {
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* The edit distance of Levenshtein, one row at a time. */
static size_t distance(const char *a, size_t an, const char *b, size_t bn) {
    size_t row[NAME_MAX_COMPARED + 1];
    for (size_t j = 0; j <= bn; j++)
        row[j] = j;
    for (size_t i = 1; i <= an; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= bn; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[bn];
}

const char *us_key_nearest(const char *name) {
    const char *best = NULL;
    size_t n = strlen(name);
    size_t best_distance = n / 2 + 1; /* at half its length apart a name has nothing in common any more */
    if (n > NAME_MAX_COMPARED)
        return NULL;
    for (size_t i = 0; i < us_keys_count; i++) {
        size_t d = distance(name, n, us_keys[i].name, strlen(us_keys[i].name));
        if (d < best_distance) {
            best_distance = d;
            best = us_keys[i].name;
        }
    }
    return best;
}

bool us_key_is_text(const struct us_key *key) {
    return key->type == US_KEY_STRING || key->type == US_KEY_LIST;
}

static bool read_integer(const char *value, int64_t *number) {
    bool negative = value[0] == '-';
    const char *digits = value + negative;
    uint64_t magnitude;
    if (!us_decimal_read(digits, strlen(digits), &magnitude) || magnitude > INT64_MAX)
        return false;
    *number = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool read_bool(const char *value, int64_t *number) {
    if (strcmp(value, "true") == 0 || strcmp(value, "1") == 0)
        *number = 1;
    else if (strcmp(value, "false") == 0 || strcmp(value, "0") == 0)
        *number = 0;
    else
        return false;
    return true;
}

static bool read_choice(const char *allowed, const char *value, int64_t *number) {
    size_t n = strlen(value);
    int64_t index = 0;
    for (const char *p = allowed;; index++) {
        size_t length = strcspn(p, "|");
        if (length == n && memcmp(p, value, n) == 0) {
            *number = index;
            return true;
        }
        if (p[length] == '\0')
            return false;
        p += length + 1;
    }
}

static bool read_u64(const char *value, int64_t *number) {
    uint64_t bits;
    if (!us_decimal_read(value, strlen(value), &bits) || bits == UINT64_MAX)
        return false;
    *number = (int64_t)bits;
    return true;
}

bool us_key_read(const struct us_key *key, const char *value, int64_t *number) {
    int64_t n;
    bool may_be_never = key->type == US_KEY_MS && key->min == -1;
    if (key->type == US_KEY_BOOL)
        return read_bool(value, number);
    if (key->type == US_KEY_ENUM)
        return read_choice(key->allowed, value, number);
    if (key->type == US_KEY_U64)
        return read_u64(value, number);
    if (may_be_never && strcmp(value, "off") == 0)
        n = -1;
    else if (!read_integer(value, &n))
        return false;
    if (n < key->min || n > key->max)
        return false;
    *number = may_be_never && n == -1 ? INT64_MAX : n;
    return true;
}

/* The characters that Kafka takes in the name of a topic. */
static bool topic_name(const char *name, size_t n) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n > 0 && n <= TOPIC_MAX && strspn(name, letters) >= n && !(n == 1 && name[0] == '.') &&
           !(n == 2 && name[0] == '.' && name[1] == '.');
}

/* True if the name stands in the list once more, behind `rest`. */
static bool repeated(const char *name, size_t n, const char *rest) {
    while (*rest != '\0') {
        size_t length = strcspn(rest, ",");
        if (length == n && memcmp(rest, name, n) == 0)
            return true;
        rest += length + (rest[length] == ',');
    }
    return false;
}

static bool list_allowed(const char *list) {
    size_t count = 0;
    if (*list == '\0')
        return true;
    for (const char *p = list;; count++) {
        size_t length = strcspn(p, ",");
        const char *rest = p + length + (p[length] == ',');
        if (count == UINT16_MAX || !topic_name(p, length) || repeated(p, length, rest))
            return false;
        if (p[length] == '\0')
            return true;
        p = rest;
    }
}

/* Is the value the place of a field in a JSON object? */
static bool is_path(const struct us_key *key) {
    return key->offset == offsetof(struct unsalt_conf, seq_json) ||
           key->offset == offsetof(struct unsalt_conf, session_json);
}

bool us_key_text_allowed(const struct us_key *key, const char *value) {
    struct us_salt_pattern pattern;
    struct us_json_path path;
    size_t n = strlen(value);
    if (n < (size_t)key->min || n > (size_t)key->max)
        return false;
    if (key->type == US_KEY_LIST)
        return list_allowed(value);
    if (is_path(key))
        return us_json_path_parse(value, &path);
    return key->offset != offsetof(struct unsalt_conf, salt_pattern) || us_salt_pattern_parse(value, &pattern);
}

/* Copies entry `index` of a list that is separated by '|'. */
static size_t choice(const char *allowed, int64_t index, char *text, size_t size) {
    for (; index > 0; index--)
        allowed += strcspn(allowed, "|") + 1;
    return (size_t)snprintf(text, size, "%.*s", (int)strcspn(allowed, "|"), allowed);
}

size_t us_key_write(const struct us_key *key, int64_t number, char *text, size_t size) {
    if (key->type == US_KEY_ENUM)
        return choice(key->allowed, number, text, size);
    if (key->type == US_KEY_BOOL)
        return (size_t)snprintf(text, size, "%s", number ? "true" : "false");
    if (key->type == US_KEY_U64)
        return (size_t)snprintf(text, size, "%" PRIu64, (uint64_t)number);
    if (key->type == US_KEY_MS && number == INT64_MAX)
        number = -1;
    return (size_t)snprintf(text, size, "%" PRId64, number);
}

static int choices(const char *allowed, char *text, size_t size) {
    char list[128];
    size_t used = 0;
    for (const char *p = allowed; *p != '\0';) {
        size_t length = strcspn(p, "|");
        bool last = p[length] == '\0';
        const char *link = p == allowed ? "" : last ? " or " : ", ";
        int n = snprintf(list + used, sizeof list - used, "%s%.*s", link, (int)length, p);
        used += n > 0 && (size_t)n < sizeof list - used ? (size_t)n : 0;
        p += length + !last;
    }
    list[used] = '\0';
    return snprintf(text, size, "%s", list);
}

int us_key_allowed(const struct us_key *key, char *text, size_t size) {
    switch (key->type) {
    case US_KEY_ENUM:
        return choices(key->allowed, text, size);
    case US_KEY_BOOL:
        return snprintf(text, size, "true or false");
    case US_KEY_U64:
        return snprintf(text, size, "0..%" PRIu64, UINT64_MAX - 1);
    case US_KEY_LIST:
        return snprintf(text, size, "topic names, each once, separated by commas");
    case US_KEY_STRING:
        if (key->offset == offsetof(struct unsalt_conf, salt_pattern))
            return snprintf(text, size, "a text of 1 to 31 bytes followed by `<k>`");
        if (is_path(key))
            return snprintf(text, size,
                            "a name of %" PRId64 " to %" PRId64 " bytes, or a pointer such as /a/b: up to %d names, "
                            "~ written ~0 and / written ~1",
                            key->min, key->max, US_JSON_PATH_STEPS);
        return snprintf(text, size, "a text of %" PRId64 " to %" PRId64 " bytes", key->min, key->max);
    case US_KEY_MS:
        if (key->min == -1)
            return snprintf(text, size, "0..%" PRId64 ", or -1 (off): never", key->max);
        break;
    case US_KEY_INT:
        break;
    }
    return snprintf(text, size, "%" PRId64 "..%" PRId64, key->min, key->max);
}

static const char *scope_name(char scope) {
    switch (scope) {
    case 'C':
        return "consumer";
    case 'P':
        return "producer";
    case 'R':
        return "relay, its input";
    case 'T':
        return "relay, its result";
    default:
        return "both";
    }
}

/* A cell of a Markdown table: '|' would end it. */
static void print_cell(FILE *to, const char *text) {
    for (; *text != '\0'; text++)
        fprintf(to, *text == '|' ? "\\|" : "%c", *text);
}

void unsalt_conf_print_table(FILE *to) {
    fprintf(to, "| Key | Default | Allowed | For | What it does |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < us_keys_count; i++) {
        const struct us_key *key = &us_keys[i];
        char allowed[160];
        us_key_allowed(key, allowed, sizeof allowed);
        fprintf(to, "| `%s` | %s%s%s | ", key->name, *key->fallback ? "`" : "", key->fallback,
                *key->fallback ? "`" : "");
        print_cell(to, allowed);
        fprintf(to, " | %s | ", scope_name(key->scope));
        print_cell(to, key->doc);
        fprintf(to, " |\n");
    }
}
