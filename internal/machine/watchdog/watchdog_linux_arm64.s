#include "go_asm.h"
#include "textflag.h"

// System calls.
#define WRITE 64
#define EXIT_GROUP 94
#define FUTEX 98
#define NANOSLEEP 101
#define CLOCK_GETTIME 113
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
DATA interval<>+8(SB)/8, $const_checkEvery
GLOBL interval<>(SB), RODATA|NOPTR, $16

// The watchdog. It never returns, and has no goroutine. R19 counts the checks at nobody.
TEXT ·watch(SB), NOSPLIT|NOFRAME, $0-0
	MOVD $15, R0 // PR_SET_NAME
	MOVD $threadName<>(SB), R1
	MOVD $PRCTL, R8
	SVC
	SUB  $16, RSP // a struct timespec
	MOVD $0, R19

check:
	MOVD $interval<>(SB), R0
	MOVD $0, R1
	MOVD $NANOSLEEP, R8
	SVC
	MOVD $·stays(SB), R20
	MOVD ·usedStays(SB), R21
	MOVD $0, R22 // the guests inside

next:
	CBZ  R21, looked
	MOVD Stay_moves(R20), R23
	TBZ  $0, R23, done
	ADD  $1, R22
	MOVD Stay_seen(R20), R10
	CMP  R10, R23
	BEQ  again
	MOVD R23, Stay_seen(R20)
	MOVD ZR, Stay_checks(R20)
	MOVD $const_mostChecks, R10
	MOVD R10, Stay_due(R20)
	BL   threadTime<>(SB)
	MOVD R0, Stay_began(R20)
	B    done

again:
	MOVD Stay_checks(R20), R10
	ADD  $1, R10
	MOVD R10, Stay_checks(R20)
	MOVD $0, R24 // 1 if the guest may keep its stack
	MOVD Stay_thread(R20), R10
	CBZ  R10, take
	BL   threadTime<>(SB)
	MOVD Stay_checks(R20), R13
	MOVD Stay_fuel(R20), R14
	CBZ  R14, burst
	CMP  $1, R13
	BNE  burst
	MOVD R0, Stay_began(R20) // it has a burst to reach a loop
	B    spare

burst:
	MOVD Stay_due(R20), R10
	CMP  R10, R13
	BGE  over
	MOVD Stay_began(R20), R10
	SUB  R10, R0, R11
	MOVD $const_burst, R12
	CMP  R12, R11
	BGE  over
	CBZ  R14, done

spare:
	MOVD $1, R24
	B    take

over:
	MOVD R0, Stay_began(R20) // another burst until it has to leave again
	ADD  $const_moreChecks, R13
	MOVD R13, Stay_due(R20)

take:
	// From here on, the owner of the words does not unmap them. All three are of the guest that made
	// the moves: after its call, the stay may have an owner with another kind of limit.
	MOVD Stay_limit(R20), R11
	MOVD Stay_fuel(R20), R13
	MOVD Stay_noStack(R20), R9
	MOVD $·takesFrom(SB), R12
	MOVD R11, (R12)
	DMB  $0xb // ISH
	MOVD Stay_moves(R20), R10
	CMP  R10, R23
	BNE  taken
	CBZ  R11, fuel
	CBNZ R24, fuel
	MOVD R9, (R11)

fuel:
	CBZ  R13, taken
	MOVD $const_takenFuel, R14
	NEG  R14, R15
	ASR  $1, R15, R15

try:
	LDAXR (R13), R10
	CMP  R15, R10
	BLT  before
	SUB  R14, R10
	STLXR R10, (R13), R16
	CBNZ R16, try
	B    taken

before:
	CLREX

taken:
	DMB  $0xb
	MOVD $·takesFrom(SB), R12
	STLR ZR, (R12)
	MOVD Stay_checks(R20), R10
	CMP  $const_patience, R10
	BLT  done
	MOVD ·endLength(SB), R2
	CBZ  R2, done
	MOVD $2, R0
	MOVD ·endMessage(SB), R1
	MOVD $WRITE, R8
	SVC
	MOVD ·endCode(SB), R0
	MOVD $EXIT_GROUP, R8
	SVC

done:
	ADD  $Stay__size, R20
	SUB  $1, R21
	B    next

looked:
	MOVD $·isAsleep(SB), R12
	CBZ  R22, nobody
	MOVD $0, R19
	MOVW ZR, (R12)
	B    check

nobody:
	ADD  $1, R19
	CMP  $const_calmChecks, R19
	BLT  check
	BGT  sleep
	MOVD $1, R10
	MOVW R10, (R12) // a guest that enters from here on calls, or the next check sees it
	B    check

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
	B    check

// The processor time of the thread of the stay at R20, in R0, in nanoseconds; 0 without a thread.
TEXT threadTime<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD Stay_thread(R20), R0
	CBZ  R0, known
	MVN  R0, R0
	LSL  $3, R0
	ORR  $6, R0 // the kernel's number for the clock of a thread
	MOVD RSP, R1 // the struct timespec of watch
	MOVD ZR, 0(R1)
	MOVD ZR, 8(R1)
	MOVD $CLOCK_GETTIME, R8
	SVC
	MOVD RSP, R1
	MOVD 0(R1), R0
	MOVD $1000000000, R2
	MUL  R2, R0
	MOVD 8(R1), R3
	ADD  R3, R0

known:
	RET
