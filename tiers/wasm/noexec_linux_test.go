//go:build linux && (amd64 || arm64)

package wasm

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/aot"
	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// TestACacheThatForbidsExecutionIsUsed checks that such a cache is used without a warning, and that
// its file is not written again.
func TestACacheThatForbidsExecutionIsUsed(t *testing.T) {
	var log bytes.Buffer
	o := Options{CacheDir: skip.WithoutNoExec(t), Log: slog.New(slog.NewTextHandler(&log, nil))}
	cache, release, err := codecache.Open(t.Context(), o.CacheDir, o.Log, func(*codecache.Cache) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	release()
	blob, err := cpython.Code()
	if err != nil {
		t.Fatal(err)
	}
	head, code, err := aot.Split(blob)
	if err != nil {
		t.Fatal(err)
	}
	cache.Store(o.codePath(), codecache.Head{Key: codeSum(), About: head}, code)
	before, err := os.Stat(o.codePath())
	if err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}

	program, err := o.cachedCode()
	if err != nil || log.Len() > 0 {
		t.Fatalf("%v: %s", err, log.String())
	}
	defer program.Close()
	if err := testCode(program); err != nil {
		t.Error(err)
	}
	if after, err := os.Stat(o.codePath()); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file in the cache is another: %v", err)
	}
}
