package wasm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/tiers"
)

// TestOnlyMemoryInUseIsAccessible grows memories, returns them and reuses them. It checks that all
// unused memory faults if the machine code relies on that.
func TestOnlyMemoryInUseIsAccessible(t *testing.T) {
	e := readyEngineWith(t, engineAOT)
	reach := e.program.reach()
	if reach == 0 {
		t.Skip("the machine code for this processor checks each access")
	}
	img := e.image
	limit := img.size + 8<<20
	allocate := func(size uint64) *mapping {
		m, err := img.allocate(size, limit, 0, reach, &memoryWatch{})
		if err != nil {
			t.Fatal(err)
		}
		return m.(*mapping)
	}
	check := func(m *mapping, size uint64) {
		t.Helper()
		for at, want := range map[uint64]bool{
			0: true, size - 1: true, size: false, limit - 1: size == limit, limit: false, reach - 1: false,
		} {
			if isAccessible(m, at) != want {
				t.Errorf("of %d bytes, %d is accessible: %v", size, at, !want)
			}
		}
	}

	for range 2 { // the second time, the mapping is reused
		m := allocate(img.size)
		check(m, img.size)
		for size := img.size + wasmPage; size <= limit; size += wasmPage {
			if m.Reallocate(size) == nil {
				t.Fatal("it does not grow")
			}
			m.data[size-1] = 1
			check(m, size)
		}
		if m.Reallocate(limit+wasmPage) != nil {
			t.Error("it grows beyond the limit")
		}
		m.Free()
	}
	m := allocate(img.size + wasmPage)
	check(m, img.size+wasmPage)
	if m.data[img.size+wasmPage-1] != 0 {
		t.Error("the next memory has bytes of the last one")
	}
	end := m.expect(6 << 20)
	if !m.ahead || m.Reallocate(m.used+wasmPage) == nil {
		t.Error("it expects nothing")
	}
	end()
	check(m, img.size+2*wasmPage)
	m.Free()
	m = allocate(img.size)
	check(m, img.size)
	m.Free()
}

// readByte keeps the byte that isAccessible reads.
var readByte byte

// isAccessible reads a byte of a memory, and reports false if that faults.
func isAccessible(m *mapping, at uint64) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil }()
	readByte = *(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.data)), at))
	return true
}

// TestAThousandMemories checks that a process can reserve the memories of a thousand sandboxes,
// each with all the addresses that its code can form.
func TestAThousandMemories(t *testing.T) {
	e := readyEngineWith(t, engineAOT)
	mappings := func() int {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(maps, []byte("\n"))
	}
	const many = 1000
	before := mappings()
	for range many {
		m, err := e.image.allocate(e.image.size, 1<<30, 0, e.program.reach(), &memoryWatch{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Free)
	}
	if n := mappings() - before; n > 6*many { // Linux allows 65,530 in a process
		t.Errorf("%d memories take %d mappings", many, n)
	}
}

// replaceAction sets the kernel's struct sigaction for SIGSEGV, and returns the old one.
func replaceAction(t *testing.T, set [4]uintptr) (old [4]uintptr) {
	t.Helper()
	_, _, code := unix.RawSyscall6(
		unix.SYS_RT_SIGACTION, uintptr(unix.SIGSEGV), uintptr(unsafe.Pointer(&set)),
		uintptr(unsafe.Pointer(&old)), 8, 0, 0,
	)
	if code != 0 {
		t.Fatal(code)
	}
	return old
}

// TestASessionWaitsForTheHandler removes the fault handler between two snippets. It checks that the
// second one never runs, that the session keeps its variables, and that a new tier would use
// wazero.
func TestASessionWaitsForTheHandler(t *testing.T) {
	e := readyEngineWith(t, engineAOT)
	if e.program.reach() == 0 {
		t.Skip("the machine code for this processor checks each access")
	}
	s := openInternal(t, e)
	defer s.Close()
	if r, err := s.Run(t.Context(), tiers.Job{Source: "x = 7"}); err != nil || r.Status != tiers.StatusOK {
		t.Fatal(r, err)
	}
	ours := replaceAction(t, [4]uintptr{})
	_, err := s.Run(t.Context(), tiers.Job{Source: "x = 8"})
	name, why := Options{}.engine()
	explicit := Options{Engine: engineAOT}.checkEngine()
	replaceAction(t, ours)

	broken, ok := errors.AsType[*tiers.BrokenError](err)
	if !ok || broken.Effects != tiers.EffectsNeverRan || !strings.Contains(err.Error(), "SIGSEGV") {
		t.Errorf("without the handler: %v", err)
	}
	if name != engineWazero || why == nil || explicit == nil {
		t.Errorf("auto is %s (%v), and aot %v", name, why, explicit)
	}
	if r, err := s.Run(t.Context(), tiers.Job{Source: "print(x)"}); err != nil || r.Stdout != "7\n" {
		t.Errorf("with the handler again: %+v, %v", r, err)
	}
}

// TestASnippetEndsWithoutTheHandler removes the fault handler while a snippet runs: in host
// functions, and while the guest computes. It checks that the snippet ends before a fault, and that
// its result reports the loss.
func TestASnippetEndsWithoutTheHandler(t *testing.T) {
	e := readyEngineWith(t, engineAOT)
	if e.program.reach() == 0 {
		t.Skip("the machine code for this processor checks each access")
	}
	for what, source := range map[string]string{
		"by a call":           "ask()",
		"by a call in a task": "import asyncio\nawait asyncio.gather(asyncio.to_thread(ask))",
		"while it computes":   "ask('later')",
	} {
		t.Run(what, func(t *testing.T) {
			ours := replaceAction(t, [4]uintptr{})
			replaceAction(t, ours)
			stolen := make(chan struct{})
			steal := func() { replaceAction(t, [4]uintptr{}); close(stolen) }
			host := func(_ context.Context, c tiers.Call) (tiers.Value, error) {
				if len(c.Args) > 0 {
					time.AfterFunc(5*time.Millisecond, steal)
				} else {
					steal()
				}
				return tiers.Value("null"), nil
			}
			s, err := open(t.Context(), e, tiers.Config{
				Host: tiers.HostFunc(host), Functions: []tiers.Function{{Name: "ask"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if r, err := s.Run(t.Context(), tiers.Job{Source: "x = 7"}); err != nil || r.Status != tiers.StatusOK {
				t.Fatal(r, err)
			}

			r, err := s.Run(t.Context(), tiers.Job{Source: source + "\nwhile True: x = 8"})
			<-stolen
			replaceAction(t, ours)
			isNamed := err != nil && strings.Contains(err.Error(), "SIGSEGV")
			if r.Status != tiers.StatusCrashed || r.Lost == nil || !isNamed {
				t.Errorf("without the handler: %+v, %v", r, err)
			}
			if r, err := s.Run(t.Context(), tiers.Job{Source: "print(7)"}); err != nil || r.Stdout != "7\n" {
				t.Errorf("with the handler again: %+v, %v", r, err)
			}
		})
	}
}

// TestTheSpaceIsChecked checks that a process that may reserve only a few memories is rejected.
func TestTheSpaceIsChecked(t *testing.T) {
	const reach = 8 << 30
	for _, c := range []struct {
		reach, limit uint64
		isEnough     bool
	}{
		{reach, unix.RLIM_INFINITY, true},
		{reach, 1 << 44, true}, // for a worker of rlm serve
		{reach, 1 << 40, true},
		{reach, 1<<40 - 1, false},
		{reach, 20 << 30, false},
		{0, 1 << 30, true},
	} {
		if err := checkSpace(c.reach, c.limit); (err == nil) != c.isEnough {
			t.Errorf("%#x bytes of %#x: %v", c.reach, c.limit, err)
		}
	}
}
