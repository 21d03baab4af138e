package bigtext

import (
	"errors"
	"fmt"
)

// ErrChanged reports that a mapped file was changed or truncated after it was opened.
var ErrChanged = errors.New("the file changed since it was opened")

// errClosed reports that a text was used after Close.
var errClosed = errors.New("the text is closed")

// errRange reports an offset outside the text.
var errRange = errors.New("offset out of range")

// errSyntax reports an invalid regular expression.
var errSyntax = errors.New("invalid regular expression")

// ErrTooLarge reports an input that exceeds a bound.
var ErrTooLarge = errors.New("too large")

func rangeError(verb string, a, b, n int64) error {
	return fmt.Errorf("cannot %s [%d,%d): %w: give 0 <= a <= b <= %d", verb, a, b, errRange, n)
}
