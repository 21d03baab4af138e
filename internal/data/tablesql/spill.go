package tablesql

import (
	"errors"
	"strconv"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// spill is the disk space of an engine. SQLite sorts the rows of GROUP BY and ORDER BY, and writes
// data too large for memory to temporary files, which have no name. Their size is bounded, and they
// occupy at most half of the free space. There are no other files.
type spill struct {
	name    string
	left    int64
	used    int64
	checked int64             // bytes that may be used until the next check of the free space
	files   map[*spilled]bool // the open files
}

// spaceStep is how many bytes the files grow between two checks of the free space.
const spaceStep = 1 << 20

// newSpill registers a file system of SQLite (a VFS) for one engine, which names it when it opens
// its database.
func newSpill(size int64) *spill {
	s := &spill{name: "rlm-spill-" + strconv.FormatInt(lastFile.Add(1), 10), left: size, files: map[*spilled]bool{}}
	vfs.Register(s.name, s)
	return s
}

// forget releases the disk space. An engine that ran out of memory leaves its files open.
func (s *spill) forget() {
	vfs.Unregister(s.name)
	for file := range s.files {
		_ = file.Close() // no longer read
	}
}

// Open creates a temporary file.
func (s *spill) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name != "" || flags&vfs.OPEN_DELETEONCLOSE == 0 {
		return nil, 0, sqlite3.CANTOPEN
	}
	file, flags, err := vfs.Find("").Open("", flags)
	if err != nil {
		return nil, 0, sqlite3.IOERR_GETTEMPPATH
	}

	f := &spilled{File: file, disk: s}
	s.files[f] = true
	return f, flags, nil
}

// Delete never finds a file.
func (s *spill) Delete(string, bool) error { return sqlite3.IOERR_DELETE_NOENT }

// Access never finds a file.
func (s *spill) Access(string, vfs.AccessFlag) (bool, error) { return false, nil }

// FullPathname returns a name unchanged.
func (s *spill) FullPathname(name string) (string, error) { return name, nil }

// spilled is a temporary file. Its size counts towards the engine's disk space.
type spilled struct {
	vfs.File

	disk *spill
	size int64
}

// WriteAt writes, unless the file would then exceed the engine's disk space.
func (f *spilled) WriteAt(data []byte, offset int64) (int, error) {
	end := offset + int64(len(data))
	if err := f.resize(max(f.size, end)); err != nil {
		return 0, err
	}

	n, err := f.File.WriteAt(data, offset)
	if errors.Is(err, syscall.ENOSPC) {
		err = sqlite3.FULL
	}
	return n, err
}

// Truncate releases bytes, or reserves more.
func (f *spilled) Truncate(size int64) error {
	if err := f.resize(size); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Close releases all bytes.
func (f *spilled) Close() error {
	_ = f.resize(0) // always fits
	delete(f.disk.files, f)
	return f.File.Close()
}

func (f *spilled) resize(size int64) error {
	disk, more := f.disk, size-f.size
	if more > disk.left {
		return sqlite3.FULL
	}
	if file, isReal := f.File.(interface{ Fd() uintptr }); isReal && disk.used+more > disk.checked {
		if err := bigtext.CheckSpace(file, more+spaceStep, disk.used); err != nil {
			return sqlite3.FULL
		}
		disk.checked = disk.used + more + spaceStep
	}

	disk.left, disk.used = disk.left-more, disk.used+more
	f.size = size
	return nil
}
