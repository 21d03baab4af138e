//go:build !linux || !amd64

package aot

func checkProcessor() error { return ErrUnsupported }

func mapCode([]byte, []Segment) ([]byte, error) { return nil, ErrUnsupported }

func unmapCode([]byte) error { return ErrUnsupported }
