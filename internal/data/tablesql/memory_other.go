//go:build !unix

package tablesql

import "errors"

// canTake is false: memory cannot be taken away here, so an operation of SQLite runs to its end.
const canTake = false

func forbid([]byte) {}

func unmap([]byte) error { return errors.ErrUnsupported }
