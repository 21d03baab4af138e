/*
 * The layout of a guest, which package internal/machine/aot of the host knows, too.
 * A page lies directly before the guest's memory. It begins with the instance
 * of wasm2c, and the context is in its middle. So the instance's pointer, which
 * every function has in a register, is also the base of the memory.
 *
 * To be included after the header that wasm2c has generated.
 */
#ifndef AOT_H
#define AOT_H
#include <stddef.h>
#include <stdint.h>

enum { AOT_STATE = 4096, AOT_CONTEXT_AT = 2048, AOT_SLOTS = 16 };

/* The assembly code in enter_*.S has these offsets as well. */
struct aot_context {
    uint64_t go_sp, go_fp, go_lr;   /* 0 8 16: where Go was left; go_lr on arm64 */
    uint64_t guest_sp;              /* 24: where the guest's stack was left */
    uint64_t stack_limit;           /* 32: functions below it trap */
    uint64_t function;              /* 40: to begin with */
    uint64_t code;                  /* 48: why the guest has left, see below */
    uint64_t slots[AOT_SLOTS];      /* 56: parameters; the result is the first one */
};

/* Codes: 0 the function has returned, 1.. the import of that number, and: */
#define AOT_TRAP (UINT64_C(1) << 32) /* plus the trap */
#define AOT_GROW (UINT64_C(1) << 33)
#define AOT_PREEMPT (UINT64_C(1) << 34)

/* One more trap than wasm2c has: a call of a function of another type. */
#define AOT_TRAP_TYPE ((wasm_rt_trap_t)10)

#define AOT_HIDDEN __attribute__((visibility("hidden")))

static inline struct aot_context *aot_context(const void *instance) {
    return (struct aot_context *)((uintptr_t)instance + AOT_CONTEXT_AT);
}

/* Leaves to Go, and returns when Go enters again. */
AOT_HIDDEN void aot_exit(struct aot_context *, uint64_t code);

/* The stack of a run is a region of this size, aligned to it. Its first word is
 * the address of the context, by which a trap finds out. */
#define AOT_STACK (UINT64_C(64) << 20)

/* A function that begins below the limit of its stack calls aot_low_stack. The
 * host sets the limit to the highest address to get the processor back, also
 * from code that never calls it: then aot_low_stack leaves to Go and returns.
 * Otherwise it traps. It changes no register, so this costs the function
 * nothing, and no memory of the guest. On amd64, a function may use 128 bytes
 * below its stack pointer. */
#if defined(__aarch64__)
#define AOT_LOW_STACK(instance)                                               \
  do {                                                                        \
    register const void *aot_guest __asm__("x0") = (instance);                \
    __asm__ volatile("mov x17, x30\n\tbl aot_low_stack\n\tmov x30, x17"       \
                     : : "r"(aot_guest) : "x17", "cc");                       \
  } while (0)
#else
#define AOT_LOW_STACK(instance)                                               \
  __asm__ volatile("lea -128(%%rsp), %%rsp\n\tcall aot_low_stack\n\t"         \
                   "lea 128(%%rsp), %%rsp" : : "D"(instance) : "cc")
#endif

/* AOT_FLOAT is where inline assembly wants a float. */
#if defined(__aarch64__)
register uint64_t aot_stack_pointer __asm__("sp");
#define AOT_FLOAT "w"
#else
register uint64_t aot_stack_pointer __asm__("rsp");
#define AOT_FLOAT "x"
#endif

/* The table of functions is constant. An entry has the distance of its function
 * from the table, so the code runs at any address. */
struct aot_entry {
    int32_t function;
    uint32_t type; /* 0 for no function */
};
extern const struct aot_entry aot_table[] AOT_HIDDEN;

/* Numbers as they lie in a slot. */
static inline uint64_t aot_of_u32(uint32_t x) { return x; }
static inline uint64_t aot_of_u64(uint64_t x) { return x; }
static inline uint64_t aot_of_f32(float x) { uint32_t n; __builtin_memcpy(&n, &x, 4); return n; }
static inline uint64_t aot_of_f64(double x) { uint64_t n; __builtin_memcpy(&n, &x, 8); return n; }
static inline uint32_t aot_as_u32(uint64_t n) { return (uint32_t)n; }
static inline uint64_t aot_as_u64(uint64_t n) { return n; }
static inline float aot_as_f32(uint64_t n) { uint32_t m = (uint32_t)n; float x; __builtin_memcpy(&x, &m, 4); return x; }
static inline double aot_as_f64(uint64_t n) { double x; __builtin_memcpy(&x, &n, 8); return x; }
#endif
