//go:build !unix

package openfile

import (
	"context"
	"errors"
	"os"
)

// withoutWaiting is for Unix.
const withoutWaiting = 0

// Pipe is for Unix.
func Pipe(context.Context, string) (*os.File, error) {
	return nil, errors.New("it is a pipe: give it as standard input")
}
