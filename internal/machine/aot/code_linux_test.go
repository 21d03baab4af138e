//go:build linux && (amd64 || arm64)

package aot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

func TestOnlyForbiddenCodeIsCopied(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{unix.EACCES, true},
		{errors.Join(unix.EPERM, nil), true},
		{fmt.Errorf("mprotect: %w", unix.EACCES), true},
		{unix.ENOMEM, false},
		{unix.EINVAL, false},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			if got := isForbidden(c.err); got != c.want {
				t.Errorf("it is copied: %v, want %v", got, c.want)
			}
		})
	}
}

func TestCodeOfAFileThatMayNotBeExecuted(t *testing.T) {
	head, code, file := writeHostile(t, skip.WithoutNoExec(t))
	_, err := unix.Mmap(int(file.Fd()), codePage, len(code), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	switch {
	case err == nil:
		t.Skip("the file can be executed: an emulator runs this test")
	case !isForbidden(err):
		t.Fatalf("the file cannot be mapped: %v", err)
	}
	p, err := LoadFile(head, file, codePage, int64(len(code)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()

	if !bytes.Equal(p.code, code) {
		t.Error("the copied code is another")
	}
	if n, err := newHostile(t, p).run("i32.add", 7, 5); err != nil || n != 12 {
		t.Errorf("7 + 5 = %d, %v", n, err)
	}
	if err := os.Truncate(file.Name(), codePage); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadFile(head, file, codePage, int64(len(code))); err == nil {
		t.Error("a file without the code was loaded")
	}
}
