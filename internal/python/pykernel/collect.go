package pykernel

import (
	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	"github.com/rlmhq/rlm/tiers"
)

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

// Collect copies the files below /out into a folder of the host. run runs source in the guest,
// without charging the session's accounts. isRenewed reports that the session lost an earlier
// guest, along with its files.
func Collect(
	cfg tiers.Config, dir string, isRenewed bool,
	run func(limits tiers.Limits, source string) (tiers.Result, error),
) (tiers.Collected, error) {
	got, err := outfiles.Collect(&cfg, dir, func(limits tiers.Limits) (tiers.Result, error) {
		return run(limits, packSource)
	})
	if isRenewed {
		got.Lost = "the session began again in a new sandbox, and the files of the old one are lost"
	}
	return got, err
}
