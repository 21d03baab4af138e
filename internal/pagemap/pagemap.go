// Package pagemap reads which pages of this process are private: the kernel's table of them.
//
// A process that has locked itself down cannot open the table any more. It opens it before, with
// [Keep].
package pagemap

import "os"

// kept is the table of a process that cannot open it any more. It is set before other goroutines
// read it.
var kept *os.File

// Keep opens the table for all later calls of Open.
func Keep() (err error) {
	kept, err = open()
	return err
}

// Open returns the table, eight bytes for each page of the address space, and how to close it.
func Open() (table *os.File, closeTable func(), err error) {
	if kept != nil {
		return kept, func() {}, nil
	}
	table, err = open()
	return table, func() { _ = table.Close() }, err
}

func open() (*os.File, error) { return os.Open("/proc/self/pagemap") }
