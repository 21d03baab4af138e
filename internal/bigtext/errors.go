package bigtext

import (
	"errors"
	"fmt"
)

// ErrChanged is wrapped by the errors that say that a mapped file was changed
// or truncated since it was opened.
var ErrChanged = errors.New("the file changed since it was opened")

// ErrClosed is wrapped by the errors of the methods of a closed text.
var ErrClosed = errors.New("the text is closed")

// ErrRange is wrapped by the errors about offsets that are not in the text.
var ErrRange = errors.New("offset out of range")

// ErrSyntax is wrapped by the errors of CompileRegexp.
var ErrSyntax = errors.New("invalid regular expression")

// ErrTooLarge is wrapped by the errors about a bound that an input exceeds.
var ErrTooLarge = errors.New("too large")

func rangeError(verb string, a, b, n int64) error {
	return fmt.Errorf("cannot %s [%d,%d): %w: give 0 <= a <= b <= %d", verb, a, b, ErrRange, n)
}
