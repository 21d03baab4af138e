//go:build !linux || !(amd64 || arm64)

package wasm

import "github.com/rlmhq/rlm/internal/machine/aot"

func loadCode(Options) (*aot.Program, error) { return nil, aot.ErrUnsupported }

func newAOTProgram(*aot.Program) (program, error) { return nil, aot.ErrUnsupported }
