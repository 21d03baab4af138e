package golang

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/rlmhq/rlm/internal/golang/guest/relay"
)

// folder contains the program for a waiting relay. On the host, only this user can enter the outer
// folder. The relay has read-only access to the inner folder.
type folder struct{ outer, inner string }

func makeFolder() (*folder, error) {
	outer, err := os.MkdirTemp("", "rlm-go-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for a program: %w", err)
	}

	f := &folder{outer, filepath.Join(outer, "program")}
	err = os.Mkdir(f.inner, 0o755) //nolint:gosec // the outer folder is closed
	if err == nil {
		err = os.Chmod(f.inner, 0o755) //nolint:gosec // independent of the umask
	}
	if err != nil {
		return nil, errors.Join(
			fmt.Errorf("cannot make a folder for a program: %w", err), f.remove(),
		)
	}
	return f, nil
}

// put writes the program into the folder.
func (f *folder) put(program []byte) error {
	// A process that is forked during the write would keep the file open until it executes its own
	// program, and the kernel refuses to execute a file that is open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()

	name := filepath.Join(f.inner, path.Base(relay.Path))
	err := os.WriteFile(name, program, 0o755) //nolint:gosec // the guest's user runs it
	if err != nil {
		return fmt.Errorf("cannot store a program: %w", err)
	}
	return os.Chmod(name, 0o755) //nolint:gosec // independent of the umask
}

func (f *folder) remove() error { return os.RemoveAll(f.outer) }
