package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

const secret = "the secret of a neighbour"

// leaveSecret is a snippet that leaves the secret on several pages of its memory.
func leaveSecret(pages int) string {
	return fmt.Sprintf(
		"secret = %q\ncopies = [secret.encode() + bytes(4096 - len(secret)) for _ in range(%d)]\n",
		secret, pages,
	)
}

// TestAGuestThatDiedInAnImportIsNotRecycled checks an import of variables that kill the guest that
// decodes them.
func TestAGuestThatDiedInAnImportIsNotRecycled(t *testing.T) {
	e := readyEngine(t)
	first := openInternal(t, e)
	defer first.Close()
	runInternal(t, first, "import os\nclass Bomb:\n  def __reduce__(self): return os._exit, (3,)\nbomb = Bomb()")
	state, err := first.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	second := openInternal(t, e)
	defer second.Close()
	before := second.guest.in
	if _, err := second.Import(t.Context(), state); err == nil {
		t.Fatal("the guest lives")
	}
	if second.guest.in == before || before.machine != nil {
		t.Error("the dead guest is still there")
	}
	prints(t, second, "print('bomb' in globals(), 6 * 7)", "False 42\n")
}

// TestARecycledInstanceHasNothingOfItsPredecessor searches all memory that a sandbox inherits from
// another one for a secret. The control finds the secret before the first sandbox closes.
func TestARecycledInstanceHasNothingOfItsPredecessor(t *testing.T) {
	for name, c := range map[string]struct {
		source     string
		isRecycled bool
	}{
		"few pages":        {leaveSecret(10), true},
		"many pages":       {leaveSecret(10) + "import gc; gc.get_objects()", true},
		"grown memory":     {leaveSecret(20_000), false},
		"an exception":     {leaveSecret(10) + "1/0", true},
		"a dead guest":     {leaveSecret(10) + "import os; os._exit(3)", false},
		"a long source":    {"#" + strings.Repeat(secret, 4000), true},
		"a deep recursion": {"def f(n, s): return n and f(n - 1, s)\nf(800, '" + secret + "')", true},
	} {
		t.Run(name, func(t *testing.T) {
			e := readyEngine(t)
			first := openInternal(t, e)
			before := first.guest.in
			if _, err := first.Run(t.Context(), tiers.Job{Source: c.source}); err != nil {
				t.Fatal(err)
			}
			if first.guest.in == before && !bytes.Contains(before.machine.memory(), []byte(secret)) {
				t.Fatal("the control does not find the secret")
			}
			if first.guest.in == before {
				before.pending = session.Reply{Data: []byte(secret)} // not taken
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}

			second := openInternal(t, e)
			defer second.Close()
			in := second.guest.in
			if isRecycled := in == before; isRecycled != c.isRecycled {
				t.Fatalf("recycled: %v", isRecycled)
			}
			if stack := in.machine.stackPointer(); stack != cpython.Manifest().StackPointer {
				t.Errorf("the stack begins at %d", stack)
			}
			if len(in.pending.Data) > 0 || in.watch.refused || in.watch.peak > e.image.size {
				t.Errorf("the instance still has %+v, %+v", in.pending, in.watch)
			}
			compareWithImage(t, in)
		})
	}
}

func openInternal(t *testing.T, e *engine) *sandbox {
	t.Helper()
	s, err := open(t.Context(), e, tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*sandbox)
}

func runInternal(t *testing.T, s *sandbox, source string) tiers.Result {
	t.Helper()
	r, err := s.Run(t.Context(), tiers.Job{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func prints(t *testing.T, s *sandbox, source, want string) {
	t.Helper()
	if r := runInternal(t, s, source); r.Stdout != want {
		t.Errorf("%s\nprints %q, want %q (%s %+v)", source, r.Stdout, want, r.Status, r.Exception)
	}
}

// compareWithImage compares the memory of an instance, and the memory that it receives when it
// grows.
func compareWithImage(t *testing.T, in *instance) {
	t.Helper()
	if !in.machine.grow((128 << 20) / wasmPage) {
		t.Error("the memory does not grow")
	}
	memory := in.machine.memory()
	for at := uint64(0); at < uint64(len(memory)); at += pageSize {
		page := memory[at : at+pageSize]
		if original := in.engine.image.original(at, at+pageSize); original != nil {
			if !bytes.Equal(page, original) {
				t.Fatalf("the page at %d is not the image's", at)
			}
		} else if !isZero(page) {
			t.Fatalf("the page at %d is not zero", at)
		}
	}
}

// TestARecycledInstanceHasNoFuelOfItsPredecessor checks a source that does not fit in the static
// buffer, so the guest allocates room before its first slice.
func TestARecycledInstanceHasNoFuelOfItsPredecessor(t *testing.T) {
	e := readyEngine(t)
	source := "1#" + strings.Repeat(".", 66_000)
	var used []uint64
	for _, left := range []int64{slice, 1} {
		s := openInternal(t, e)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		in := e.idle.get(idleKey{uint64(tiers.DefaultLimits().Memory), 0, true})
		if in == nil {
			t.Fatal("no instance was kept")
		}
		in.machine.setFuel(left) // as a predecessor can leave it
		in.granted = slice
		e.idle.put(idleKey{in.limit, 0, true}, in)

		s = openInternal(t, e)
		r, err := s.Run(t.Context(), tiers.Job{Source: source})
		if err != nil || s.guest.in != in || r.Status != tiers.StatusOK {
			t.Fatalf("recycled: %v, %s %s (%v)", s.guest.in == in, r.Status, r.Limit, err)
		}
		used = append(used, r.Usage.Fuel)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if used[0] != used[1] {
		t.Errorf("the predecessor's fuel changes the usage: %d", used)
	}
}

// TestDamageEndsWithItsSandbox overwrites all memory of a guest with random bytes, and its globals
// with numbers. It checks that a restore brings back every byte, and that neither another sandbox
// nor the next user of the damaged instance is affected.
func TestDamageEndsWithItsSandbox(t *testing.T) {
	e := readyEngine(t)
	damage := func(in *instance) {
		random := rand.NewChaCha8([32]byte{})
		_, _ = random.Read(in.machine.memory())
		in.machine.setStackPointer(12345)
		in.machine.setFuel(-1)
	}
	s, neighbour := openInternal(t, e), openInternal(t, e)
	defer neighbour.Close()
	if _, err := s.Run(t.Context(), tiers.Job{Source: "kept = [1, 2, 3]"}); err != nil {
		t.Fatal(err)
	}
	if err := s.guest.save(); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(s.guest.in.machine.memory())

	damage(s.guest.in)
	if bytes.Equal(s.guest.in.machine.memory(), want) {
		t.Fatal("the control: nothing is damaged")
	}
	compareWithImage(t, neighbour.guest.in)
	if err := s.guest.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.guest.in.machine.memory(), want) {
		t.Error("the restored memory differs from the checkpoint")
	}
	r, err := s.Run(t.Context(), tiers.Job{Source: "print(kept)"})
	if err != nil || r.Stdout != "[1, 2, 3]\n" {
		t.Errorf("the restored session printed %q %+v (%v)", r.Stdout, r.Exception, err)
	}

	last := s.guest.in
	damage(last)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	next := openInternal(t, e)
	defer next.Close()
	if next.guest.in != last {
		t.Fatal("the damaged instance was not used again")
	}
	compareWithImage(t, last)
	if stack := last.machine.stackPointer(); stack != cpython.Manifest().StackPointer {
		t.Errorf("the next sandbox's stack begins at %d", stack)
	}
	r, err = next.Run(t.Context(), tiers.Job{Source: "print('alive')"})
	if err != nil || r.Stdout != "alive\n" {
		t.Errorf("the next sandbox printed %q %+v (%v)", r.Stdout, r.Exception, err)
	}
}

// TestRecycledSandboxesDrawOtherNumbers compares the random numbers of sandboxes that use the
// same instance. In deterministic mode, the control, all sandboxes draw the same.
func TestRecycledSandboxesDrawOtherNumbers(t *testing.T) {
	e := readyEngine(t)
	for _, isDeterministic := range []bool{false, true} {
		drawn := map[string]int{}
		for range 5 {
			opened, err := open(t.Context(), e, tiers.Config{Deterministic: isDeterministic})
			if err != nil {
				t.Fatal(err)
			}
			r, err := opened.Run(t.Context(), tiers.Job{
				Source: "import os, random, uuid\n" +
					"print(random.random())\nprint(os.urandom(8))\nprint(uuid.uuid4())",
			})
			if err != nil || r.Status != tiers.StatusOK {
				t.Fatalf("%s %+v (%v)", r.Status, r.Exception, err)
			}
			for line := range strings.Lines(r.Stdout) {
				drawn[line]++
			}
			if err := opened.Close(); err != nil {
				t.Fatal(err)
			}
		}

		if want := map[bool]int{false: 15, true: 3}[isDeterministic]; len(drawn) != want {
			t.Errorf("deterministic %v: drawn %v", isDeterministic, drawn)
		}
	}
}

// TestAnswersReachOnlyTheirSandbox starts a host call and does not fetch its answer. The next
// sandbox requests the answer by number, and must not receive it. The control is the first sandbox,
// which receives it.
func TestAnswersReachOnlyTheirSandbox(t *testing.T) {
	e := readyEngine(t)
	cfg := hostileConfig()
	cfg.Host = tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
		return tiers.Value(`"the answer"`), nil
	})
	const start, ask = "import _rlm\nn = _rlm.call('sask\\0[[],{}]')\n", `
for request in ('w1000', 'x0', 'x1', 'x2', 'w0'):
    try: print(_rlm.call(request))
    except _rlm.HostError as e: print('refused')`
	for _, c := range []struct {
		source    string
		isAnswers bool
	}{{start + ask, true}, {start, false}, {"import _rlm" + ask, false}} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			s, err := open(t.Context(), e, cfg)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(t.Context(), tiers.Job{Source: c.source})
			if err != nil || r.Status != tiers.StatusOK {
				t.Fatalf("%s %+v (%v)", r.Status, r.Exception, err)
			}
			if got := strings.Contains(r.Stdout, "the answer"); got != c.isAnswers {
				t.Errorf("%s\nprinted %s", c.source, r.Stdout)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestOnlyTwoGlobalsChange checks the module. Reuse resets the memory and two globals; a third
// mutable global, or instructions that set table entries, would carry state to the next sandbox.
func TestOnlyTwoGlobalsChange(t *testing.T) {
	module, err := cpython.Module()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	features := api.CoreFeaturesV2.SetEnabled(api.CoreFeatureReferenceTypes, false)
	r := wazero.NewRuntimeWithConfig(
		ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features),
	)
	defer r.Close(ctx)
	if _, err := r.CompileModule(ctx, module); err != nil {
		t.Errorf("the module can change its table: %v", err)
	}

	variable := 0
	for _, global := range readGlobals(t, module) {
		if global == 1 {
			variable++
		}
	}
	if variable != 2 {
		t.Errorf("%d globals are mutable", variable)
	}
}

// readGlobals returns the mutability of each global of a module, 0 or 1.
func readGlobals(t *testing.T, module []byte) (mutable []byte) {
	t.Helper()
	in := bytes.NewReader(module[8:])
	number := func() uint64 {
		n, err := binary.ReadUvarint(in)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for {
		id, size := number(), number()
		if id != 6 {
			if _, err := in.Seek(int64(size), io.SeekCurrent); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for range number() {
			_, isMutable := number(), number()
			mutable = append(mutable, byte(isMutable))
			// The initial value is a constant expression: an opcode, a number, and the end opcode.
			number()
			number()
			if end := number(); end != 0x0b {
				t.Fatalf("a global's value ends with %x", end)
			}
		}
		return mutable
	}
}
