package wasmbin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// section encodes a section of items.
func section(id SectionID, items ...[]byte) []byte {
	body := appendU32(nil, uint32(len(items)))
	for _, item := range items {
		body = append(body, item...)
	}
	return append(appendU32([]byte{byte(id)}, uint32(len(body))), body...)
}

func name(s string) []byte { return append(appendU32(nil, uint32(len(s))), s...) }

func function(code ...byte) []byte {
	body := append([]byte{0}, code...) // no locals
	return append(appendU32(nil, uint32(len(body))), body...)
}

// countdown is the body of a function that runs a loop as often as its i32 parameter says.
var countdown = []byte{
	0x03, 0x40, // loop
	0x20, 0x00, 0x41, 0x01, 0x6b, 0x22, 0x00, // local.get 0, i32.const 1, i32.sub, local.tee 0
	0x0d, 0x00, // br_if 0
	0x0b, // end
	0x0b, // end
}

// module returns a module that imports rlm.yield and exports the function run.
func module(code []byte) []byte {
	return slices.Concat(
		[]byte(header),
		section(SectionType, []byte{0x60, 0, 0}, []byte{0x60, 1, TypeI32, 0}),
		section(SectionImport,
			slices.Concat(name("rlm"), name("yield"), []byte{byte(KindFunc), 0})),
		section(SectionFunction, []byte{1}),
		section(SectionMemory, []byte{0, 1}),
		section(SectionGlobal, []byte{TypeI32, 1, opI32Const, 0x80, 0x80, 0x04, opEnd}),
		section(SectionExport,
			slices.Concat(name("run"), []byte{byte(KindFunc), 1}),
			slices.Concat(name("sp"), []byte{byte(KindGlobal), 0})),
		section(SectionCode, function(code...)),
		section(SectionData, slices.Concat([]byte{0, opI32Const, 16, opEnd}, name("abc"))),
	)
}

func parse(t *testing.T, wasm []byte) *Module {
	t.Helper()
	m, err := Parse(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEncodeIsTheInverseOfParse(t *testing.T) {
	wasm := module(countdown)
	if got := parse(t, wasm).Encode(); !slices.Equal(got, wasm) {
		t.Errorf("got\n%x, want\n%x", got, wasm)
	}
}

func TestTables(t *testing.T) {
	m := parse(t, module(countdown))
	imports, err := m.Imports()
	if want := []Import{{"rlm", "yield"}}; err != nil || !slices.Equal(imports, want) {
		t.Errorf("imports %v, %v", imports, err)
	}
	exports, err := m.Exports()
	if want := []Export{
		{"run", KindFunc, 1},
		{"sp", KindGlobal, 0},
	}; err != nil ||
		!slices.Equal(exports, want) {
		t.Errorf("exports %v, %v", exports, err)
	}
	globals, err := m.Globals()
	if want := []Global{{TypeI32, true, 65536}}; err != nil || !slices.Equal(globals, want) {
		t.Errorf("globals %v, %v", globals, err)
	}
	data, err := m.DataSegments()
	if err != nil || len(data) != 1 || data[0].Passive || data[0].Offset != 16 ||
		string(data[0].Bytes) != "abc" {
		t.Errorf("data %v, %v", data, err)
	}
	if stripped := parse(t, m.WithoutData().Encode()); stripped.Section(SectionData) != nil {
		t.Error("the data is still there")
	}
}

func TestFuelCountsLoopHeaders(t *testing.T) {
	ctx := context.Background()
	m, stats, err := parse(t, module(countdown)).AddFuel(Import{"rlm", "yield"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (FuelStats{Functions: 1, Loops: 1}); stats != want {
		t.Errorf("stats %v, want %v", stats, want)
	}
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	yields := 0
	_, err = r.NewHostModuleBuilder("rlm").NewFunctionBuilder().
		WithFunc(func() { yields++ }).Export("yield").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := r.Instantiate(ctx, m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	fuel := mod.ExportedGlobal(FuelGlobal).(api.MutableGlobal)
	if got := int64(fuel.Get()); got != math.MaxInt64 {
		t.Errorf("the fuel starts at %d", got)
	}
	fuel.Set(10)
	if _, err := mod.ExportedFunction("run").Call(ctx, 12); err != nil {
		t.Fatal(err)
	}
	if got := int64(fuel.Get()); got != -2 || yields != 2 {
		t.Errorf("fuel %d, %d yields; want -2 and 2", got, yields)
	}
}

func TestFuelRejectsWhatItDoesNotKnow(t *testing.T) {
	tests := map[string]struct {
		code []byte
		want error
	}{
		"exceptions":  {[]byte{0x06, 0x40, 0x0b, 0x0b}, errUnknown},
		"tail call":   {[]byte{0x12, 0x00, 0x0b}, errUnknown},
		"vectors":     {[]byte{0xfd, 0x0c, 0x0b}, errUnknown},
		"atomics":     {[]byte{0xfe, 0x03, 0x00, 0x0b}, errUnknown},
		"new 0xfc":    {[]byte{0xfc, 0x20, 0x0b}, errUnknown},
		"table.set":   {[]byte{0x26, 0x00, 0x0b}, errForbidden},
		"table.grow":  {[]byte{0xfc, 0x0f, 0x00, 0x0b}, errForbidden},
		"memory.init": {[]byte{0xfc, 0x08, 0x00, 0x00, 0x0b}, errForbidden},
		"data.drop":   {[]byte{0xfc, 0x09, 0x00, 0x0b}, errForbidden},
		"cut off":     {[]byte{0x44, 0x00, 0x00}, errTruncated},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := parse(t, module(tt.code)).AddFuel(Import{"rlm", "yield"})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestFuelNeedsItsImportAndComesOnce(t *testing.T) {
	m := parse(t, module(countdown))
	if _, _, err := m.AddFuel(Import{"rlm", "other"}); err == nil {
		t.Error("an import that is not there was accepted")
	}
	m, _, err := m.AddFuel(Import{"rlm", "yield"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.AddFuel(Import{"rlm", "yield"}); err == nil {
		t.Error("fuel was added twice")
	}
}

func TestParseRejectsRubbish(t *testing.T) {
	for _, wasm := range []string{
		"", "\x00asm", header + "\x0a", header + "\x0a\x05ab", header + "\x0d\x00",
		header + "\x01\xff\xff\xff\xff\xff\x7f",
	} {
		t.Run(fmt.Sprintf("%.60s", wasm), func(t *testing.T) {
			if _, err := Parse([]byte(wasm)); err == nil {
				t.Errorf("%q was accepted", wasm)
			}
		})
	}
}

func TestIntegers(t *testing.T) {
	for _, v := range []int64{
		0, 1, 63, 64, -1, -64, -65, 1<<31 - 1, -1 << 31, math.MaxInt64, math.MinInt64,
	} {
		r := &reader{buf: appendSigned(nil, v)}
		if got := r.signed(64); got != v || r.err != nil || r.more() {
			t.Errorf("%d came back as %d, %v", v, got, r.err)
		}
	}
	padded := &reader{buf: []byte{0x81, 0x80, 0x80, 0x80, 0x00}} // as linkers write numbers
	if got := padded.signed(32); got != 1 || padded.err != nil {
		t.Errorf("got %d, %v", got, padded.err)
	}
}
