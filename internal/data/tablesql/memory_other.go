//go:build !unix

package tablesql

import "errors"

// canTake is false: an operation of SQLite continues until it ends.
const canTake = false

func forbid([]byte) {}

func unmap([]byte) error { return errors.ErrUnsupported }
