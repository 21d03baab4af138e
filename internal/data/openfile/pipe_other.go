//go:build !unix

package openfile

import (
	"context"
	"errors"
	"os"
)

// withoutWaiting is only for Unix.
const withoutWaiting = 0

// Pipe is only for Unix.
func Pipe(context.Context, string) (*os.File, error) {
	return nil, errors.New("it is a pipe: give it as standard input")
}
