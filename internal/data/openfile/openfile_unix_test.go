//go:build unix

package openfile

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func makePipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hay"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.Symlink(makePipe(t), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	for name, want := range map[string]string{
		"a.txt": "", "none": "no such file", ".": "a folder", "socket": "a socket", "link": "a pipe",
	} {
		t.Run(name, func(t *testing.T) {
			file, err := Regular(filepath.Join(dir, name))
			if err == nil {
				text, failed := io.ReadAll(file)
				if err = failed; string(text) != "hay" {
					t.Errorf("%s: got %q", name, text)
				}
				_ = file.Close()
			}
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		})
	}
	if _, err := Regular("/dev/null"); err == nil || !strings.Contains(err.Error(), "a device") {
		t.Errorf("a device: %v", err)
	}
	if file, err := RegularIn(root, "a.txt"); err != nil || file.Close() != nil {
		t.Error(err)
	}
	if _, err := RegularIn(root, "socket"); err == nil {
		t.Error("a socket in a folder is opened")
	}
}

// TestAPipeIsOpenedOnceAWriterHasIt also checks that without a writer, opening fails when the
// context ends, even if the pipe's name was deleted.
func TestAPipeIsOpenedOnceAWriterHasIt(t *testing.T) {
	path := makePipe(t)
	go func() {
		time.Sleep(20 * time.Millisecond) // by then, the open probably waits
		_ = os.WriteFile(path, []byte("from a pipe"), 0o600)
	}()
	pipe, err := Pipe(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(pipe); string(text) != "from a pipe" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	_ = pipe.Close()

	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if _, err := Pipe(ctx, path); !errors.Is(err, cause) {
		t.Errorf("the end of the context gives %v", err)
	}
}

// TestTheReadOfAPipeEndsWithTheContext checks that a read ends if the pipe's writer writes nothing.
func TestTheReadOfAPipeEndsWithTheContext(t *testing.T) {
	path := makePipe(t)
	writers := make(chan *os.File, 1)
	go func() {
		writer, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
		}
		writers <- writer
	}()
	ctx, cancel := context.WithCancel(t.Context())
	pipe, err := Pipe(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer (<-writers).Close()
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := pipe.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the read ends with %v", err)
	}
}
