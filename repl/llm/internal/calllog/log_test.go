package calllog

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// A line that a full disk truncates remains the last one, until the next program opens the call log
// and removes it.
func TestNothingComesAfterAHalfLine(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()

	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	l := &Log{file: full}
	if err := l.write(currentHeader); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	l.file = file
	if err := l.write(currentHeader); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(file.Name()); err != nil || len(data) > 0 {
		t.Errorf("%q was written, %v", data, err)
	}
}
