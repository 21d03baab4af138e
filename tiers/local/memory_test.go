//go:build unix

package local_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
)

// keepsBuffers fills the buffers of more than 2000 sockets, and waits.
const keepsBuffers = `
import os, socket, time
for child in range(10):
    if os.fork() == 0:
        pairs = [socket.socketpair() for _ in range(110)]
        for end in sum(pairs, ()):
            end.setblocking(False)
            try:
                while True: end.send(bytes(1 << 15))
            except BlockingIOError: pass
        time.sleep(3)
        os._exit(0)
time.sleep(3)`

// keepsFiles fills the scratch folders, and waits.
const keepsFiles = `
import time
for folder in '/tmp', '/sandbox', '/dev/shm':
    with open(folder + '/big', 'wb') as f: f.write(bytes(60 << 20))
time.sleep(3)`

// TestKernelMemoryCounts checks that the memory limit includes memory that belongs to no process.
// TestAsOrdinaryUser runs it without a cgroup.
func TestKernelMemoryCounts(t *testing.T) {
	tier := usual(t)
	for name, source := range map[string]string{"sockets": keepsBuffers, "files": keepsFiles} {
		t.Run(name, func(t *testing.T) {
			b := box(t, tier, tiers.Config{Limits: tiers.Limits{Memory: 48 << 20}})
			run(t, b, "x = 5")

			r := run(t, b, source)
			if r.Status != tiers.StatusLimit || r.Limit != tiers.LimitMemory {
				t.Errorf("%s %q %+v", r.Status, r.Limit, r.Exception)
			}
			if r := run(t, b, "print('alive')"); r.Stdout != "alive\n" {
				t.Errorf("the session does not go on: %s %+v", r.Status, r.Exception)
			}
		})
	}
}

// TestKernelMemoryNeedsACgroupOrPermission checks that the tier refuses without a cgroup and
// without AllowSampled, and that the error names the remedy.
func TestKernelMemoryNeedsACgroupOrPermission(t *testing.T) {
	usual(t)
	if jail.Probe(t.Context()).CgroupVersion != 0 {
		t.Skip("this user has a cgroup")
	}
	tier := local.New(local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1})
	defer tier.Close()

	err := tier.Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Delegate=yes") ||
		!strings.Contains(err.Error(), "--allow-sampled") {
		t.Errorf("%v", err)
	}
	if b, err := tier.Open(t.Context(), tiers.Config{}); err == nil {
		t.Error("it opens a sandbox", b.Close())
	}
}
