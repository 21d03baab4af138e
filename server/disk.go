package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rlmhq/rlm/internal/text/problem"
)

// disk knows whether the data folder can be written. It is safe for concurrent use.
type disk struct {
	dir string

	mu       sync.Mutex
	tried    time.Time // when it wrote last
	unusable error     // why that failed
}

const (
	// tryAgain is how long an attempt to write counts, because anybody may ask.
	tryAgain = time.Second
	// keepFree is how many bytes of the disk have to be free, and keepPart, for small disks, which
	// part of it.
	keepFree = 64 << 20
	keepPart = 20
	// probeSize is how many bytes are written to see that they can be, as many as a page has.
	probeSize = 4096
)

// check returns an error for the client while the disk is full, or nearly so, or cannot be written.
// The log has the reason, at most once in tryAgain.
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

// checkFree asks for the free space, which takes a microsecond.
func (d *disk) checkFree() error {
	free, size, err := freeSpace(d.dir)
	if err == nil && free < min(keepFree, size/keepPart) {
		err = fmt.Errorf("the disk is nearly full: %s of %s are free", humanize.IBytes(free), humanize.IBytes(size))
	}
	return err
}

// tryWrite writes a file that has no name any more.
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
