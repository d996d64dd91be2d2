/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <support/failmem.h>

#define ALIVE UINT64_C(0x616c697665626c6b)
#define RUBBISH 0xa5

struct block {
    alignas(max_align_t) uint64_t mark;
    size_t size;
};

static void *take(void *user, size_t size) {
    struct failmem *fail = user;
    fail->calls++;
    if (fail->fail_at && (fail->calls == fail->fail_at || (fail->fail_after && fail->calls > fail->fail_at))) {
        fail->failed++;
        return NULL;
    }
    struct block *block = size > SIZE_MAX - sizeof *block ? NULL : malloc(sizeof *block + size);
    if (!block)
        return NULL;
    *block = (struct block){.mark = ALIVE, .size = size};
    memset(block + 1, RUBBISH, size);
    fail->blocks++;
    fail->bytes += size;
    if (fail->peak < fail->bytes)
        fail->peak = fail->bytes;
    return block + 1;
}

static struct block *block_of(void *ptr) {
    struct block *block = (struct block *)ptr - 1;
    if (block->mark != ALIVE) {
        fprintf(stderr, "failmem: not a live block: %p\n", ptr);
        abort();
    }
    return block;
}

static void give(void *user, void *ptr) {
    struct failmem *fail = user;
    if (!ptr)
        return;
    struct block *block = block_of(ptr);
    fail->blocks--;
    fail->bytes -= block->size;
    block->mark = 0;
    free(block);
}

static void *move(void *user, void *ptr, size_t size) {
    void *moved = take(user, size);
    if (!moved || !ptr)
        return moved;
    size_t old = block_of(ptr)->size;
    memcpy(moved, ptr, old < size ? old : size);
    give(user, ptr);
    return moved;
}

void failmem_init(struct failmem *fail) {
    *fail = (struct failmem){.mem = {fail, take, move, give}};
}

void failmem_arm(struct failmem *fail, uint64_t nth, bool after) {
    fail->fail_at = nth ? fail->calls + nth : 0;
    fail->fail_after = after;
    fail->failed = 0;
}

bool failmem_is_balanced(const struct failmem *fail) {
    if (fail->blocks == 0 && fail->bytes == 0)
        return true;
    fprintf(stderr, "failmem: %llu blocks, %zu bytes are alive\n", (unsigned long long)fail->blocks, fail->bytes);
    return false;
}
