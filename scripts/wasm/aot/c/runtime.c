/* All that the code of wasm2c wants of a runtime and of a C library. It is
 * compiled with -fno-builtin, or these functions would call themselves. */
#include "guest.h"
#include "aot.h"

_Static_assert(sizeof(w2c_guest) <= AOT_CONTEXT_AT, "the instance reaches the context");
_Static_assert(AOT_CONTEXT_AT + sizeof(struct aot_context) <= AOT_STATE, "the context reaches the memory");

typedef uint8_t chunk __attribute__((vector_size(16), aligned(1), may_alias));

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    return memmove(to, from, n);
}

/* Longer ranges are left to the processor's own loop. */
enum { LONG = 2048 };

static void copy_up(uint8_t *to, const uint8_t *from, size_t n) {
    chunk last = *(const chunk *)(from + n - sizeof(chunk));
    uint8_t *end = to + n - sizeof(chunk);
#if defined(__x86_64__)
    if (n > LONG) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
        return;
    }
#endif
    for (; to < end; to += sizeof(chunk), from += sizeof(chunk))
        *(chunk *)to = *(const chunk *)from;
    *(chunk *)end = last;
}

static void copy_down(uint8_t *to, const uint8_t *from, size_t n) {
    chunk first = *(const chunk *)from;
    for (size_t left = n; left > sizeof(chunk); left -= sizeof(chunk))
        *(chunk *)(to + left - sizeof(chunk)) = *(const chunk *)(from + left - sizeof(chunk));
    *(chunk *)to = first;
}

static void copy_few(uint8_t *to, const uint8_t *from, size_t n) {
    if (n >= 8) {
        uint64_t first, last;
        __builtin_memcpy(&first, from, 8);
        __builtin_memcpy(&last, from + n - 8, 8);
        __builtin_memcpy(to, &first, 8);
        __builtin_memcpy(to + n - 8, &last, 8);
    } else if (n >= 4) {
        uint32_t first, last;
        __builtin_memcpy(&first, from, 4);
        __builtin_memcpy(&last, from + n - 4, 4);
        __builtin_memcpy(to, &first, 4);
        __builtin_memcpy(to + n - 4, &last, 4);
    } else if (n > 0) {
        uint8_t first = from[0], middle = from[n / 2], last = from[n - 1];
        to[n / 2] = middle;
        to[0] = first;
        to[n - 1] = last;
    }
}

void *memmove(void *to, const void *from, size_t n) {
    if (n < sizeof(chunk))
        copy_few(to, from, n);
    else if ((uintptr_t)to - (uintptr_t)from >= n)
        copy_up(to, from, n);
    else
        copy_down(to, from, n);
    return to;
}

void *memset(void *to, int value, size_t n) {
    uint8_t *at = to;
    if (n < sizeof(chunk)) {
        while (n--)
            *(volatile uint8_t *)at++ = (uint8_t)value;
        return to;
    }
    chunk all = (chunk){0} + (uint8_t)value;
    uint8_t *end = at + n - sizeof(chunk);
    for (; at < end; at += sizeof(chunk))
        *(chunk *)at = all;
    *(chunk *)end = all;
    return to;
}

/* The host owns the memory, and sets its new size before it enters again. */
uint64_t wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint64_t pages) {
    struct aot_context *c = aot_context((uint8_t *)memory - offsetof(w2c_guest, w2c_memory));
    c->slots[0] = pages;
    aot_exit(c, AOT_GROW);
    return c->slots[0];
}
