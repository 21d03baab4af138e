//go:build linux

#include "textflag.h"

// func enter(context unsafe.Pointer, target uintptr)
//
// The code at target switches to the guest's stack, and returns to enter's caller. It restores
// the stack and frame pointers of Go, and never changes R28, where Go has its goroutine: a
// signal's handler reads it. Go keeps nothing else in registers over this call.
TEXT ·enter(SB), NOSPLIT|NOFRAME, $0-16
	MOVD context+0(FP), R0
	MOVD target+8(FP), R1
	MOVD RSP, R2
	MOVD R2, 0(R0)
	MOVD R29, 8(R0)
	MOVD R30, 16(R0)
	JMP  (R1)
