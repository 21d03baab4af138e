package outfiles

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Folder bounds the files below [tiers.OutFolder]. No tier's folder holds more.
var Folder = Limits{Bytes: 64 << 20, Entries: 4096 + 1}

// collectIn bounds the time of a collection.
const collectIn = 30 * time.Second

// Collect copies the files below [tiers.OutFolder] into a folder of the host. The function pack
// runs code in the guest that writes the files to its output as a tar stream, without charging the
// session's accounts. That code runs next to hostile code, so the stream is hostile, too.
func Collect(
	cfg *tiers.Config, dir string, pack func(limits tiers.Limits) (tiers.Result, error),
) (tiers.Collected, error) {
	if !cfg.Out {
		return tiers.Collected{}, errors.New(
			"cannot collect files: the session was opened without a folder for them",
		)
	}

	// The stream contains the files, each with a header of a few blocks.
	packed := Folder.Bytes + 4096*int64(Folder.Entries)
	r, err := pack(tiers.Limits{Wall: collectIn, Output: packed, Memory: cfg.Limits.Memory})
	if err != nil {
		return tiers.Collected{}, fmt.Errorf("cannot copy the files out of the sandbox: %w", err)
	}
	if r.Status != tiers.StatusOK || r.Dropped > 0 {
		why := string(r.Status) + " " + string(r.Limit)
		if r.Exception != nil {
			why = r.Exception.Type + ": " + r.Exception.Message
		}
		return tiers.Collected{}, fmt.Errorf(
			"cannot copy the files out of the sandbox: packing them ended with %s",
			strings.TrimSpace(why),
		)
	}
	if to := redirected(dir); to != nil {
		_, err := io.WriteString(to, r.Stdout)
		return tiers.Collected{}, err
	}
	return Unpack(strings.NewReader(r.Stdout), dir, Folder)
}

// redirections holds the writers of Redirect, by the folders that they replace.
var redirections sync.Map

// Redirect makes Collect write the tar stream for a folder to a writer instead, until undo is
// called. It is for a locked-down process without access to folders, where another process unpacks
// the stream.
func Redirect(dir string, to io.Writer) (undo func()) {
	redirections.Store(dir, to)
	return func() { redirections.Delete(dir) }
}

func redirected(dir string) io.Writer {
	to, _ := redirections.Load(dir)
	writer, _ := to.(io.Writer)
	return writer
}

// Join returns the sum of two collections.
func Join(a, b tiers.Collected) tiers.Collected {
	a.Files, a.Bytes = a.Files+b.Files, a.Bytes+b.Bytes
	a.Refused = append(a.Refused, b.Refused...)
	if a.Lost != "" && b.Lost != "" {
		a.Lost += "; "
	}
	a.Lost += b.Lost
	return a
}
