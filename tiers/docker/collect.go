package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/dockerapi"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker/internal/outfiles"
)

// collectIn bounds the time of a collection.
const collectIn = 30 * time.Second

// packed bounds the stream of a collection, in bytes: the files, and a header of a few
// blocks for each.
const packed = dockerapi.FilesSize + 4096*dockerapi.FilesCount

// packSource makes the guest write the files of /out to its output, as a tar stream. It runs
// next to hostile code, so the stream is hostile, too.
const packSource = `exec("""
import io, sys, tarfile
class Out(io.RawIOBase):
    def writable(self): return True
    def write(self, data):
        sys.stdout.buffer.write(data)
        return len(data)
with io.BufferedWriter(Out(), 1 << 20) as out:
    with tarfile.open(fileobj=out, mode='w|', format=tarfile.PAX_FORMAT) as pack:
        pack.add('/out', '.')
sys.stdout.flush()
""", {})`

// Collect copies the files below /out into a folder of the host.
func (s *sandbox) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	leave, err := s.Enter()
	if err != nil {
		return tiers.Collected{}, err
	}
	defer leave()
	if !s.Accounts.Config().Out {
		return tiers.Collected{}, errors.New(
			"cannot collect files: the session was opened without a folder for them",
		)
	}
	r, err := s.python.RunAside(ctx, tiers.Limits{Wall: collectIn, Output: packed}, packSource)
	if err != nil {
		return tiers.Collected{}, fmt.Errorf("cannot copy the files out of the container: %w", err)
	}

	if r.Status != tiers.StatusOK || r.Dropped > 0 {
		why := string(r.Status) + " " + string(r.Limit)
		if r.Exception != nil {
			why = r.Exception.Type + ": " + r.Exception.Message
		}
		return tiers.Collected{}, fmt.Errorf(
			"cannot copy the files out of the container: packing them ended with %s",
			strings.TrimSpace(why),
		)
	}

	got, err := outfiles.Unpack(
		strings.NewReader(r.Stdout), dir,
		outfiles.Limits{Bytes: dockerapi.FilesSize, Entries: dockerapi.FilesCount + 1},
	)
	if s.started > 1 {
		got.Lost = "the session moved to a new container, and the files of the old one are lost"
	}

	return got, err
}
