package codecache

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// answer is a module with a function f that returns 42.
var answer = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x05\x01\x60\x00\x01\x7f" + // one type: no parameters, an i32
	"\x03\x02\x01\x00" + // one function of this type
	"\x07\x05\x01\x01f\x00\x00" + // exported
	"\x0a\x06\x01\x04\x00\x41\x2a\x0b") // i32.const 42

// call compiles the module with a cache and calls its function.
func call(t *testing.T, dir string) (value uint64, isNew bool, logged string) {
	t.Helper()
	var log bytes.Buffer
	cache, release, err := Open(t.Context(), dir, slog.New(slog.NewTextHandler(&log, nil)),
		func(*Cache) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	defer release()

	code, err := cache.Compile(t.Context(), Module{
		ID:       "answer",
		Read:     func() ([]byte, error) { return answer, nil },
		Import:   func(context.Context, wazero.Runtime) error { return nil },
		Announce: func() { isNew = true },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := code.Close(); err != nil {
			t.Error(err)
		}
	}()

	module, err := code.Runtime.InstantiateModule(t.Context(), code.Module, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	results, err := module.ExportedFunction("f").Call(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return results[0], isNew, log.String()
}

// TestCachedCodeRunsWithoutBodies loads code for a module without bodies, even where wazero would
// not find it.
func TestCachedCodeRunsWithoutBodies(t *testing.T) {
	dir := t.TempDir()
	for _, isFirst := range []bool{true, false} {
		if value, isNew, logged := call(t, dir); value != 42 || isNew != isFirst || logged != "" {
			t.Errorf("%d, compiled: %v, log: %s", value, isNew, logged)
		}
	}

	seal, err := readSeal(dir)
	if err != nil {
		t.Fatal(err)
	}
	cache := Cache{Dir: dir, Log: slog.New(slog.DiscardHandler), seal: seal}
	desk := cache.newDesk()
	key := desk.codeKey("answer")
	desk.remove()
	hollow, err := hollowOut(answer)
	if err != nil {
		t.Fatal(err)
	}
	head := Head{Key: key, Name: strings.Repeat("0", 64), Hollow: int64(len(hollow))}
	cache.Store(cache.codePath(key), head, append(hollow, "code"...))
	if value, _, logged := call(t, dir); value != 42 || !strings.Contains(logged, errUnused.Error()) {
		t.Errorf("with another name: %d, log: %s", value, logged)
	}
	if value, isNew, logged := call(t, dir); value != 42 || isNew || logged != "" {
		t.Errorf("then: %d, compiled: %v, log: %s", value, isNew, logged)
	}
}

func TestHollowModules(t *testing.T) {
	hollow, err := hollowOut(answer)
	want := strings.Replace(string(answer), "\x0a\x06\x01\x04\x00\x41\x2a\x0b", "\x0a\x05\x01\x03\x00\x00\x0b", 1)
	if err != nil || string(hollow) != want {
		t.Errorf("%q (%v)", hollow, err)
	}

	for end := range answer {
		hollow, err := hollowOut(answer[:end])
		if err == nil && !bytes.HasPrefix(answer, hollow) {
			t.Errorf("%q became %q", answer[:end], hollow)
		}
	}
	if _, err := hollowOut([]byte("\x00asm\x01\x00\x00\x00\x0a\x05\xff\xff\xff\xff\x0f")); err == nil {
		t.Error("four billion bodies in a few bytes")
	}
}

func FuzzHollowOut(f *testing.F) {
	f.Add(answer)
	f.Fuzz(func(t *testing.T, module []byte) {
		hollow, err := hollowOut(module)
		if err != nil {
			return
		}
		if again, err := hollowOut(hollow); err != nil || !bytes.Equal(again, hollow) {
			t.Errorf("%q became %q, then %q (%v)", module, hollow, again, err)
		}
	})
}
