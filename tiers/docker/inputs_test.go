package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

func TestALongTextHasAFileInTheContainer(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	content := strings.Repeat("a line of text\n", 1_000_000)
	for _, row := range []struct {
		mode os.FileMode
		want string
	}{{0o666, "/context/1 15000000 1000000 True\nRead-only file system\nNone\n"}, {
		0o600,
		"None\n",
	}} {
		path := filepath.Join(t.TempDir(), "long.txt")
		if err := os.WriteFile(path, []byte(content), row.mode); err != nil {
			t.Fatal(err)
		}
		// Whatever the umask: only the mount should prevent writing.
		if err := os.Chmod(path, row.mode); err != nil {
			t.Fatal(err)
		}
		text, err := bigtext.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = text.Close() })
		b := box(
			t, tier, tiers.Config{Inputs: []tiers.Input{{Value: tiers.Value(`1`)}, {Text: text}}},
		)
		r := run(t, b, `import numpy as np
p = context_1.path
if p:
    a = np.memmap(p, dtype=np.uint8, mode='r')
    print(p, len(a), int((a == 10).sum()), open(p).read(100) == context_1[:100])
    try: open(p, 'a')
    except OSError as e: print(e.strerror)
    print(context_1[5:].path)
else:
    print(p)`)
		if r.Stdout != row.want {
			t.Errorf("mode %o: %q %+v", row.mode, r.Stdout, r.Exception)
		}
	}
}

// TestADaemonWithOtherFiles checks long texts if the daemon's path of a file leads to a different
// file, as for a program in a container that received the daemon's socket.
func TestADaemonWithOtherFiles(t *testing.T) {
	tier := usual(t, docker.Options{Warm: -1})
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", "/proc/self/cwd")
	text := bigtext.FromBytes("long.txt", []byte(strings.Repeat("a line of text\n", 1_000_000)))

	b := box(t, tier, tiers.Config{Inputs: []tiers.Input{{Text: text}}})
	r := run(t, b, "print(context[-5:], context.count('line'), isinstance(context, str))")
	if r.Stdout != "text\n 1000000 False\n" || !strings.Contains(r.Stderr, "context is not a real str") {
		t.Errorf("%q %q %+v", r.Stdout, r.Stderr, r.Exception)
	}
}
