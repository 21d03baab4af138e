package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rlmhq/rlm/internal/serve/problem"
)

// disk knows whether the data folder can be written. It looks at most once in a while, because
// anybody may ask. It is safe for concurrent use.
type disk struct {
	dir string

	mu     sync.Mutex
	looked time.Time
	err    error
}

const (
	// lookAgain is how long a look at the disk counts.
	lookAgain = time.Second
	// keepFree is how many bytes of the disk have to be free, and keepPart, for small disks, which
	// part of it.
	keepFree = 64 << 20
	keepPart = 20
	// probeSize is how many bytes are written to see that they can be, as many as a page has.
	probeSize = 4096
)

// check returns an error for the client while the disk is full, or nearly so, or cannot be written.
// The log has the reason.
func (d *disk) check(log func(message string, args ...any)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.looked) < lookAgain {
		return d.err
	}

	why := d.look()
	d.looked, d.err = time.Now(), nil
	if why != nil {
		log("the data folder cannot take more", "error", why)
		d.err = problem.New(http.StatusServiceUnavailable, "disk_full",
			"the server's disk is full, nearly full, or cannot be written")
	}
	return d.err
}

// look writes a file that has no name any more, and asks for the free space.
func (d *disk) look() error {
	file, err := os.CreateTemp(d.dir, ".probe-*")
	if err != nil {
		return err
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(make([]byte, probeSize))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}

	free, size, err := freeSpace(d.dir)
	if err == nil && free < min(keepFree, size/keepPart) {
		err = fmt.Errorf("the disk is nearly full: %s of %s are free", humanize.IBytes(free), humanize.IBytes(size))
	}
	return err
}
