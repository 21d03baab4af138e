/*
 * The way between Go and the guest, each on a stack of its own. The host enters
 * with a jump to aot_begin or aot_resume and the context in x0. See aot.h for
 * its fields. Go expects nothing of the registers but its stack and frame pointers,
 * and its goroutine in x28. The guest's code has neither x28 nor x18 (aot.sh): a
 * signal's handler of Go reads the first one, some systems own the second one.
 */
	.text
	.globl aot_begin, aot_resume, aot_exit, wasm_rt_trap
	.hidden aot_begin, aot_resume, aot_exit, wasm_rt_trap

/* Calls function(instance, slots) on a new stack. */
aot_begin:
	ldr x9, [x0, #24]
	mov sp, x9
	str x0, [sp, #-16]!
	add x1, x0, #56
	ldr x9, [x0, #40]
	sub x0, x0, #2048
	mov x29, xzr
	blr x9
	ldr x0, [sp], #16
	mov x1, xzr
	b leave

/* void aot_exit(context, code) */
aot_exit:
	stp x29, x30, [sp, #-160]!
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	stp x23, x24, [sp, #48]
	stp x25, x26, [sp, #64]
	str x27, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	mov x9, sp
	str x9, [x0, #24]
leave:
	str x1, [x0, #48]
	ldr x9, [x0, #0]
	mov sp, x9
	ldp x29, x30, [x0, #8]
	ret

aot_resume:
	ldr x9, [x0, #24]
	mov sp, x9
	ldp d14, d15, [sp, #144]
	ldp d12, d13, [sp, #128]
	ldp d10, d11, [sp, #112]
	ldp d8, d9, [sp, #96]
	ldr x27, [sp, #80]
	ldp x25, x26, [sp, #64]
	ldp x23, x24, [sp, #48]
	ldp x21, x22, [sp, #32]
	ldp x19, x20, [sp, #16]
	ldp x29, x30, [sp], #160
	ret

/* void wasm_rt_trap(trap): the guest never goes on. */
wasm_rt_trap:
	mov w1, w0
	orr x1, x1, #(1 << 32)
	mov x9, sp
	and x9, x9, #-(64 << 20)
	ldr x0, [x9]
	b leave

	.section .note.GNU-stack,"",%progbits
