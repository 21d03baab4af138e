package outfiles

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Folder bounds the files below [tiers.OutFolder]. In each tier, the folder holds no more.
var Folder = Limits{Bytes: 64 << 20, Entries: 4096 + 1}

// collectIn bounds the time of a collection.
const collectIn = 30 * time.Second

// Collect copies the files below [tiers.OutFolder] into a folder of the host. Pack runs code in the
// guest, apart from the session's accounts, that writes them to its output as a tar stream. The
// code runs next to hostile code, so the stream is hostile, too.
func Collect(
	cfg *tiers.Config, dir string, pack func(limits tiers.Limits) (tiers.Result, error),
) (tiers.Collected, error) {
	if !cfg.Out {
		return tiers.Collected{}, errors.New(
			"cannot collect files: the session was opened without a folder for them",
		)
	}

	// The stream has the files, and a header of a few blocks for each.
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
	return Unpack(strings.NewReader(r.Stdout), dir, Folder)
}

// Join returns what two collections brought together.
func Join(a, b tiers.Collected) tiers.Collected {
	a.Files, a.Bytes = a.Files+b.Files, a.Bytes+b.Bytes
	a.Refused = append(a.Refused, b.Refused...)
	if a.Lost != "" && b.Lost != "" {
		a.Lost += "; "
	}
	a.Lost += b.Lost
	return a
}
