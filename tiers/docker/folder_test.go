package docker

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAFolderInUseCanBeMounted checks that checkFolder succeeds while another program removes parts
// of the folder.
func TestAFolderInUseCanBeMounted(t *testing.T) {
	dir := t.TempDir()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			err := os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o755) //nolint:gosec // snippets may look
			if err == nil {
				err = os.RemoveAll(filepath.Join(dir, "a"))
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()

	for range 20_000 {
		if err := checkFolder(dir); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := checkFolder(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing folder can be mounted")
	}
}
