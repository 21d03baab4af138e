package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// disk tracks whether the data folder can be written. It is safe for concurrent use.
type disk struct {
	dir string

	mu       sync.Mutex
	tried    time.Time // time of the last write
	unusable error     // why the last write failed, or nil
}

const (
	// tryAgain is how long the result of a test write is reused, because anyone may request it.
	tryAgain = time.Second
	// keepFree is the number of bytes that must be free; on small disks, the fraction 1/keepPart of
	// the disk must be free instead.
	keepFree = 64 << 20
	keepPart = 20
	// probeSize is the size of a test write: one page, in bytes.
	probeSize = 4096
)

// check returns an error for the client while the disk is full, nearly full or not writable. It
// logs the reason, at most once per tryAgain.
func (d *disk) check(log func(message string, args ...any)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	full := d.checkFree()

	if time.Since(d.tried) >= tryAgain {
		d.tried, d.unusable = time.Now(), d.tryWrite()
		if why := errors.Join(full, d.unusable); why != nil {
			log("the data folder cannot take more", "error", why)
		}
	}
	if full == nil && d.unusable == nil {
		return nil
	}
	return problem.New(http.StatusServiceUnavailable, "disk_full",
		"the server's disk is full, nearly full, or cannot be written")
}

// checkFree checks the free space, which takes a microsecond.
func (d *disk) checkFree() error {
	free, size, err := freeSpace(d.dir)
	if err == nil && free < min(keepFree, size/keepPart) {
		err = fmt.Errorf("the disk is nearly full: %s of %s are free", quantity.IBytes(free), quantity.IBytes(size))
	}
	return err
}

// tryWrite writes to an unlinked file in the data folder.
func (d *disk) tryWrite() error {
	file, err := os.CreateTemp(d.dir, ".probe-*")
	if err != nil {
		return err
	}

	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(make([]byte, probeSize))
	}
	return errors.Join(err, file.Close())
}
