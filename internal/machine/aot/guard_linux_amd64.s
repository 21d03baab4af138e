#include "go_asm.h"
#include "textflag.h"

// Offsets in siginfo_t and ucontext_t.
#define CODE 8
#define ADDRESS 16
#define RDI 104
#define RSP 160
#define RIP 168

// func handleFault()
//
// The kernel calls it for SIGSEGV, on the thread's stack for signals: the signal is in DI,
// siginfo_t in SI, ucontext_t in DX. It changes only registers that a C function may change.
//
// The fault is a guest's if the kernel found it, if its instruction lies in the code of a program,
// and if its address lies in the space of the guest whose stack the thread is on. Then the thread
// goes on at the program's trap. Every other fault goes to Go's own handler as it came.
TEXT ·handleFault(SB), NOSPLIT|NOFRAME, $0-0
	CMPL CODE(SI), $0
	JLE  other
	MOVQ RIP(DX), AX
	LEAQ ·guarded(SB), R8
	MOVQ $const_maxGuarded, R9

next:
	MOVQ guardedCode_span(R8), R10
	MOVQ R10, R11
	SHRQ $const_spanPages, R11
	SHLQ $12, R11
	ANDQ $const_spanMask, R10
	SHLQ $12, R10
	MOVQ AX, CX
	SUBQ R11, CX
	CMPQ CX, R10
	JCS  found
	ADDQ $guardedCode__size, R8
	DECQ R9
	JNZ  next
	JMP  other

found:
	MOVQ RSP(DX), CX
	ANDQ $~const_stackMask, CX
	MOVQ 0(CX), CX // of the context
	TESTQ CX, CX
	JEQ  other
	MOVQ ADDRESS(SI), R10
	SUBQ CX, R10
	SUBQ $const_afterContext, R10 // now it counts from the memory's beginning
	MOVQ $const_reach, R11
	CMPQ R10, R11
	JCC  other
	MOVQ $const_outOfBounds, RDI(DX)
	MOVQ guardedCode_trap(R8), R11
	MOVQ R11, RIP(DX)
	RET

other:
	MOVQ ·goHandler(SB), AX
	JMP  AX

// func faultHandler() uintptr
TEXT ·faultHandler(SB), NOSPLIT, $0-8
	LEAQ ·handleFault(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func testFault()
//
// It is handleFault for one fault, that of touch. If all of it is as expected, the thread goes on
// behind the load, with another DI. Otherwise the load succeeds: the page becomes readable.
TEXT ·testFault(SB), NOSPLIT|NOFRAME, $0-0
	CMPL CODE(SI), $0
	JLE  unknown
	MOVQ ADDRESS(SI), R8
	CMPQ R8, ·testAddress(SB)
	JNE  unknown
	MOVQ RSP(DX), R8
	CMPQ R8, ·testStack(SB)
	JNE  unknown
	LEAQ ·touchHere(SB), R8
	CMPQ R8, RIP(DX)
	JNE  unknown
	LEAQ ·touched(SB), R8
	MOVQ R8, RIP(DX)
	MOVQ $1, RDI(DX)
	RET

unknown:
	MOVQ ·testAddress(SB), DI
	ANDQ $~4095, DI
	MOVQ $4096, SI
	MOVQ $1, DX // PROT_READ
	MOVQ $10, AX // mprotect
	SYSCALL
	RET

// func testHandler() uintptr
TEXT ·testHandler(SB), NOSPLIT, $0-8
	LEAQ ·testFault(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func touch(address uintptr) bool
TEXT ·touch(SB), NOSPLIT|NOFRAME, $0-9
	MOVQ address+0(FP), AX
	MOVQ SP, ·testStack(SB)
	MOVQ $0, DI
	JMP  ·touchHere(SB)

TEXT ·touchHere(SB), NOSPLIT|NOFRAME, $0-9
	MOVB (AX), CX
	JMP  ·touched(SB)

TEXT ·touched(SB), NOSPLIT|NOFRAME, $0-9
	MOVB DI, ret+8(FP)
	RET
