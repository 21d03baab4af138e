//go:build linux && (amd64 || arm64)

package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/aot"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// TestEnginesMakeOneImage checks that the images that both engines prepare are identical byte for
// byte. An image holds the memory after a complete start of the Python runtime.
func TestEnginesMakeOneImage(t *testing.T) {
	skip.Short(t, "it prepares two images")
	var images [][]byte
	var layouts []layout
	for _, name := range engines {
		e, err := newEngine(t.Context(), New(Options{Engine: name}).(*tier).options)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, bytes.Clone(e.image.view))
		layouts = append(layouts, e.layout)
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(images[0], images[1]) {
		t.Error("the engines make different images")
	}
	a, b := layouts[0], layouts[1]
	a.Hot, b.Hot = nil, nil
	if a.Input != b.Input || a.EvalBreaker != b.EvalBreaker || a.Interrupt != b.Interrupt {
		t.Errorf("the layouts are %+v and %+v", a, b)
	}
}

// TestTheDefaultEngine checks that the default is aot or, where the machine code does not work,
// wazero with the reason.
func TestTheDefaultEngine(t *testing.T) {
	version := func(engine string) string { return New(Options{Engine: engine}).Info().Version }
	for _, name := range []string{"", engineAuto} {
		t.Run(fmt.Sprintf("%.60s", name), func(t *testing.T) {
			if text := version(name); !strings.HasSuffix(text, ", engine aot") {
				t.Errorf("engine %q: %s", name, text)
			}
		})
	}

	working := machineCode
	defer func() { machineCode = working }()
	machineCode = func(Options) (*aot.Program, error) { return nil, errors.New("the processor is too old") }
	if text := version(engineAuto); !strings.HasSuffix(text, ", engine wazero (the processor is too old)") {
		t.Error(text)
	}
	if err := New(Options{Engine: engineAOT}).Probe(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "cannot use engine aot: the processor is too old") {
		t.Errorf("aot: %v", err)
	}
	e := readyEngineWith(t, engineAuto)
	if _, isWazero := e.program.(wazeroProgram); !isWazero || e.name != engineWazero {
		t.Errorf("auto runs %T, named %s", e.program, e.name)
	}
}

// TestMachineCodeIsCached checks that a tier maps the code cached by an earlier process, does not
// use damaged code, and caches the code again.
func TestMachineCodeIsCached(t *testing.T) {
	o := Options{Engine: engineAOT, CacheDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if _, err := o.cachedCode(); err == nil {
		t.Fatal("an empty cache has code")
	}
	for range 2 {
		tier := New(o)
		if err := errors.Join(tier.Warm(t.Context()), tier.Close()); err != nil {
			t.Fatal(err)
		}
		code, err := o.cachedCode()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(testCode(code), code.Close()); err != nil {
			t.Error(err)
		}

		whole, err := os.ReadFile(o.codePath())
		if err != nil {
			t.Fatal(err)
		}
		whole[len(whole)/2] ^= 1
		if err := os.WriteFile(o.codePath(), whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := o.cachedCode(); err == nil {
			t.Error("damaged code is used")
		}
	}
}

// TestAnImageInAFile checks each byte of an image that is stored after other bytes of a file,
// without its leading zeros, and checks that a sandbox changes only its own copy.
func TestAnImageInAFile(t *testing.T) {
	const size, start = 8 * pageSize, 3 * pageSize
	want := make([]byte, size)
	for at := start; at < size; at += pageSize {
		want[at+7] = byte(at / pageSize)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, append(make([]byte, pageSize), want[start:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := imageInFile(file, pageSize, span{start, size}, size)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := img.close(); err != nil {
			t.Error(err)
		}
	}()

	watch := &memoryWatch{}
	for _, reach := range []uint64{0, 0, 8 << 30, 8 << 30} { // every second mapping is reused
		m, err := img.allocate(size, 2*size, 0, reach, watch)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(img.view, want) || !bytes.Equal(m.bytes()[:size], want) {
			t.Error("the image is another")
		}
		m.bytes()[1], m.bytes()[start+1] = 1, 1
		if runs := changedRuns(m, img); len(runs) != 2 || runs[0].Start != 0 || runs[1].Start != start {
			t.Errorf("the changes are %v", runs)
		}
		if !m.reset(watch) || !bytes.Equal(m.bytes()[:size], want) {
			t.Error("the memory was not reset")
		}
		m.bytes()[2], m.bytes()[start+2] = 1, 1
		m.Free() // the next sandbox may get it
	}
}

// agreeing holds snippets whose results depend on every part of an engine.
var agreeing = []string{
	"print(sum(i * i for i in range(100_000)))",
	"import time, random, uuid, os\n" +
		"print(time.time(), time.monotonic(), random.random(), uuid.uuid4(), os.urandom(9))",
	"print([id(x) for x in ([], {}, object())], hash('text'))",
	"x = 'ab'\nfor _ in range(22): x += x\nprint(len(x), x.count('ba'))",
	"def f(n): return f(n + 1)\nf(0)",
	"x = []\nfor _ in range(4_000): x = [x]\nprint(len(repr(x)))",
	"1 / 0", "import os\nos._exit(3)", "open('/etc/passwd')", "import os\nprint(os.listdir('/'))",
	"import os\nprint(os.getcwd(), os.environ, os.stat(1))", "import sys\nprint(sys.stdin.read(), file=sys.stderr)",
	"while True: pass",
	"bytearray(1 << 30)", "x = [0] * 10\nwhile True: x += x",
	"import itertools\nx = iter(())\nfor _ in range(1_000_000): x = map(None, x)\nnext(x)",
	"import math, struct\nfs = math.sin, math.exp, math.log, math.gamma\n" +
		"print([struct.pack('<d', f(x / 7)) for x in range(1, 50) for f in fs])",
	"print([float.hex(round(x / 3, 2)) for x in range(-20, 20)], 0.1 + 0.2, 1e308 * 10, float('nan'))",
	"import zlib, hashlib\nd = bytes(range(256)) * 3000\n" +
		"print(zlib.crc32(d), hashlib.sha256(zlib.compress(d)).hexdigest())",
	"import hashlib\nd = bytes(range(256)) * 1100\n" +
		"for n in 'md5 sha1 sha256 sha512 sha3_256'.split(): print(hashlib.new(n, d).hexdigest())",
	"from decimal import Decimal, getcontext\ngetcontext().prec = 60\n" +
		"print(Decimal(2).sqrt() ** 7, 7 ** 900 % 10 ** 90)",
	"import threading\nq = []\nts = [threading.Thread(target=lambda i=i: q.append(i)) for i in range(9)]\n" +
		"for t in ts: t.start()\nfor t in ts: t.join()\nprint(q)",
	"import ast\nprint(ast.dump(ast.parse('lambda x: [y async for y in x]')))",
	"import re\nprint(re.sub(r'(a+)(b?)', r'\\2\\1', 'aab' * 5000)[:50])",
}

var agreeingConfig = tiers.Config{
	Deterministic: true, Limits: tiers.Limits{Memory: 256 << 20, Fuel: 20_000_000},
}

// TestEnginesAgree runs the same snippets in deterministic sessions of both engines. Output,
// ending, exception, fuel and memory must be equal.
func TestEnginesAgree(t *testing.T) {
	ours, theirs := readyEngineWith(t, engineAOT), readyEngineWith(t, engineWazero)
	sources := agreeing
	if !testing.Short() {
		cases, err := filepath.Glob("../../internal/testing/tiersuite/testdata/lang/*.py")
		if err != nil || len(cases) == 0 {
			t.Fatal("no language cases", err)
		}
		for _, path := range cases {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, string(source))
		}
	}
	for _, source := range sources {
		got, want := runOnce(t, ours, agreeingConfig, source), runOnce(t, theirs, agreeingConfig, source)
		if got.Status != want.Status || got.Limit != want.Limit || got.Stdout != want.Stdout ||
			got.Stderr != want.Stderr || got.Usage.Fuel != want.Usage.Fuel ||
			got.Usage.PeakMemory != want.Usage.PeakMemory || describe(got) != describe(want) {
			t.Errorf("%.200s\n%s, %d fuel, %d bytes, %.300q %s\nwazero: %s, %d fuel, %d bytes, %.300q %s", source,
				got.Status, got.Usage.Fuel, got.Usage.PeakMemory, got.Stdout+got.Stderr, describe(got),
				want.Status, want.Usage.Fuel, want.Usage.PeakMemory, want.Stdout+want.Stderr, describe(want))
		}
	}
}

func describe(r tiers.Result) string {
	if r.Exception == nil {
		return ""
	}
	return r.Exception.Type + ": " + r.Exception.Message + "\n" + r.Exception.Traceback
}

// runOnce runs a snippet in its own session. After a crash, it ignores the snippet's usage, because
// the depth of the machine's stack depends on the engine.
func runOnce(t *testing.T, e *engine, cfg tiers.Config, source string) tiers.Result {
	t.Helper()
	s, err := open(t.Context(), e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context(), tiers.Job{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	if r.Status == tiers.StatusCrashed && r.Exception != nil {
		r.Usage.Fuel, r.Usage.PeakMemory = 0, 0
	}
	return r
}

// TestHostFunctionsAgree calls the imports of engine aot with edge values, as
// TestAnyNumbersToAnyHostFunction does with wazero's guests. Answers and memory must equal those
// of a wazero guest.
func TestHostFunctionsAgree(t *testing.T) {
	cfg := tiers.Config{Deterministic: true}
	theirs := newHostileGuest(t, cfg)
	e := readyEngineWith(t, engineAOT)
	program := e.program.(*aotProgram)
	memory, err := newTestMemory(program.Reach())
	if err != nil {
		t.Fatal(err)
	}
	in := &instance{
		engine: e, accounts: theirs.accounts, mem: memory, watch: &memoryWatch{}, deterministic: true,
	}
	memory.watch = in.watch
	if in.machine, err = program.start(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	defer in.close()
	edges := []uint64{
		0, 1, 2, 3, 8, 16, 48, hostileMemory - 8, hostileMemory - 1, hostileMemory, math.MaxInt32,
		1 << 31, math.MaxUint32, math.MaxUint64, 1 << 61,
	}
	random := rand.New(rand.NewPCG(5, 6))
	for number, f := range program.Imports() {
		if f.Module == "rlm" || f.Name == "proc_exit" {
			continue
		}
		for range 200 {
			slots := make([]uint64, max(len(f.Params), 1))
			for i, kind := range f.Params {
				slots[i] = edges[random.IntN(len(edges))]
				if kind == 'i' {
					slots[i] &= math.MaxUint32
				}
			}
			args := append([]uint64(nil), slots[:len(f.Params)]...)
			want, theirErr := theirs.pass(t, f.Name, args...)
			ourErr := passTo(t.Context(), program.hosts[number], in, slots)
			if (ourErr != nil) != (theirErr != nil) || ourErr == nil && uint32(slots[0]) != uint32(want[0]) {
				t.Fatalf("%s%x: %d, %v; wazero: %d, %v", f.Name, args, slots[0], ourErr, want[0], theirErr)
			}
			if !bytes.Equal(in.machine.memory(), theirs.machine.memory()) {
				t.Fatalf("%s%x: the memories differ", f.Name, args)
			}
		}
	}
}

// passTo calls a host function and returns the value with which it panics.
func passTo(ctx context.Context, f hostFunction, in *instance, slots []uint64) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	f(ctx, in, slots)
	return nil
}

// TestRecursionThroughCEndsInTheSandbox checks that recursion can go as deep in machine code as on
// Linux, and half as deep under wazero, whose own stack would end. Each level uses three units of
// the limit.
func TestRecursionThroughCEndsInTheSandbox(t *testing.T) {
	const source = "import functools, sys\nsys.setrecursionlimit(100_000)\n" +
		"@functools.lru_cache(None)\ndef depth(n): return n and 1 + depth(n - 1)\n" +
		"for n in (1_600, 3_300, 4_000):\n" +
		"    try: print(depth(n))\n    except RecursionError: print('too deep')\n" +
		"    depth.cache_clear()"

	for engine, want := range map[string]string{
		engineAOT:    "1600\n3300\ntoo deep\n",
		engineWazero: "1600\ntoo deep\ntoo deep\n",
	} {
		t.Run(engine, func(t *testing.T) {
			s := openInternal(t, readyEngineWith(t, engine))
			defer s.Close()
			prints(t, s, source, want)
		})
	}
}
