#include "go_asm.h"
#include "textflag.h"

// System calls.
#define WRITE 1
#define SIGPROCMASK 14
#define NANOSLEEP 35
#define CLONE 56
#define PRCTL 157
#define FUTEX 202
#define CLOCK_GETTIME 228
#define EXIT_GROUP 231

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
DATA interval<>+8(SB)/8, $const_checkEvery
GLOBL interval<>(SB), RODATA|NOPTR, $16

// The watchdog. It never returns, and has no goroutine. R12 counts the checks at nobody.
TEXT ·watch(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $PRCTL, AX
	MOVL $15, DI // PR_SET_NAME
	LEAQ threadName<>(SB), SI
	SYSCALL
	SUBQ $16, SP // a struct timespec
	MOVQ $0, R12

check:
	MOVL $NANOSLEEP, AX
	LEAQ interval<>(SB), DI
	MOVL $0, SI
	SYSCALL
	LEAQ ·stays(SB), BX
	MOVQ ·usedStays(SB), R13
	MOVQ $0, R14 // the guests inside

next:
	TESTQ R13, R13
	JEQ  looked
	MOVQ Stay_moves(BX), R9
	TESTQ $1, R9
	JEQ  done
	INCQ R14
	CMPQ Stay_seen(BX), R9
	JEQ  again
	MOVQ R9, Stay_seen(BX)
	MOVQ $0, Stay_checks(BX)
	MOVQ $const_mostChecks, Stay_due(BX)
	CALL threadTime<>(SB)
	MOVQ AX, Stay_began(BX)
	JMP  done

again:
	INCQ Stay_checks(BX)
	MOVQ $0, R8 // 1 if the guest may keep its stack
	CMPQ Stay_thread(BX), $0
	JEQ  take
	CALL threadTime<>(SB)
	CMPQ Stay_fuel(BX), $0
	JEQ  burst
	CMPQ Stay_checks(BX), $1
	JNE  burst
	MOVQ AX, Stay_began(BX) // it has a burst to reach a loop
	JMP  spare

burst:
	MOVQ Stay_checks(BX), CX
	CMPQ CX, Stay_due(BX)
	JGE  over
	MOVQ AX, DX
	SUBQ Stay_began(BX), DX
	CMPQ DX, $const_burst
	JGE  over
	CMPQ Stay_fuel(BX), $0
	JEQ  done

spare:
	MOVQ $1, R8
	JMP  take

over:
	MOVQ AX, Stay_began(BX) // another burst until it has to leave again
	ADDQ $const_moreChecks, CX
	MOVQ CX, Stay_due(BX)

take:
	// From here on, the owner of the words does not unmap them. All three are of the guest that made
	// the moves: after its call, the stay may have an owner with another kind of limit.
	MOVQ Stay_limit(BX), DI
	MOVQ Stay_fuel(BX), CX
	MOVQ Stay_noStack(BX), SI
	MOVQ DI, DX
	XCHGQ DX, ·takesFrom(SB)
	CMPQ R9, Stay_moves(BX)
	JNE  taken
	TESTQ DI, DI
	JEQ  fuel
	TESTQ R8, R8
	JNE  fuel
	MOVQ SI, (DI)

fuel:
	TESTQ CX, CX
	JEQ  taken
	MOVQ (CX), DX
	MOVQ $-const_takenFuel, AX
	MOVQ AX, R11
	SARQ $1, R11
	CMPQ DX, R11
	JLT  taken // before
	LOCK
	XADDQ AX, (CX)

taken:
	MOVQ $0, ·takesFrom(SB)
	CMPQ Stay_checks(BX), $const_patience
	JLT  done
	MOVQ ·endLength(SB), DX
	TESTQ DX, DX
	JEQ  done
	MOVL $WRITE, AX
	MOVL $2, DI
	MOVQ ·endMessage(SB), SI
	SYSCALL
	MOVL $EXIT_GROUP, AX
	MOVQ ·endCode(SB), DI
	SYSCALL

done:
	ADDQ $Stay__size, BX
	DECQ R13
	JMP  next

looked:
	TESTQ R14, R14
	JEQ  nobody
	MOVQ $0, R12
	MOVL $0, ·isAsleep(SB)
	JMP  check

nobody:
	INCQ R12
	CMPQ R12, $const_calmChecks
	JLT  check
	JGT  sleep
	MOVL $1, ·isAsleep(SB) // a guest that enters from here on calls, or the next check sees it
	JMP  check

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
	JMP  check

// The processor time of the thread of the stay at BX, in AX, in nanoseconds; 0 without a thread.
TEXT threadTime<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ $0, AX
	MOVQ Stay_thread(BX), DI
	TESTQ DI, DI
	JEQ  known
	NOTQ DI
	SHLQ $3, DI
	ORQ  $6, DI // the kernel's number for the clock of a thread
	LEAQ 8(SP), SI // the struct timespec of watch
	MOVQ AX, 0(SI)
	MOVQ AX, 8(SI)
	MOVL $CLOCK_GETTIME, AX
	SYSCALL
	IMUL3Q $1000000000, 8(SP), AX
	ADDQ 16(SP), AX

known:
	RET
