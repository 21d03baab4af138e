//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/rlmhq/rlm/scripts/wasm/internal/wasmbin"
)

// edges are numbers at which the behaviour of instructions changes.
var edges = []uint64{
	0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 0xff, 0x7fff, 0xffff, wasmPage - 8, wasmPage - 4, wasmPage - 1, wasmPage,
	math.MaxInt32, 1 << 31, math.MaxUint32 - 7, math.MaxUint32, 1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64,
	0x3f800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x4f000000, 0x3ff0000000000000, 0x7ff0000000000000,
	0xfff0000000000000, 0x7ff8000000000000, 0x41e0000000000000, 0x43e0000000000000,
}

// fuelName is the export that a random module counts down, trapping at 0.
const (
	fuelName = "fuel"
	fuel     = 20_000
)

// rounds is how often each function is called.
const rounds = 12

// runRandom calls the functions of all modules of a folder.
func runRandom(folder string, seed uint64) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.blob"))
	if err != nil {
		return err
	}

	ctx := context.Background()
	calls, modules, ends := 0, 0, map[string]int{}
	var differences []error
	for i, path := range paths {
		base := strings.TrimSuffix(path, ".blob")
		p, err := openPair(ctx, base, base+".wasm")
		if err != nil && strings.Contains(err.Error(), "out of bounds") {
			ends["does not start"]++ // wazero finds that its data or its table does not fit
			continue
		}

		if err == nil {
			modules++
			err = p.callAll(ctx, rand.New(rand.NewPCG(seed, uint64(i))), func(got outcome) {
				calls++
				ends[got.trap]++
			})
			err = errors.Join(err, p.close(ctx))
		}
		if err != nil {
			differences = append(differences, fmt.Errorf("%s: %w", path, err))
		}
	}

	fmt.Printf("%d modules, %d calls", modules, calls)
	for _, trap := range slices.Sorted(maps.Keys(ends)) {
		fmt.Printf(", %d %q", ends[trap], trap)
	}
	fmt.Println()
	if modules == 0 {
		differences = append(differences, fmt.Errorf("no module of %s runs", folder))
	}
	return errors.Join(differences...)
}

// callAll calls each function of a module several times. A trap after which the states may
// differ ends the test.
func (p *pair) callAll(ctx context.Context, random *rand.Rand, note func(outcome)) error {
	for range rounds {
		for _, e := range p.exports {
			if e.Kind != wasmbin.KindFunc {
				continue
			}
			f, _ := p.program.Export(p.number(e.Name))

			var params []uint64
			for _, kind := range f.Params {
				n := edges[random.IntN(len(edges))]
				if random.IntN(3) == 0 {
					n = random.Uint64() >> random.IntN(64)
				}
				if kind == 'i' || kind == 'f' {
					n &= math.MaxUint32
				}
				params = append(params, n)
			}

			if err := p.setFuel(); err != nil {
				return err
			}
			got, err := p.call(ctx, e.Name, params)
			if err != nil {
				return fmt.Errorf("%s%#x: %w", e.Name, params, err)
			}
			note(got)
			if p.mayDiffer(got) {
				return nil
			}
		}
	}
	return nil
}

// setFuel sets the fuel in both engines.
func (p *pair) setFuel() error {
	offset, ok := p.program.Global(p.number(fuelName))
	theirs, isMutable := p.theirs.ExportedGlobal(fuelName).(api.MutableGlobal)
	if !ok || !isMutable {
		return errors.New("the module has no fuel")
	}

	*p.guest.Word(offset) = fuel
	theirs.Set(fuel)
	return nil
}
