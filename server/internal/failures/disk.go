package failures

import (
	"errors"
	"slices"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// diskErrors are the errors of a disk that is full, read-only or broken, which SQLite often cannot
// distinguish. The same request may succeed later.
var diskErrors = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO,
	sqlite3.FULL, sqlite3.READONLY, sqlite3.IOERR, sqlite3.CANTOPEN,
}

// IsDisk reports whether an error is a failure of the disk.
func IsDisk(err error) bool {
	return slices.ContainsFunc(diskErrors, func(known error) bool { return errors.Is(err, known) })
}
