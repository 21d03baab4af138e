package wasm

import (
	"bytes"
	"os"
	"runtime/debug"
	"testing"
	"unsafe"
)

// TestOnlyMemoryInUseIsAccessible grows memories, gives them back and takes them again. All that is
// not in use faults, where the machine code relies on that.
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

	for range 2 { // the second time, the mapping is used again
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

// readByte keeps what isAccessible reads.
var readByte byte

// isAccessible reads a byte of a memory, or faults.
func isAccessible(m *mapping, at uint64) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil }()
	readByte = *(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.data)), at))
	return true
}

// TestAThousandMemories reserves the memories of a thousand sandboxes at once, each with all the
// addresses that its code can form.
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
