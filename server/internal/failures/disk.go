package failures

import (
	"errors"
	"slices"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// diskErrors are the errors of a disk that is full, read-only or broken. SQLite often cannot tell
// these apart. They may go away without a change to the request.
var diskErrors = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO,
	sqlite3.FULL, sqlite3.READONLY, sqlite3.IOERR, sqlite3.CANTOPEN,
}

// IsDisk reports whether an error comes from the disk.
func IsDisk(err error) bool {
	return slices.ContainsFunc(diskErrors, func(known error) bool { return errors.Is(err, known) })
}
