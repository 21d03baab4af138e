//go:build !unix

package inputs

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/internal/bigtext"
)

// readPipe is for Unix.
func (r *reader) readPipe(context.Context, string) (*bigtext.Text, error) {
	return nil, errors.New("it is a pipe: give it as standard input")
}
