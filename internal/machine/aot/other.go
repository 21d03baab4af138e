//go:build !linux || !(amd64 || arm64)

package aot

import "os"

func checkProcessor() error { return ErrUnsupported }

func copyCode([]byte, []Segment) ([]byte, error) { return nil, ErrUnsupported }

func mapCode(*os.File, int64, *Header) ([]byte, error) { return nil, ErrUnsupported }

func unmapCode([]byte) error { return ErrUnsupported }

type guardedCode struct{}

func (p *Program) guard() error { return ErrUnsupported }

func (p *Program) unguard() {}

// Check returns an error: no guest can run.
func (p *Program) Check() error { return ErrUnsupported }
