package golang

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestAProgramRunsWhileOthersStart fails with "text file busy" if a process that is forked during a
// write can keep the program's file open.
func TestAProgramRunsWhileOthersStart(t *testing.T) {
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip("this system has no program true")
	}

	var all sync.WaitGroup
	defer all.Wait()
	for range 8 {
		all.Go(func() {
			for range 50 {
				f, err := makeFolder()
				if err != nil {
					t.Error(err)
					return
				}

				err = f.put(program)
				if err == nil {
					err = exec.CommandContext(t.Context(), filepath.Join(f.inner, "main")).Run()
				}
				if err != nil {
					t.Error(err)
				}
				if err := f.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
