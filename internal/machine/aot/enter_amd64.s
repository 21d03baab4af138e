//go:build linux

#include "textflag.h"

// func enter(context unsafe.Pointer, target uintptr)
//
// The code at target switches to the guest's stack, and returns to enter's caller. It restores
// the stack and frame pointers of Go; Go keeps nothing else in registers over this call.
TEXT ·enter(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ context+0(FP), DI
	MOVQ target+8(FP), AX
	MOVQ SP, 0(DI)
	MOVQ BP, 8(DI)
	JMP  AX
