#include "go_asm.h"
#include "textflag.h"

// System calls.
#define FUTEX 98
#define NANOSLEEP 101
#define SIGPROCMASK 135
#define PRCTL 167
#define CLONE 220

// CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
#define THREAD 0x50f00

// func startThread(top uintptr) (code int)
//
// The thread inherits the mask of signals. Go's handlers would not know it.
TEXT ·startThread(SB), NOSPLIT, $16-16
	MOVD $-1, R0
	MOVD R0, all-8(SP)
	MOVD $2, R0 // SIG_SETMASK
	MOVD $all-8(SP), R1
	MOVD $old-16(SP), R2
	MOVD $8, R3
	MOVD $SIGPROCMASK, R8
	SVC

	MOVD $THREAD, R0
	MOVD top+0(FP), R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $CLONE, R8
	SVC
	CBZ  R0, child
	NEG  R0, R9 // an error number is above 0, the number of a thread below

	MOVD $2, R0
	MOVD $old-16(SP), R1
	MOVD $0, R2
	MOVD $8, R3
	MOVD $SIGPROCMASK, R8
	SVC

	CMP  $0, R9
	CSEL GT, R9, ZR, R0
	MOVD R0, code+8(FP)
	RET

child:
	B ·watch(SB)

DATA threadName<>+0(SB)/8, $"watchdog"
DATA threadName<>+8(SB)/8, $0
GLOBL threadName<>(SB), RODATA|NOPTR, $16

// struct timespec
DATA interval<>+0(SB)/8, $0
DATA interval<>+8(SB)/8, $const_lookEvery
GLOBL interval<>(SB), RODATA|NOPTR, $16

// The watchdog. It never returns, and has no goroutine. R19 counts the looks at nobody.
TEXT ·watch(SB), NOSPLIT|NOFRAME, $0-0
	MOVD $15, R0 // PR_SET_NAME
	MOVD $threadName<>(SB), R1
	MOVD $PRCTL, R8
	SVC
	MOVD $0, R19

look:
	MOVD $interval<>(SB), R0
	MOVD $0, R1
	MOVD $NANOSLEEP, R8
	SVC
	MOVD $·stays(SB), R20
	MOVD ·usedStays(SB), R21
	MOVD $0, R22 // the guests inside

next:
	CBZ  R21, looked
	MOVD stay_moves(R20), R9
	TBZ  $0, R9, outside
	ADD  $1, R22
	MOVD stay_seen(R20), R10
	MOVD R9, stay_seen(R20)
	CMP  R10, R9
	BNE  outside

	// The stay of the last look. The guest's owner must not free the state from here on.
	MOVD stay_context(R20), R11
	MOVD $·lookedAt(SB), R12
	MOVD R11, (R12)
	DMB  $0xb // ISH
	MOVD stay_moves(R20), R10
	CMP  R10, R9
	BNE  unseen
	MOVD $-1, R10
	MOVD R10, const_stackLimit(R11)
	MOVD stay_fuel(R20), R13
	CBZ  R13, unseen
	MOVD $const_takenFuel, R14
	NEG  R14, R15
	ASR  $1, R15, R15

take:
	LDAXR (R13), R10
	CMP  R15, R10
	BLT  taken
	SUB  R14, R10
	STLXR R10, (R13), R16
	CBNZ R16, take
	B    unseen

taken:
	CLREX

unseen:
	DMB  $0xb
	MOVD $·lookedAt(SB), R12
	STLR ZR, (R12)

outside:
	ADD  $stay__size, R20
	SUB  $1, R21
	B    next

looked:
	MOVD $·isAsleep(SB), R12
	CBZ  R22, nobody
	MOVD $0, R19
	MOVW ZR, (R12)
	B    look

nobody:
	ADD  $1, R19
	CMP  $const_calmLooks, R19
	BLT  look
	BGT  sleep
	MOVD $1, R10
	MOVW R10, (R12) // a guest that enters from here on calls, or the next look sees it
	B    look

sleep:
	MOVD $·isAsleep(SB), R0
	MOVD $128, R1 // FUTEX_WAIT_PRIVATE
	MOVD $1, R2
	MOVD $0, R3
	MOVD $FUTEX, R8
	SVC
	MOVD $·isAsleep(SB), R12
	MOVWU (R12), R10
	CBNZ R10, sleep
	MOVD $0, R19
	B    look
