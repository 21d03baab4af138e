//go:build unix

package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnInterpreterThatIsTooSlowIsNoBrokenOne(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, slowError(time.Minute))
	defer cancel()

	_, err := askPython(ctx, slow)
	if err == nil || !strings.Contains(err.Error(), "it took longer than 1m0s: this machine is too busy") ||
		strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v", err)
	}
}
