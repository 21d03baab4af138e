/*
 * The way between Go and the guest, each on a stack of its own. The host enters
 * with a jump to aot_begin or aot_resume and the context in rdi. See aot.h for
 * its fields. Go expects nothing of the registers but its stack and frame pointers.
 */
	.text
	.globl aot_begin, aot_resume, aot_exit, wasm_rt_trap
	.hidden aot_begin, aot_resume, aot_exit, wasm_rt_trap

/* Calls function(instance, slots) on a new stack. */
aot_begin:
	mov 24(%rdi), %rsp
	push %rdi
	push %rdi
	lea 56(%rdi), %rsi
	mov 40(%rdi), %rax
	sub $2048, %rdi
	xor %ebp, %ebp
	call *%rax
	pop %rdi
	xor %esi, %esi
	jmp leave

/* void aot_exit(context, code) */
aot_exit:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, 24(%rdi)
leave:
	mov %rsi, 48(%rdi)
	mov 0(%rdi), %rsp
	mov 8(%rdi), %rbp
	ret

aot_resume:
	mov 24(%rdi), %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret

/* void wasm_rt_trap(trap): the guest never goes on. */
wasm_rt_trap:
	mov %edi, %esi
	bts $32, %rsi
	mov %rsp, %rax
	and $-(64 << 20), %rax
	mov (%rax), %rdi
	jmp leave

	.section .note.GNU-stack,"",@progbits
