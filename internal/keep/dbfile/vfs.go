package dbfile

import (
	"bytes"
	"encoding/binary"
	"net/url"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// VFS is the name of the virtual file system of databases with checksums.
const VFS = "rlm"

func init() { vfs.Register(VFS, files{vfs.Find("")}) }

// Address returns the URI of a database with additional parameters, as name=value pairs.
func Address(path string, parameters ...string) string {
	query := url.Values{"vfs": {VFS}}
	for i := 0; i+1 < len(parameters); i += 2 {
		query.Add(parameters[i], parameters[i+1])
	}
	address := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return address.String()
}

// files is the operating system's file system, with numbered pages in databases.
type files struct{ vfs.VFS }

// Open implements [vfs.VFS].
func (f files) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name == "" { // a temporary file
		return f.OpenFilename(nil, flags)
	}
	return nil, flags, sqlite3.CANTOPEN
}

// OpenFilename implements [vfs.VFSFilename].
func (f files) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	opened, flags, err := vfsutil.WrapOpenFilename(f.VFS, name, flags)
	if err != nil || flags&vfs.OPEN_MAIN_DB == 0 {
		return opened, flags, err
	}
	return &numbered{File: opened}, flags, nil
}

// The sizes are in bytes. Databases of this program have pages of SQLite's default size.
const (
	pageSize = 4096
	sumSize  = 8
	usable   = pageSize - sumSize
)

// numbered is the file of a database. The checksum of a page covers its content and its number.
type numbered struct {
	vfs.File
	hasSums bool
	page    [pageSize]byte // on its way to the disk
}

// ReadAt implements [vfs.File].
func (n *numbered) ReadAt(p []byte, off int64) (int, error) {
	read, err := n.File.ReadAt(p, off)
	n.look(p[:read], off)
	if n.isPage(p[:read], off) {
		number(p, off/pageSize+1)
	}
	return read, err
}

// WriteAt implements [vfs.File]. It leaves SQLite's page unchanged.
func (n *numbered) WriteAt(p []byte, off int64) (int, error) {
	n.look(p, off)
	if n.isPage(p, off) {
		copy(n.page[:], p)
		p = n.page[:]
		number(p, off/pageSize+1)
	}
	return n.File.WriteAt(p, off)
}

// look determines from the first page whether pages have checksums.
func (n *numbered) look(p []byte, off int64) {
	if off == 0 && len(p) >= headerSize && bytes.HasPrefix(p, []byte(magic)) {
		n.hasSums = p[reservedAt] == sumSize
	}
}

func (n *numbered) isPage(p []byte, off int64) bool {
	return n.hasSums && len(p) == pageSize && off%pageSize == 0
}

// number mixes the number of a page into its checksum, or removes it. It does not change the first
// page, which is never all zeros, so that earlier programs can read the version that they refuse.
func number(page []byte, n int64) {
	if n == 1 {
		return
	}
	sum := page[usable:pageSize]
	mixed := binary.LittleEndian.Uint64(sum) ^ uint64(n)*0x9e3779b97f4a7c15 //nolint:gosec // a page number
	binary.LittleEndian.PutUint64(sum, mixed)
}

// The methods below expose capabilities of the system's file.

// Unwrap implements [vfs.FileUnwrap].
func (n *numbered) Unwrap() vfs.File { return n.File }

// SharedMemory implements [vfs.FileSharedMemory].
func (n *numbered) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(n.File) }

// LockState implements [vfs.FileLockState].
func (n *numbered) LockState() vfs.LockLevel { return vfsutil.WrapLockState(n.File) }

// PersistWAL implements [vfs.FilePersistWAL].
func (n *numbered) PersistWAL() bool { return vfsutil.WrapPersistWAL(n.File) }

// SetPersistWAL implements [vfs.FilePersistWAL].
func (n *numbered) SetPersistWAL(keep bool) { vfsutil.WrapSetPersistWAL(n.File, keep) }

// PowersafeOverwrite implements [vfs.FilePowersafeOverwrite].
func (n *numbered) PowersafeOverwrite() bool { return vfsutil.WrapPowersafeOverwrite(n.File) }

// SetPowersafeOverwrite implements [vfs.FilePowersafeOverwrite].
func (n *numbered) SetPowersafeOverwrite(is bool) { vfsutil.WrapSetPowersafeOverwrite(n.File, is) }

// SizeHint implements [vfs.FileSizeHint].
func (n *numbered) SizeHint(size int64) error { return vfsutil.WrapSizeHint(n.File, size) }

// HasMoved implements [vfs.FileHasMoved].
func (n *numbered) HasMoved() (bool, error) { return vfsutil.WrapHasMoved(n.File) }

// BusyHandler implements [vfs.FileBusyHandler].
func (n *numbered) BusyHandler(handler func() bool) { vfsutil.WrapBusyHandler(n.File, handler) }
