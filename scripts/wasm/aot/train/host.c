/*
 * Runs Python in the translated module, as an ordinary program: for the profile.
 * usage: host IMAGE SOURCE...
 * Each source runs once, as the main module. The clock and the random
 * numbers are fixed, so that the profile is the same each time.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "guest.h"
#include "aot.h"

enum { SLICE = 200000 };
static w2c_guest *guest;
static uint8_t *memory;

static void die(const char *why) {
    fprintf(stderr, "host: %s\n", why);
    exit(1);
}

/* ---- what the code wants of its runtime ------------------------------------ */

void wasm_rt_trap(wasm_rt_trap_t trap) {
    fprintf(stderr, "host: trap %d\n", trap);
    exit(1);
}

void aot_low_stack(void) { die("the stack has a limit"); }

uint64_t wasm_rt_grow_memory(wasm_rt_memory_t *m, uint64_t pages) {
    uint64_t old = m->pages;
    if (old + pages > 16384)
        return (uint64_t)-1;
    m->pages += pages;
    m->size = m->pages * 65536;
    return old;
}

/* Leaves to the host: slots are the parameters, the first one is the result. */
static const char *const imports[] = {
#include "imports.inc"
};

static void put32(uint64_t at, uint32_t value) { memcpy(memory + (uint32_t)at, &value, 4); }

static uint32_t get32(uint64_t at) {
    uint32_t value;
    memcpy(&value, memory + (uint32_t)at, 4);
    return value;
}

static void write_out(uint64_t *s) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < s[2]; i++) {
        uint32_t n = get32(s[1] + 8 * i + 4);
        fwrite(memory + get32(s[1] + 8 * i), 1, n, stderr);
        sum += n;
    }
    put32(s[3], sum);
    s[0] = 0;
}

void aot_exit(struct aot_context *c, uint64_t code) {
    static uint64_t now = 1700000000, seed = 1;
    uint64_t *s = c->slots;
    const char *name = imports[code - 1];
    if (!strcmp(name, "yield")) {
        guest->w2c_fuel = SLICE;
    } else if (!strcmp(name, "clock_time_get")) {
        uint64_t t = now++ * 1000000;
        memcpy(memory + (uint32_t)s[2], &t, 8);
        s[0] = 0;
    } else if (!strcmp(name, "random_get")) {
        for (uint32_t i = 0; i < (uint32_t)s[1]; i++)
            memory[(uint32_t)s[0] + i] = (uint8_t)((seed = seed * 6364136223846793005u + 1) >> 56);
        s[0] = 0;
    } else if (!strcmp(name, "fd_write")) {
        write_out(s);
    } else if (!strcmp(name, "fd_fdstat_get")) {
        memset(memory + (uint32_t)s[1], 0, 24);
        memory[(uint32_t)s[1]] = 2;
        s[0] = 0;
    } else if (!strcmp(name, "hash")) {
        s[0] = 0; /* the guest digests all blocks itself */
    } else if (!strcmp(name, "call") || !strcmp(name, "take") || !strcmp(name, "switch")) {
        die("a program calls the host of rlm");
    } else {
        s[0] = 52; /* not supported */
    }
}

/* ---- Python -------------------------------------------------------------------- */

static char *read_all(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die(path);
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, f) != *size)
        die(path);
    fclose(f);
    return data;
}

static uint32_t boot(const char *source, size_t n) {
    uint32_t at = w2c_guest_alloc(guest, (uint32_t)n);
    memcpy(memory + at, source, n);
    uint32_t failed = w2c_guest_boot(guest, at, (uint32_t)n);
    w2c_guest_free(guest, at);
    return failed;
}

/* The source of a program that runs another one as the main module. */
static char *wrapped(const char *source, size_t n, size_t *size) {
    char *out = malloc(4 * n + 300), *p = out;
    p += sprintf(p, "import sys, types\nmain = sys.modules['__main__'] = types.ModuleType('__main__')\n"
                    "exec(compile(b'");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)source[i];
        p += sprintf(p, c < ' ' || c > '~' || c == '\\' || c == '\'' ? "\\x%02x" : "%c", c);
    }
    p += sprintf(p, "', '<training>', 'exec'), main.__dict__)");
    *size = (size_t)(p - out);
    return out;
}

int main(int argc, char **argv) {
    size_t size, n;
    char *image = read_all(argv[1], &size);
    uint8_t *map = mmap(0, AOT_STATE + (1ul << 30), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        die("no memory");
    guest = (w2c_guest *)map;
    memory = map + AOT_STATE;
    memcpy(memory, image, size);
    void aot_start(w2c_guest *);
    aot_start(guest);
    guest->w2c_memory.pages = size / 65536;
    guest->w2c_memory.size = size;
    guest->w2c_fuel = SLICE;

    for (int i = 2; i < argc; i++) {
        char *source = read_all(argv[i], &n);
        char *program = wrapped(source, n, &size);
        if (boot(program, size))
            fprintf(stderr, "host: %s raised\n", argv[i]);
        free(program);
        free(source);
    }
    return 0;
}
