package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/machine/filelock"
	"github.com/rlmhq/rlm/server/internal/access"
)

// claim is the right to use a data folder, which one process holds at a time: a server or a repair.
// It is a lock of the operating system, so it ends when the process ends, for whatever reason.
type claim struct {
	dir  string
	lock *os.File
	// before is the previous owner.
	before owner
	// isLook means that this process only examines the folder, so Close restores the previous
	// owner.
	isLook bool

	mu  sync.Mutex
	now owner // this process
}

// owner describes the owner of a data folder, for display. The lock file contains it.
type owner struct {
	PID     int       `json:"pid,omitempty"`
	Host    string    `json:"host,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Program string    `json:"program,omitempty"` // such as "rlm serve"
	Address string    `json:"address,omitempty"`
	// AuditBytes is the last size of the audit log that the owner recorded.
	AuditBytes int64 `json:"audit_bytes,omitempty"`
}

// serveProgram is the program of a server.
const serveProgram = "rlm serve"

const (
	// claimFile is the lock file in a data folder; maxOwner is the maximum number of bytes that are
	// read from it.
	claimFile = "lock"
	maxOwner  = 4 << 10
	ownerSize = 1 << 10 // maximum size of the written text
	// claimWait is how long a claim waits for a process that is ending, or for its child that has
	// not started its own program yet.
	claimWait = time.Second
)

// InUseError reports that another process uses a data folder.
type InUseError struct {
	Dir   string
	owner owner
}

// Error names the owner and gives advice.
func (e *InUseError) Error() string {
	who := "another process"
	if o := &e.owner; o.PID > 0 {
		who = fmt.Sprintf("process %d on %s (%s", o.PID, o.Host, o.Program)
		if o.Address != "" {
			who += " at " + o.Address
		}
		who += ", since " + o.Since.Format(time.RFC3339) + ")"
	}

	return fmt.Sprintf("the data folder %s is in use by %s: stop that process first, or name another folder "+
		"with --data", e.Dir, who)
}

// Claim claims the folder for a program, which serves at address unless that is empty. It creates
// the folder if necessary. Close the result to let others use the folder. The error is an
// [*InUseError] while another process holds the claim.
func (f Folder) Claim(ctx context.Context, program, address string) (io.Closer, error) {
	c, err := f.claim(ctx, program, address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (f Folder) claim(ctx context.Context, program, address string) (*claim, error) {
	dir := string(f)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	lock, err := openClaim(filepath.Join(dir, claimFile))
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data folder: %w", err)
	}

	got, err := filelock.Try(lock)
	limited, cancel := context.WithTimeout(ctx, claimWait)
	defer cancel()
	for err == nil && !got && limited.Err() == nil {
		select {
		case <-limited.Done():
		case <-time.After(20 * time.Millisecond):
		}
		got, err = filelock.Try(lock)
	}
	if err == nil && !got {
		err = &InUseError{dir, readOwner(lock)}
	} else if err != nil {
		err = fmt.Errorf("cannot lock the data folder %s: %w: choose a folder on a disk that has locks", dir, err)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}

	c := &claim{dir: dir, lock: lock, before: readOwner(lock)}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}

	c.now = owner{
		PID: os.Getpid(), Host: host, Since: time.Now().UTC(), Program: program, Address: address,
		AuditBytes: c.before.AuditBytes,
	}
	c.write(c.now)
	return c, nil
}

// openClaim opens the lock file. Another user's process can open it only for reading, which is
// sufficient for the lock.
func openClaim(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrPermission) {
		file, err = os.Open(path)
	}
	return file, err
}

// readOwner returns the owner that the lock file names, or a zero owner if it names none.
func readOwner(lock *os.File) (o owner) {
	data, err := io.ReadAll(io.NewSectionReader(lock, 0, maxOwner))
	if err != nil || json.Unmarshal(data, &o) != nil {
		return owner{}
	}
	return o
}

// write replaces the owner in the lock file. The lock does not depend on the file's content.
func (c *claim) write(o owner) {
	data, err := json.Marshal(o)
	if err == nil && len(data) < ownerSize {
		line := append(bytes.Repeat([]byte{' '}, ownerSize-1), '\n')
		copy(line, data)
		_, _ = c.lock.WriteAt(line, 0)
	}
}

// noteAudit records the size of the audit log, so that the next owner notices if its end is
// missing.
func (c *claim) noteAudit(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != nil {
		c.now.AuditBytes = size
		c.write(c.now)
	}
}

// auditBytes returns the minimum size of the audit log, in bytes, that the last owner recorded. If
// the owner was a server, the log is not empty, even if the server was killed.
func (c *claim) auditBytes() int64 {
	if c.before.PID > 0 && c.before.Program == serveProgram {
		return max(c.before.AuditBytes, 1)
	}
	return c.before.AuditBytes
}

// Close lets other processes use the folder.
func (c *claim) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock == nil {
		return nil
	}

	left := owner{}
	if c.isLook {
		left = c.before
	} else if info, err := os.Stat(filepath.Join(c.dir, access.AuditFile)); err == nil {
		left.AuditBytes = info.Size()
	}

	c.write(left)
	lock := c.lock
	c.lock = nil
	return lock.Close()
}
