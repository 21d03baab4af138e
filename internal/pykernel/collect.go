package pykernel

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/outfiles"
	"github.com/rlmhq/rlm/tiers"
)

// OutLimits bound the files below [tiers.OutFolder]. In each tier, the folder holds no more.
var OutLimits = outfiles.Limits{Bytes: 64 << 20, Entries: 4096 + 1}

// collectIn bounds the time of a collection.
const collectIn = 30 * time.Second

// packSource makes the guest write the files of /out to its output, as a tar stream. It runs
// next to hostile code, so the stream is hostile, too.
const packSource = `exec("""
import io, os, sys, tarfile
class Out(io.RawIOBase):
    def writable(self): return True
    def write(self, data):
        sys.stdout.buffer.write(data)
        return len(data)
def add(path, name):
    info = pack.gettarinfo(path, name)
    if info is None: return
    if info.isreg():
        with open(path, 'rb') as file: pack.addfile(info, file)
        return
    pack.addfile(info)
    if info.isdir():
        for entry in sorted(os.listdir(path)): add(path + '/' + entry, name + '/' + entry)
with io.BufferedWriter(Out(), 1 << 20) as out:
    with tarfile.open(fileobj=out, mode='w|', format=tarfile.PAX_FORMAT) as pack:
        if os.path.isdir('/out'): add('/out', '.')
sys.stdout.flush()
""", {})`

// Collect copies the files below /out into a folder of the host. run runs source in the guest
// apart from the session's accounts. isRenewed says that the session lost an earlier guest, and
// its files with it.
func Collect(
	cfg tiers.Config, dir string, isRenewed bool,
	run func(limits tiers.Limits, source string) (tiers.Result, error),
) (tiers.Collected, error) {
	if !cfg.Out {
		return tiers.Collected{}, errors.New(
			"cannot collect files: the session was opened without a folder for them",
		)
	}

	// The stream has the files, and a header of a few blocks for each.
	packed := OutLimits.Bytes + 4096*int64(OutLimits.Entries)
	limits := tiers.Limits{Wall: collectIn, Output: packed, Memory: cfg.Limits.Memory}
	r, err := run(limits, packSource)
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

	got, err := outfiles.Unpack(strings.NewReader(r.Stdout), dir, OutLimits)
	if isRenewed {
		got.Lost = "the session began again in a new sandbox, and the files of the old one are lost"
	}
	return got, err
}
