/* SPDX-License-Identifier: BSD-2-Clause */
#include <codec/json_path.h>
#include <string.h>

/* Copies one step of a pointer, up to the next '/' or the end. Returns where it ends; NULL: a bad escape. */
static const char *take_step(const char *text, struct us_json_path *path, uint8_t *used) {
    for (; *text != '\0' && *text != '/'; text++) {
        char c = *text;
        if (c == '~') {
            text++;
            if (*text != '0' && *text != '1')
                return NULL;
            c = *text == '0' ? '~' : '/';
        }
        path->bytes[(*used)++] = c;
    }
    return text;
}

bool us_json_path_parse(const char *text, struct us_json_path *path) {
    uint8_t used = 0;
    size_t len = text ? strlen(text) : 0;
    memset(path, 0, sizeof *path);
    if (len == 0 || len > US_JSON_PATH_BYTES)
        return len == 0;
    if (text[0] != '/') {
        memcpy(path->bytes, text, len);
        path->steps[0] = (struct us_json_step){0, (uint8_t)len};
        path->depth = 1;
        return true;
    }
    while (text && *text == '/') {
        uint8_t at = used;
        text = path->depth < US_JSON_PATH_STEPS ? take_step(text + 1, path, &used) : NULL;
        if (text)
            path->steps[path->depth++] = (struct us_json_step){at, (uint8_t)(used - at)};
    }
    if (!text)
        path->depth = 0;
    return text != NULL;
}
