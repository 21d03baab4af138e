//go:build !unix

package openfile

import (
	"context"
	"errors"
	"os"
)

// withoutWaiting has an effect only on Unix.
const withoutWaiting = 0

// Pipe returns an error: it is supported only on Unix.
func Pipe(context.Context, string) (*os.File, error) {
	return nil, errors.New("it is a pipe: give it as standard input")
}
