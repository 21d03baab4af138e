//go:build linux && (amd64 || arm64)

// Command conform compares machine code made by scripts/wasm with wazero, over many modules.
//
//	conform guest IN.wasm OUT.wasm   makes a module that can be a guest; see wasmbin.AsGuest
//	conform fuel FILE.wasm           exports the last global, which wasm-smith added, as "fuel"
//	conform spec DIR                 runs WebAssembly's own tests, as wast2json converted them
//	conform random DIR SEED          calls all functions of random modules with random numbers
//	conform python SEED MINUTES      runs random Python in both engines of tier wasm
//
// A module NAME.wasm is accompanied by its machine code in NAME.blob. If the build rejected the
// module, NAME.refused gives the reason. conform.sh creates all of these. The command prints each
// difference, and fails if there is one.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/rlmhq/rlm/scripts/wasm/internal/wasmbin"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "conform:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "guest":
		return change(args[1], args[2], (*wasmbin.Module).AsGuest)
	case len(args) == 2 && args[0] == "fuel":
		return change(args[1], args[1], func(m *wasmbin.Module) (*wasmbin.Module, error) {
			return m.WithLastGlobal(fuelName)
		})
	case len(args) == 2 && args[0] == "spec":
		return runSpec(args[1])
	case len(args) == 3 && args[0] == "random":
		seed, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return err
		}
		return runRandom(args[1], seed)
	case len(args) == 3 && args[0] == "python":
		seed, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return err
		}
		minutes, err := strconv.ParseFloat(args[2], 64)
		if err != nil {
			return err
		}
		return runPython(seed, minutes)
	}
	return errors.New(
		"usage: conform guest IN.wasm OUT.wasm | fuel FILE.wasm | spec DIR | random DIR SEED | python SEED MINUTES")
}

func change(in, out string, how func(*wasmbin.Module) (*wasmbin.Module, error)) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}

	m, err := wasmbin.Parse(data)
	if err != nil {
		return err
	}
	if m, err = how(m); err != nil {
		return err
	}
	return os.WriteFile(out, m.Encode(), 0o644)
}
