//go:build !linux || !amd64

package wasm

import "github.com/rlmhq/rlm/internal/aot"

func loadCode() (program, error) { return nil, aot.ErrUnsupported }
