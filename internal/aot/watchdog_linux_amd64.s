#include "go_asm.h"
#include "textflag.h"

// System calls.
#define SIGPROCMASK 14
#define NANOSLEEP 35
#define CLONE 56
#define PRCTL 157
#define FUTEX 202

// CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
#define THREAD 0x50f00

// func startThread(top uintptr) (code int)
//
// The thread inherits the mask of signals. Go's handlers would not know it.
TEXT ·startThread(SB), NOSPLIT, $16-16
	MOVQ $-1, all-8(SP)
	MOVL $SIGPROCMASK, AX
	MOVL $2, DI // SIG_SETMASK
	LEAQ all-8(SP), SI
	LEAQ old-16(SP), DX
	MOVL $8, R10
	SYSCALL

	MOVL $CLONE, AX
	MOVL $THREAD, DI
	MOVQ top+0(FP), SI
	MOVL $0, DX
	MOVL $0, R10
	MOVL $0, R8
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ AX, R12

	MOVL $SIGPROCMASK, AX
	MOVL $2, DI
	LEAQ old-16(SP), SI
	MOVL $0, DX
	MOVL $8, R10
	SYSCALL

	NEGQ R12 // an error number is above 0, the number of a thread below
	MOVQ $0, AX
	TESTQ R12, R12
	CMOVQGT R12, AX
	MOVQ AX, code+8(FP)
	RET

child:
	JMP ·watch(SB)

DATA threadName<>+0(SB)/8, $"watchdog"
DATA threadName<>+8(SB)/8, $0
GLOBL threadName<>(SB), RODATA|NOPTR, $16

// struct timespec
DATA interval<>+0(SB)/8, $0
DATA interval<>+8(SB)/8, $const_lookEvery
GLOBL interval<>(SB), RODATA|NOPTR, $16

// The watchdog. It never returns, and has no goroutine. R12 counts the looks at nobody.
TEXT ·watch(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $PRCTL, AX
	MOVL $15, DI // PR_SET_NAME
	LEAQ threadName<>(SB), SI
	SYSCALL
	MOVQ $0, R12

look:
	MOVL $NANOSLEEP, AX
	LEAQ interval<>(SB), DI
	MOVL $0, SI
	SYSCALL
	LEAQ ·stays(SB), R8
	MOVQ ·usedStays(SB), R9
	MOVQ $0, R10 // the guests inside

next:
	TESTQ R9, R9
	JEQ  looked
	MOVQ stay_moves(R8), AX
	TESTQ $1, AX
	JEQ  outside
	INCQ R10
	MOVQ stay_seen(R8), DX
	MOVQ AX, stay_seen(R8)
	CMPQ DX, AX
	JNE  outside

	// The stay of the last look. The guest's owner must not free the state from here on.
	MOVQ stay_context(R8), BX
	MOVQ BX, DX
	XCHGQ DX, ·lookedAt(SB)
	CMPQ AX, stay_moves(R8)
	JNE  unseen
	MOVQ $-1, const_stackLimit(BX)
	MOVQ stay_fuel(R8), CX
	TESTQ CX, CX
	JEQ  unseen
	MOVQ (CX), DX
	MOVQ $-const_takenFuel, AX
	MOVQ AX, R11
	SARQ $1, R11
	CMPQ DX, R11
	JLT  unseen // taken already
	LOCK
	XADDQ AX, (CX)

unseen:
	MOVQ $0, ·lookedAt(SB)

outside:
	ADDQ $stay__size, R8
	DECQ R9
	JMP  next

looked:
	TESTQ R10, R10
	JEQ  nobody
	MOVQ $0, R12
	MOVL $0, ·isAsleep(SB)
	JMP  look

nobody:
	INCQ R12
	CMPQ R12, $const_calmLooks
	JLT  look
	JGT  sleep
	MOVL $1, ·isAsleep(SB) // a guest that enters from here on calls, or the next look sees it
	JMP  look

sleep:
	MOVL $FUTEX, AX
	LEAQ ·isAsleep(SB), DI
	MOVL $128, SI // FUTEX_WAIT_PRIVATE
	MOVL $1, DX
	MOVQ $0, R10
	SYSCALL
	CMPL ·isAsleep(SB), $0
	JNE  sleep
	MOVQ $0, R12
	JMP  look
