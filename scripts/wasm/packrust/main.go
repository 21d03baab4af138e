// Command packrust turns a module linked by Rust into the committed files: a module without data
// that counts fuel, the data over which it runs, and a manifest. The same module always gives
// the same bytes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/scripts/wasm/internal/wasmbin"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: packrust MODULE RUSTC-VERSION OUTDIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "packrust:", err)
		os.Exit(1)
	}
}

func run(file, compiler, out string) error {
	linked, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	module, err := wasmbin.Parse(linked)
	if err != nil {
		return err
	}
	if err := checkState(module); err != nil {
		return err
	}

	counted, stats, err := module.AddFuel(wasmbin.Import{Module: "rlm", Name: "yield"})
	if err != nil {
		return err
	}
	start, data, err := layData(module)
	if err != nil {
		return err
	}

	m := rustmodule.Manifest{DataStart: start, FuelPoints: stats.Points(), Compiler: compiler}
	if m.Pages, err = module.MemoryPages(); err != nil {
		return err
	}
	return write(out, m, counted.WithoutData().Encode(), data)
}

func write(out string, m rustmodule.Manifest, module, data []byte) (err error) {
	var moduleFile, dataFile []byte
	if m.Module, moduleFile, err = artefact.Compress("engine.wasm.zst", module); err != nil {
		return err
	}
	if m.Data, dataFile, err = artefact.Compress("data.zst", data); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}

	return errors.Join(
		os.WriteFile(filepath.Join(out, m.Module.File), moduleFile, 0o644),
		os.WriteFile(filepath.Join(out, m.Data.File), dataFile, 0o644),
		os.WriteFile(filepath.Join(out, "manifest.json"), append(text, '\n'), 0o644),
	)
}

// layData arranges the segments as they are in the memory.
func layData(m *wasmbin.Module) (start uint32, data []byte, err error) {
	segments, err := m.DataSegments()
	if err != nil {
		return 0, nil, err
	}
	if len(segments) == 0 {
		return 0, nil, errors.New("the module has no data")
	}

	start = segments[0].Offset
	for i, s := range segments {
		if s.Passive || s.Offset < start+uint32(len(data)) {
			return 0, nil, fmt.Errorf("data segment %d is passive or out of order", i)
		}
		data = append(data, make([]byte, int(s.Offset-start)-len(data))...)
		data = append(data, s.Bytes...)
	}
	return start, data, nil
}

// checkState proves that the whole state of the module is its memory, its stack pointer and its
// fuel, so that a copy of the memory is a copy of the instance.
func checkState(m *wasmbin.Module) error {
	if m.Section(wasmbin.SectionStart) != nil {
		return errors.New("the module has a start function")
	}
	globals, err := m.Globals()
	if err != nil {
		return err
	}
	exports, err := m.Exports()
	if err != nil {
		return err
	}

	stack := -1
	for _, e := range exports {
		if e.Kind == wasmbin.KindGlobal && e.Name == "__stack_pointer" {
			stack = int(e.Index)
		}
	}
	for i, g := range globals {
		if g.Mutable && i != stack {
			return fmt.Errorf("global %d is mutable", i)
		}
	}
	if stack < 0 {
		return errors.New("the module does not export __stack_pointer")
	}
	return nil
}
