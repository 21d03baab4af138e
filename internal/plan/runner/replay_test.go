package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// echo answers with its argument.
var echo = tiers.HostFunc(func(_ context.Context, call tiers.Call) (tiers.Value, error) {
	return call.Args[0], nil
})

// paid is a host that records its calls. "ask" answers with its argument, "fail" fails, "slow"
// waits for release, "forever" waits for its context, and "began" waits until one of the last two
// has begun.
type paid struct {
	mu      sync.Mutex
	calls   []string
	began   chan struct{} // receives one value for each slow or forever
	release chan struct{}
	ends    []error // context errors of the slow calls
}

func newPaid() *paid {
	return &paid{began: make(chan struct{}, 100), release: make(chan struct{})}
}

func (p *paid) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	p.mu.Lock()
	p.calls = append(p.calls, fmt.Sprintf("%s %s", call.Function, call.Args[0]))
	p.mu.Unlock()
	switch call.Function {
	case "fail":
		return nil, errors.New("no credit")
	case "began":
		<-p.began
	case "slow", "forever":
		release := p.release
		if call.Function == "forever" {
			release = nil
		}
		p.began <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ends = append(p.ends, ctx.Err())
		return call.Args[0], ctx.Err()
	}
	return call.Args[0], nil
}

func (p *paid) made(t *testing.T, want ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.calls, want) {
		t.Errorf("the host got %q, want %q", p.calls, want)
	}
}

// with opens a session with a host.
func with(t *testing.T, host tiers.Host, list ...*fake) *session {
	t.Helper()
	return start(t, Config{Config: tiers.Config{Host: host}}, list...)
}

func TestNoCallIsMadeTwice(t *testing.T) {
	p := newPaid()
	s := with(t, p, newWasm(), newDocker())
	s.in("wasm", "set x 1", "")
	r := s.in("docker",
		"# dynamic\ncall ask \"a\"\ncall ask {\"k\":1}\nneed numpy\ncall ask \"c\"\nshow x",
		"\"a\"\n{\"k\":1}\n\"c\"\n1\n")
	p.made(t, `ask "a"`, `ask {"k":1}`, `ask "c"`)
	if r.Attempts[0].Effects != tiers.EffectsRan {
		t.Errorf("attempts %v", r.Attempts)
	}
	s.in("docker", "# dynamic\ncall ask \"a\"", "\"a\"\n") // the replay covers one snippet
	p.made(t, `ask "a"`, `ask {"k":1}`, `ask "c"`, `ask "a"`)
}

func TestErrorsAreReplayedToo(t *testing.T) {
	p := newPaid()
	s := with(t, p, newWasm(), newDocker())
	r := s.runs("# dynamic\nstart fail 1\nawait\nneed numpy\ncall ask 2\ncall fail 3")
	if r.Tier != "docker" || r.Status != tiers.StatusRaised || r.Exception.Message != "no credit" {
		t.Errorf("%+v", r)
	}
	p.made(t, "fail 1", "ask 2", "fail 3")
}

func TestACallInFlightAtTheRejectionIsAwaited(t *testing.T) {
	p := newPaid()
	docker := newDocker()
	s := with(t, p, newWasm(), docker)
	// This is usually long enough for the tier to give up the call; the test does not depend on
	// that.
	time.AfterFunc(20*time.Millisecond, func() { close(p.release) })
	s.in("docker", "# dynamic\nstart slow 1\ncall began 2\nneed numpy\nawait", "2\n")
	slices.Sort(p.calls) // they run in parallel
	p.made(t, "began 2", "slow 1")
	if len(p.ends) != 1 || p.ends[0] != nil {
		t.Errorf("the call ended with %v", p.ends)
	}
}

func TestCallsThatRunAtOnceAreMadeOnce(t *testing.T) {
	p := newPaid()
	close(p.release)
	s := with(t, p, newWasm(), newDocker())
	calls := strings.Repeat("start slow 1\n", 40)
	source := "# dynamic\n" + calls + "await\n" + calls + "need numpy\nawait"
	s.in("docker", source, "")
	if len(p.calls) != 80 {
		t.Errorf("the host got %d calls, want 80", len(p.calls))
	}
}

func TestAnAwaitedCallIsCancelledWithTheRun(t *testing.T) {
	p := newPaid()
	docker := newDocker()
	ctx, cancel := context.WithCancel(t.Context())
	s := with(t, tiers.HostFunc(func(inner context.Context, call tiers.Call) (tiers.Value, error) {
		value, err := p.Call(inner, call)
		if call.Function == "began" {
			// This is usually long enough for the rejection; the test does not depend on that.
			time.AfterFunc(20*time.Millisecond, cancel)
		}
		return value, err
	}), newWasm(), docker)
	_, err := s.Run(ctx,
		tiers.Job{Source: "# dynamic\nstart forever 1\ncall began 2\nneed numpy\nawait"})
	broke(t, err, "wasm", tiers.EffectsRan)
	if len(p.ends) != 1 || p.ends[0] == nil || docker.opened != 0 ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v, the run with %v", p.ends, err)
	}
}

func TestACallOfACancelledRunIsCancelled(t *testing.T) {
	for _, source := range []string{"call forever 1", "# dynamic\ncall forever 1"} {
		t.Run(source, func(t *testing.T) {
			p := newPaid()
			s := with(t, p, newWasm(), newDocker())
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-p.began
				cancel()
			}()
			_, err := s.Run(ctx, tiers.Job{Source: source})
			broke(t, err, "wasm", tiers.EffectsRan)
			if len(p.ends) != 1 || p.ends[0] == nil {
				t.Errorf("%q: the call ended with %v", source, p.ends)
			}
		})
	}
}

func TestACallThatASnippetLeavesBehindIsCancelled(t *testing.T) {
	p := newPaid()
	s := with(t, p, newWasm(), newDocker())
	s.in("wasm", "# dynamic\nstart forever 1\ncall began 2", "2\n")
	if len(p.ends) != 1 || p.ends[0] == nil {
		t.Errorf("the call ended with %v", p.ends)
	}
}

// changing makes a snippet's calls in docker differ from those in wasm.
func changing(docker *fake, source string) {
	docker.rewrite = func(string) string { return source }
}

func TestAMismatchStopsTheSnippet(t *testing.T) {
	for _, c := range []struct{ name, first, second, text string }{
		{
			"other arguments", "call ask 1", "call ask 2\ncall ask 3",
			"call 1, now to ask, had a different function or different arguments",
		},
		{
			"another function", "call ask 1", "call fail 1\ncall ask 3",
			"call 1, now to fail, had a different function or different arguments",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, docker := newPaid(), newDocker()
			changing(docker, c.second+"\nhang")
			s := with(t, p, newWasm(), docker)
			s.in("wasm", "set x 1", "")
			r, err := s.fails("# dynamic\n" + c.first + "\nneed numpy")
			lost := broke(t, err, "docker", tiers.EffectsRan)
			if !errors.Is(err, errMismatch) || !strings.Contains(err.Error(), c.text) ||
				lost == nil {
				t.Error(err)
			}
			p.made(t, "ask 1")
			if r.Moved == nil || s.Home("") != "docker" {
				t.Error("the move is not reported with the error")
			}
			docker.rewrite = nil
			s.in("docker", "show x", "1\n")
		})
	}
	t.Run("the snippet goes on regardless", func(t *testing.T) {
		p, docker := newPaid(), newDocker()
		changing(docker, "start ask 2\nawait\nstart ask 3\nhang")
		s := with(t, p, newWasm(), docker)
		_, err := s.fails("# dynamic\ncall ask 1\nneed numpy")
		if lost := broke(t, err, "docker", tiers.EffectsRan); !errors.Is(err, errMismatch) ||
			lost == nil {
			t.Error(err)
		}
		p.made(t, "ask 1")
	})
}

func TestEffectsCountTheCallsOfEarlierAttempts(t *testing.T) {
	docker := newDocker()
	docker.opens = errors.New("no memory")
	s := with(t, newPaid(), newWasm(), docker)
	_, err := s.fails("# dynamic\ncall ask 1\nneed numpy")
	broke(t, err, "docker", tiers.EffectsRan)
	s = with(t, newPaid(), newInterp())
	_, err = s.fails("call ask 1\nreject")
	broke(t, err, "interp", tiers.EffectsRan)
	s = with(t, newPaid(), newInterp(), newWasm())
	_, err = s.fails("call ask 1\nreject")
	var none *router.NoTierError
	if !errors.As(err, &none) || none.Effects != tiers.EffectsRan {
		t.Error(err)
	}
}

func TestARejectionUnaskedWithoutCallsGoesOn(t *testing.T) {
	s := with(t, newPaid(), newWasm(), newDocker())
	_, err := s.fails("reject")
	var none *router.NoTierError
	if !errors.As(err, &none) || none.Effects != tiers.EffectsNeverRan || len(none.Refusals) != 2 {
		t.Error(err)
	}
}

func TestTheReplayTellsCallsApart(t *testing.T) {
	call := func(f string, args ...string) tiers.Call {
		c := tiers.Call{Function: f, Named: map[string]tiers.Value{}}
		for _, a := range args {
			if name, value, named := strings.Cut(a, "="); named {
				c.Named[name] = tiers.Value(value)
			} else {
				c.Args = append(c.Args, tiers.Value(a))
			}
		}
		return c
	}
	for _, c := range []struct {
		a, b tiers.Call
		same bool
	}{
		{call("f", "1"), call("f", "1"), true},
		{call("f", "1"), call("g", "1"), false},
		{call("f", "1"), call("f", "1", "1"), false},
		{call("f", `"12"`), call("f", `"1"`, `"2"`), false},
		{call("f", "a=1"), call("f", "b=1"), false},
		{call("f", "a=1", "b=2"), call("f", "b=2", "a=1"), true},
		{call("f", `{"a":1,"b":2}`), call("f", `{ "b": 2.0, "a": 1e0 }`), true},
		{call("f", `"é\u0041"`), call("f", `"\u00e9A"`), true},
		{call("f", `"a<b"`), call("f", `"a\u003cb"`), true},
		{call("f", `"a"`), call("f", ` "\u0061" `), true},
		{call("f", `[1,2]`), call("f", `[2,1]`), false},
		{call("f", `12345678901234567890`), call("f", `12345678901234567891`), false},
		{call("f", `1e999`), call("f", `1e998`), false},
		{call("f", `0.5`), call("f", `5e-1`), true},
		{call("f", `100`), call("f", `1E+2`), true},
		{call("f", `-1.50`), call("f", `-15e-1`), true},
		{call("f", `1.5`), call("f", `-1.5`), false},
		{call("f", `0.0`), call("f", `0e5`), true},
		{call("f", `1e999999999`), call("f", `10e999999998`), true},
		{call("f", `1e999999999`), call("f", `1e999999998`), false},
		{call("f", `1e99999999999999999999`), call("f", `1e99999999999999999998`), false},
		{call("f", `NaN`), call("f", `NaN`), true},
		{call("f", `1 2`), call("f", `1`), false},
		{call("f", `1`), call("f", `"1"`), false},
	} {
		if same := fingerprintOf(&c.a) == fingerprintOf(&c.b); same != c.same {
			t.Errorf("%v and %v: same is %v", c.a, c.b, same)
		}
	}
}

// TestCanonicalValuesStaySmall checks that the canonical form does not expand numbers, and that
// long values are not parsed.
func TestCanonicalValuesStaySmall(t *testing.T) {
	long := "\"" + strings.Repeat(`\u00e9`, mostParsed/3) + "\""
	for name, v := range map[string]string{
		"large numbers": "[" + strings.Repeat("1e308,", 1000) + "1e999999999]",
		"small numbers": "[" + strings.Repeat("1e-308,", 1000) + "1e-999999999]",
		"a long string": long,
	} {
		t.Run(name, func(t *testing.T) {
			if n := len(canonical(tiers.Value(v))); n > 2*len(v) {
				t.Errorf("%s: %d bytes become %d", name, len(v), n)
			}
		})
	}
	if got, want := canonical(tiers.Value(long)), `"`+strings.Repeat("é",
		mostParsed/3)+`"`; string(got) != want {
		t.Error("a long string is not compared by its characters")
	}
	list := tiers.Value("[" + strings.Repeat("1,", mostParsed) + "1]")
	if n := testing.AllocsPerRun(1, func() { canonical(list) }); n > 100 {
		t.Errorf("a long list is taken apart: %.0f allocations", n)
	}
}

// FuzzCanonical checks that the canonical form is stable and bounded in length.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`1e999999999`, `[1.0, -0, 0e5, 1E+2]`, `{"b":1,"a":"\u00e9"}`, `"a<b"`, ` 1 2`, `NaN`,
		"\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		once := canonical(v)
		if twice := canonical(once); !bytes.Equal(twice, once) {
			t.Errorf("%q becomes %q and then %q", v, once, twice)
		}
		if len(once) > 6*len(v)+20 { // a control character takes six bytes
			t.Errorf("%d bytes become %d", len(v), len(once))
		}
	})
}

func TestAHostCallOutsideOfASnippetIsRefused(t *testing.T) {
	if _, err := (door{echo}).Call(t.Context(), tiers.Call{}); !errors.Is(err, errNotRunning) {
		t.Error(err)
	}
	j := replay{host: echo, log: slog.Default(), gate: hostcall.New(tiers.DefaultLimits())}
	ctx, a := j.beginAttempt(t.Context(), true)
	call := tiers.Call{Function: "f", Args: []tiers.Value{tiers.Value("1")}, Ordinal: 1}
	if v, err := (door{}).Call(ctx, call); err != nil || string(v) != "1" {
		t.Errorf("%s, %v", v, err)
	}
	if _, err := (door{}).Call(ctx, call); !errors.Is(err, errMismatch) {
		t.Errorf("an ordinal that comes twice: %v", err)
	}
	a.cancelCalls()
	ctx, a = j.beginAttempt(t.Context(), true)
	a.cancelCalls()
	if _, err := (door{}).Call(ctx, call); !errors.Is(err, errNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// TestACancelledCallKeepsItsPlace checks that a snippet that starts and cancels calls in a loop has
// no more concurrent calls than a snippet that waits for its calls.
func TestACancelledCallKeepsItsPlace(t *testing.T) {
	const atOnce = 2
	began, release := make(chan struct{}, 100), make(chan struct{})
	host := tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
		began <- struct{}{}
		<-release // the host ignores the context
		return tiers.Value("1"), nil
	})
	r, err := New(Config{
		Config: tiers.Config{Host: host, Limits: tiers.Limits{HostCallsAtOnce: atOnce}},
	})
	if err != nil {
		t.Fatal(err)
	}
	j := replay{host: r.host, log: slog.Default(), gate: r.gate}
	ctx, a := j.beginAttempt(t.Context(), true)
	ordinal := 0
	call := func(ctx context.Context) error {
		ordinal++
		_, err := (door{}).Call(ctx,
			tiers.Call{Function: "f", Args: []tiers.Value{tiers.Value("1")}, Ordinal: ordinal})
		return err
	}
	for range atOnce {
		callCtx, cancel := context.WithCancel(ctx)
		go func() {
			<-began
			cancel()
		}()
		if err := call(callCtx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	gaveUp, cancel := context.WithCancel(ctx)
	cancel()
	for range 10 {
		if err := call(gaveUp); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n := j.countCalls(); n != atOnce {
		t.Errorf("%d calls run at once, want %d", n, atOnce)
	}
	close(release)
	if err := call(ctx); err != nil {
		t.Errorf("a call after the places are left: %v", err)
	}
	a.cancelCalls()
}

func TestCallsThatRunAfterTheirTierHoldNoMoreThanTheMemory(t *testing.T) {
	release := make(chan struct{})
	host := tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
		<-release
		return tiers.Value("1"), nil
	})
	j := replay{host: host, log: slog.Default(), gate: hostcall.New(tiers.Limits{HostCallsAtOnce: 64, Memory: 1000})}
	ctx, a := j.beginAttempt(t.Context(), true)
	large := []tiers.Value{tiers.Value(`"` + strings.Repeat("x", 598) + `"`)}
	first := make(chan error)
	go func() {
		_, err := (door{}).Call(ctx, tiers.Call{Function: "f", Args: large, Ordinal: 1})
		first <- err
	}()
	for j.countCalls() == 0 {
		time.Sleep(time.Millisecond)
	}
	_, err := (door{}).Call(ctx,
		tiers.Call{Function: "f", Named: map[string]tiers.Value{"a": large[0]}, Ordinal: 2})
	if err == nil || !strings.Contains(err.Error(), "would take more than 1000 B in total") {
		t.Errorf("the host holds more: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	a.cancelCalls()
}

func BenchmarkHostCall(b *testing.B) {
	call := tiers.Call{
		Function: "llm_query",
		Args:     []tiers.Value{tiers.Value(`"` + strings.Repeat("a prompt ", 100) + `"`)},
	}
	for _, keep := range []bool{false, true} {
		b.Run(fmt.Sprintf("replay=%v", keep), func(b *testing.B) {
			b.ReportAllocs()
			j := replay{host: echo, log: slog.Default(), gate: hostcall.New(tiers.DefaultLimits())}
			ctx, a := j.beginAttempt(b.Context(), keep)
			defer a.cancelCalls()
			for b.Loop() {
				call.Ordinal++
				if _, err := (door{}).Call(ctx, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
