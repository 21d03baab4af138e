package cpython

import (
	_ "embed" // the machine code
	"runtime"
)

//go:embed code_arm64.zst
var codeBytes []byte

// Code returns the module's machine code for this system, a blob of package aot.
func Code() ([]byte, error) { return open(machineCode.Code[runtime.GOARCH], codeBytes) }
