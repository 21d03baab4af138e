//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNobodyElseCanTakeTheSlots checks that another user cannot prevent the start of a jail by
// taking the names of abstract sockets beforehand.
func TestNobodyElseCanTakeTheSlots(t *testing.T) {
	requireRoot(t)
	for _, first := range append([]int{200000}, slotRanges...) {
		for uid := first; uid < first+slotCount; uid++ {
			name := &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("@rlm-jail-%d", uid)}
			if socket, err := net.ListenUnixgram("unixgram", name); err == nil {
				defer socket.Close() //nolint:gocritic // at the end is when
			}
		}
	}

	s, err := takeSlot()
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	if again, err := lockSlot(filepath.Dir(s.file.Name()), s.uid); again != nil || err != nil {
		t.Errorf("user %d is had twice: %v, %v", s.uid, again, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lockSlot(filepath.Dir(s.file.Name()), s.uid)
	if again == nil || err != nil {
		t.Fatalf("user %d is not free again: %v", s.uid, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheFolderOfTheSlotsBelongsToTheLauncher(t *testing.T) {
	open, link, file, good := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Mkdir(open+"/rlm-jails", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(good, link+"/rlm-jails"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+"/rlm-jails", nil, 0o700); err != nil {
		t.Fatal(err)
	}
	bad := []string{t.TempDir() + "/missing", open, link, file}
	if _, err := makeSlotFolder(bad); err == nil || strings.Count(err.Error(), "remove it") != 3 {
		t.Errorf("a folder of somebody else: %v", err)
	}

	for range 2 { // created, then found
		if dir, err := makeSlotFolder(append(bad, good)); err != nil || dir != good+"/rlm-jails" {
			t.Errorf("%q, %v", dir, err)
		}
	}
}
