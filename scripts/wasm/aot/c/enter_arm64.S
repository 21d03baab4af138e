/*
 * The way between Go and the guest, each on a stack of its own. The host enters
 * with a jump to aot_begin or aot_resume and the context in x0. See aot.h for
 * its fields. Go expects nothing of the registers but its stack and frame pointers,
 * and its goroutine in x28. The guest's code has neither x28 nor x18 (aot.sh): a
 * signal's handler of Go reads the first one, some systems own the second one.
 */
	.text
	.globl aot_begin, aot_resume, aot_exit, aot_low_stack, wasm_rt_trap
	.hidden aot_begin, aot_resume, aot_exit, aot_low_stack, wasm_rt_trap

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

/* The instance is in x0, the way back to the function's caller in x17: see AOT_LOW_STACK. Go may
 * use each register. aot_exit keeps x19 to x27 and the lower halves of v8 to v15. */
aot_low_stack:
	sub sp, sp, #688
	stp x0, x1, [sp]
	ldr x1, [x0, #2080]
	cmn x1, #1
	b.ne deep
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	stp x8, x9, [sp, #64]
	stp x10, x11, [sp, #80]
	stp x12, x13, [sp, #96]
	stp x14, x15, [sp, #112]
	stp x16, x17, [sp, #128]
	stp x29, x30, [sp, #144]
	stp q0, q1, [sp, #160]
	stp q2, q3, [sp, #192]
	stp q4, q5, [sp, #224]
	stp q6, q7, [sp, #256]
	stp q8, q9, [sp, #288]
	stp q10, q11, [sp, #320]
	stp q12, q13, [sp, #352]
	stp q14, q15, [sp, #384]
	stp q16, q17, [sp, #416]
	stp q18, q19, [sp, #448]
	stp q20, q21, [sp, #480]
	stp q22, q23, [sp, #512]
	stp q24, q25, [sp, #544]
	stp q26, q27, [sp, #576]
	stp q28, q29, [sp, #608]
	stp q30, q31, [sp, #640]
	add x0, x0, #2048
	mov x1, #(1 << 34)
	bl aot_exit
	ldp q30, q31, [sp, #640]
	ldp q28, q29, [sp, #608]
	ldp q26, q27, [sp, #576]
	ldp q24, q25, [sp, #544]
	ldp q22, q23, [sp, #512]
	ldp q20, q21, [sp, #480]
	ldp q18, q19, [sp, #448]
	ldp q16, q17, [sp, #416]
	ldp q14, q15, [sp, #384]
	ldp q12, q13, [sp, #352]
	ldp q10, q11, [sp, #320]
	ldp q8, q9, [sp, #288]
	ldp q6, q7, [sp, #256]
	ldp q4, q5, [sp, #224]
	ldp q2, q3, [sp, #192]
	ldp q0, q1, [sp, #160]
	ldp x29, x30, [sp, #144]
	ldp x16, x17, [sp, #128]
	ldp x14, x15, [sp, #112]
	ldp x12, x13, [sp, #96]
	ldp x10, x11, [sp, #80]
	ldp x8, x9, [sp, #64]
	ldp x6, x7, [sp, #48]
	ldp x4, x5, [sp, #32]
	ldp x2, x3, [sp, #16]
	ldp x0, x1, [sp]
	add sp, sp, #688
	str x1, [sp, #-16]!
	ldr x1, [x0, #2080]
	cmp sp, x1
	ldr x1, [sp], #16
	b.lo aot_low_stack
	ret

deep:
	mov w0, #9
/* void wasm_rt_trap(trap): the guest never goes on. */
wasm_rt_trap:
	mov w1, w0
	orr x1, x1, #(1 << 32)
	mov x9, sp
	and x9, x9, #-(64 << 20)
	ldr x0, [x9]
	b leave

	.section .note.GNU-stack,"",%progbits
