/*
 * The way between Go and the guest, each on a stack of its own. The host enters
 * with a jump to aot_begin or aot_resume and the context in rdi. See aot.h for
 * its fields. Go expects nothing of the registers but its stack and frame pointers.
 */
	.text
	.globl aot_begin, aot_resume, aot_exit, aot_low_stack, wasm_rt_trap
	.hidden aot_begin, aot_resume, aot_exit, aot_low_stack, wasm_rt_trap

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

/* The instance is in rdi: see AOT_LOW_STACK. Go may use each register. */
aot_low_stack:
	cmpq $-1, 2080(%rdi)
	jne deep
	push %rbp
	mov %rsp, %rbp
	push %rax
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %r8
	push %r9
	push %r10
	push %r11
	and $-16, %rsp
	sub $256, %rsp
	movaps %xmm0, 0(%rsp)
	movaps %xmm1, 16(%rsp)
	movaps %xmm2, 32(%rsp)
	movaps %xmm3, 48(%rsp)
	movaps %xmm4, 64(%rsp)
	movaps %xmm5, 80(%rsp)
	movaps %xmm6, 96(%rsp)
	movaps %xmm7, 112(%rsp)
	movaps %xmm8, 128(%rsp)
	movaps %xmm9, 144(%rsp)
	movaps %xmm10, 160(%rsp)
	movaps %xmm11, 176(%rsp)
	movaps %xmm12, 192(%rsp)
	movaps %xmm13, 208(%rsp)
	movaps %xmm14, 224(%rsp)
	movaps %xmm15, 240(%rsp)
	add $2048, %rdi
	xor %esi, %esi
	bts $34, %rsi
	call aot_exit
	movaps 0(%rsp), %xmm0
	movaps 16(%rsp), %xmm1
	movaps 32(%rsp), %xmm2
	movaps 48(%rsp), %xmm3
	movaps 64(%rsp), %xmm4
	movaps 80(%rsp), %xmm5
	movaps 96(%rsp), %xmm6
	movaps 112(%rsp), %xmm7
	movaps 128(%rsp), %xmm8
	movaps 144(%rsp), %xmm9
	movaps 160(%rsp), %xmm10
	movaps 176(%rsp), %xmm11
	movaps 192(%rsp), %xmm12
	movaps 208(%rsp), %xmm13
	movaps 224(%rsp), %xmm14
	movaps 240(%rsp), %xmm15
	lea -72(%rbp), %rsp
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rax
	pop %rbp
	cmp 2080(%rdi), %rsp
	jb aot_low_stack
	ret

deep:
	mov $9, %edi
/* void wasm_rt_trap(trap): the guest never goes on. */
wasm_rt_trap:
	mov %edi, %esi
	bts $32, %rsi
	mov %rsp, %rax
	and $-(64 << 20), %rax
	mov (%rax), %rdi
	jmp leave

	.section .note.GNU-stack,"",@progbits
