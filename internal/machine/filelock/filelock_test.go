package filelock

import (
	"os"
	"path/filepath"
	"testing"
)

// openLock opens a lock file again.
func openLock(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func wants(t *testing.T, what string, got bool, err error, want bool) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s: %t, %v, want %t", what, got, err, want)
	}
}

func TestALockHasOneHolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	first := openLock(t, name)
	got, err := Try(first)
	wants(t, "the first", got, err, true)
	got, err = Try(openLock(t, name))
	wants(t, "the second", got, err, false)
	held, err := IsHeld(openLock(t, name))
	wants(t, "it is held", held, err, true)

	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // callers of IsHeld do not affect each other
		held, err = IsHeld(openLock(t, name))
		wants(t, "it is held at the end", held, err, false)
	}
}

// TestAskingForTheHolderDisturbsNoTaker checks that Try succeeds while another goroutine calls
// IsHeld repeatedly.
func TestAskingForTheHolderDisturbsNoTaker(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	asked, stop, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	openLock(t, name)
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			f, err := os.Open(name)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := IsHeld(f); err != nil {
				t.Error(err)
			}
			_ = f.Close()
			if n == 0 {
				close(asked)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	<-asked
	for range 500 {
		f := openLock(t, name)
		got, err := Try(f)
		wants(t, "the lock is taken", got, err, true)
		_ = f.Close()
	}
	close(stop)
	<-stopped
}
