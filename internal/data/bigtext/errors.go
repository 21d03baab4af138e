package bigtext

import (
	"errors"
	"fmt"
)

// ErrChanged says that a mapped file was changed or truncated after it was opened.
var ErrChanged = errors.New("the file changed since it was opened")

// errClosed says that a text was used after Close.
var errClosed = errors.New("the text is closed")

// errRange says that an offset is not in the text.
var errRange = errors.New("offset out of range")

// errSyntax says that a regular expression is invalid.
var errSyntax = errors.New("invalid regular expression")

// ErrTooLarge says that an input exceeds a bound.
var ErrTooLarge = errors.New("too large")

func rangeError(verb string, a, b, n int64) error {
	return fmt.Errorf("cannot %s [%d,%d): %w: give 0 <= a <= b <= %d", verb, a, b, errRange, n)
}
