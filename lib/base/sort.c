/* SPDX-License-Identifier: BSD-2-Clause */
/* Heapsort (Williams, CACM 7, 1964), preceded by a look whether all is in order, which is the ordinary case here. */
#include <base/sort.h>
#include <string.h>

struct array {
    unsigned char *base;
    size_t size;
    bool (*less)(const void *a, const void *b);
};

static unsigned char *at(const struct array *array, size_t i) {
    return array->base + i * array->size;
}

static bool is_sorted(const struct array *array, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (array->less(at(array, i), at(array, i - 1))) {
            return false;
        }
    }
    return true;
}

static void swap(const struct array *array, size_t i, size_t j) {
    unsigned char kept[US_SORT_SIZE_MAX];
    memcpy(kept, at(array, i), array->size);
    memcpy(at(array, i), at(array, j), array->size);
    memcpy(at(array, j), kept, array->size);
}

static void sift_down(const struct array *array, size_t i, size_t n) {
    for (;;) {
        size_t greatest = i, left = 2 * i + 1;
        if (left < n && array->less(at(array, greatest), at(array, left))) {
            greatest = left;
        }
        if (left + 1 < n && array->less(at(array, greatest), at(array, left + 1))) {
            greatest = left + 1;
        }
        if (greatest == i) {
            return;
        }
        swap(array, i, greatest);
        i = greatest;
    }
}

void us_sort(void *base, size_t n, size_t size, bool (*less)(const void *a, const void *b)) {
    const struct array array = {base, size, less};
    if (is_sorted(&array, n)) {
        return;
    }
    for (size_t i = n / 2; i-- > 0;) {
        sift_down(&array, i, n);
    }
    for (size_t end = n - 1; end > 0; end--) {
        swap(&array, 0, end);
        sift_down(&array, 0, end);
    }
}
