package interp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func warmTier(tb testing.TB) tiers.Tier {
	tb.Helper()
	tier := interp.New(interp.Options{})
	tiertest.Require(tb, interp.Name, tier.Probe(context.Background()))
	tb.Cleanup(func() {
		if err := tier.Close(); err != nil {
			tb.Error(err)
		}
	})
	if err := tier.Warm(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return tier
}

func openSandbox(tb testing.TB, tier tiers.Tier, cfg tiers.Config) tiers.Sandbox {
	tb.Helper()
	s, err := tier.Open(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func runOK(tb testing.TB, s tiers.Sandbox, language tiers.Language, source string) tiers.Result {
	tb.Helper()
	r, err := s.Run(context.Background(), tiers.Job{Language: language, Source: source})
	if err != nil {
		tb.Fatalf("%s: %v", source, err)
	}
	if r.Status != tiers.StatusOK {
		tb.Fatalf("%s: %s %+v", source, r.Status, r.Exception)
	}
	return r
}

// TestGoSession runs snippets of one session in order.
func TestGoSession(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{})
	for _, step := range []struct{ source, out string }{
		{"import \"fmt\"\nx := 3\nfmt.Println(x)", "3\n"},
		{"x + 1", "4\n"},
		{"type P struct{ N string }\nfunc (p *P) Hi() string { return \"hi \" + p.N }\n" +
			"p := &P{\"ann\"}\np.Hi()", ""},
		{"fmt.Println(p.Hi())", "hi ann\n"},
		{"package main\n\nimport (\n\t\"fmt\"\n\t\"strings\"\n)\n\nfunc main() {\n" +
			"\tfmt.Println(strings.ToUpper(\"whole\"), x)\n}", "WHOLE 3\n"},
		{"strings.Repeat(\"ab\", 2)", "\"abab\"\n"},
		{
			"var fs []func() int\nfor _, v := range []int{1, 2} {\n" +
				"\tfs = append(fs, func() int { return v })\n}\nfmt.Println(fs[0](), fs[1]())",
			"1 2\n",
		},
		{"if x := 9; x > 3 {\n\tfmt.Println(x)\n}\nx", "9\n3\n"},
		{"count := 0\nfunc inc() { count++ }\ninc()\ninc()\ncount", "2\n"},
		{"len(fs)", "2\n"},
	} {
		if r := runOK(t, s, tiers.Go, step.source); r.Stdout != step.out {
			t.Errorf("%s\nprints %q, want %q", step.source, r.Stdout, step.out)
		}
	}
}

func TestAGoPanicNamesTheSnippetsLines(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{})
	r, err := s.Run(
		t.Context(),
		tiers.Job{
			Language: tiers.Go,
			Source: "func f(n int) int {\n\treturn 10 / n\n}\n\nfor i := 1; i >= 0; i-- {\n" +
				"\tf(i)\n}",
		},
	)
	if err != nil || r.Status != tiers.StatusRaised || r.Exception == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, want := range []string{
		"integer divide by zero", "main.f(...)\n\tsnippet_1.go:2",
		"main.main(...)\n\tsnippet_1.go:5: for i := 1",
	} {
		if !strings.Contains(r.Exception.Traceback, want) {
			t.Errorf("the traceback does not say %q:\n%s", want, r.Exception.Traceback)
		}
	}
	for i, c := range [...][2]string{
		{"x := = 1", "snippet_2.go:1:6: expected operand, found '='\n"},
		{"x := 1\n\nprintln(zz)", "snippet_3.go:3:9: undefined: zz\n"},
		{"\nf(0)", "main.f(...)\n\tsnippet_1.go:2\nmain.main(...)\n\tsnippet_4.go:2: f(0)\n"},
	} {
		r, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: c[0]})
		if err != nil || r.Exception == nil || !strings.HasSuffix(r.Exception.Traceback, c[1]) {
			t.Errorf("%d: %+v, %v; want a traceback that ends with %q", i, r.Exception, err, c[1])
		}
	}
}

func TestPythonSession(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{})
	for _, step := range []struct{ source, out string }{
		{"print(1+1)", "2\n"},
		{"x = [3, 1]\nx.append(2)\nsorted(x)", "[1, 2, 3]\n"},
		{"for i, v in enumerate(x):\n    print(i, v)", "0 3\n1 1\n2 2\n"},
		{"sum(n * n for n in range(10))", "285\n"},
	} {
		if r := runOK(t, s, "", step.source); r.Stdout != step.out {
			t.Errorf("%s\nprints %q, want %q", step.source, r.Stdout, step.out)
		}
	}
	for _, source := range []string{
		"print(x[9])", "y = 1 // 0", "import os", "print(0.1)",
		"f'{x}'", "def f(): pass", "{}", "print(z)", "x = 'a'",
		"'abc'.split('')", "sep = ''\nprint('abc'.split(sep))", "'abc'.partition('')", "'abc'.count('')",
		"FINAL_VAR = 1", "SHOW_VARS = 1",
	} {
		t.Run(source, func(t *testing.T) {
			_, err := s.Run(t.Context(), tiers.Job{Source: source})
			var rejected *tiers.RejectedError
			if !errors.As(err, &rejected) || rejected.Effects != tiers.EffectsNeverRan ||
				rejected.Reason == "" {
				t.Errorf("%s: %v", source, err)
			}
		})
	}
	if r := runOK(t, s, tiers.Python, "x"); r.Stdout != "[3, 1, 2]\n" {
		t.Errorf("rejections changed the namespace: %q", r.Stdout)
	}
}

// TestTheSessionsNamesAreNotTaken checks that a snippet is rejected if it binds a name that a
// CPython tier would restore, and that other names keep their new values in the next snippet.
func TestTheSessionsNamesAreNotTaken(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{
		Host: &hosted{}, Functions: []tiers.Function{{Name: "ask"}, {Name: "predict"}},
		Inputs: []tiers.Input{{Name: "a", Value: tiers.Value(`"text"`)}},
	})
	for _, source := range []string{"ask = 1", "context = 1", "context_0 = 1"} {
		t.Run(source, func(t *testing.T) {
			_, err := s.Run(t.Context(), tiers.Job{Source: source})
			var rejected *tiers.RejectedError
			if !errors.As(err, &rejected) {
				t.Errorf("%s: %v", source, err)
			}
		})
	}
	runOK(t, s, tiers.Python, "predict = 5\nllm_query = 6\ncontext_1 = 7\nanswer = 8")
	if r := runOK(t, s, tiers.Python, "[predict, llm_query, context_1, answer]"); r.Stdout != "[5, 6, 7, 8]\n" {
		t.Errorf("a common name was not kept: %q", r.Stdout)
	}
}

// A slow call takes longer than the wall limit of the snippet that makes it.
const (
	callsWall = 2 * time.Second
	slowCall  = callsWall + time.Second/2
)

// hosted is a host that counts calls.
type hosted struct {
	mu    sync.Mutex
	calls int
}

func (h *hosted) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	h.mu.Lock()
	h.calls++
	h.mu.Unlock()
	var prompt string
	if len(call.Args) == 1 {
		_ = json.Unmarshal(call.Args[0], &prompt)
	}
	switch prompt {
	case "fail":
		return nil, errors.New("no")
	case "slow":
		select {
		case <-time.After(slowCall):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return json.Marshal("re: " + prompt)
}

func TestHostCallsFromGo(t *testing.T) {
	h := &hosted{}
	s := openSandbox(t, warmTier(t), tiers.Config{
		Host:      h,
		Functions: []tiers.Function{{Name: "ask"}, {Name: "llm_query"}},
		Inputs:    []tiers.Input{{Value: tiers.Value(`{"a": 1}`)}},
		Limits:    tiers.Limits{Wall: callsWall},
	})
	source := `import "fmt"
a, err := Query("hi")
fmt.Println(a, err)
_, err = Query("fail")
fmt.Println(err)
bs, _ := QueryBatched([]string{"x", "y"})
fmt.Println(bs)
v, _ := ask("z")
fmt.Println(v, Context)
FINAL(map[string]int{"n": len(bs)})`
	r := runOK(t, s, tiers.Go, source)
	if want := "re: hi <nil>\nno\n[re: x re: y]\nre: z map[a:1]\n"; r.Stdout != want ||
		r.Usage.HostCalls != 5 || h.calls != 5 {
		t.Errorf("%q, %+v, %d", r.Stdout, r.Usage, h.calls)
	}
	if r.Final == nil || string(r.Final.Value) != `{"n":2}` {
		t.Errorf("final %+v", r.Final)
	}
	// A slow call is not charged to the wall limit.
	if r := runOK(t, s, tiers.Go, `c, _ := Query("slow")
c`); r.Usage.HostWait < callsWall || r.Usage.Active > callsWall {
		t.Errorf("%+v", r.Usage)
	}
	// After a loss, the session is restored without another call.
	calls := h.calls
	r, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "for {\n}"})
	if err != nil || r.Status != tiers.StatusLimit || r.Lost == nil ||
		fmt.Sprint(r.Lost.Snippets) != "[3]" {
		t.Fatalf("%+v %v", r, err)
	}
	if r := runOK(t, s, tiers.Go, "fmt.Println(a, c)"); r.Stdout != "re: hi re: slow\n" ||
		h.calls != calls {
		t.Errorf("%q after %d more calls", r.Stdout, h.calls-calls)
	}
	// Its copy is restored in the same way.
	state, err := s.(tiers.Exporter).Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := openSandbox(
		t,
		warmTier(t),
		tiers.Config{
			Host:      h,
			Functions: []tiers.Function{{Name: "ask"}},
			Inputs:    []tiers.Input{{Value: tiers.Value(`{"a": 1}`)}},
		},
	)
	if _, err := other.(tiers.Exporter).Import(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	if r := runOK(t, other, tiers.Go, "a + c"); r.Stdout != "\"re: hire: slow\"\n" ||
		h.calls != calls {
		t.Errorf("%q after %d more calls", r.Stdout, h.calls-calls)
	}
}

func TestALazyTextStaysWithTheHost(t *testing.T) {
	text := bigtext.FromBytes("long", []byte(strings.Repeat("héllo wörld\n", 20000)))
	defer text.Close()
	s := openSandbox(t, warmTier(t), tiers.Config{Inputs: []tiers.Input{{Text: text}}})
	r := runOK(
		t, s, tiers.Go,
		"import \"fmt\"\nfmt.Println(Context.Len(), Context.Slice(0, 5), Context.Find(\"wörld\", "+
			"6), Context.Count(\"h\"), Context.LineCount(), Context.Lines(1, 3))",
	)
	if want := "240000 héllo 6 20000 20000 [héllo wörld héllo wörld]\n"; r.Stdout != want {
		t.Errorf("%q, want %q", r.Stdout, want)
	}
}

func TestPythonMovesAsReplay(t *testing.T) {
	tier := warmTier(t)
	s := openSandbox(t, tier, tiers.Config{})
	runOK(t, s, "", "a = [1]")
	runOK(t, s, "", "b = a\nb.append(2)")
	state, err := s.(tiers.Exporter).Export(t.Context())
	if err != nil || state.Format != session.FormatReplay ||
		string(state.Data) != `["a = [1]","b = a\nb.append(2)"]` {
		t.Fatalf("%+v %s %v", state, state.Data, err)
	}
	other := openSandbox(t, tier, tiers.Config{})
	if _, err := other.(tiers.Exporter).Import(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	if r := runOK(t, other, "", "a.append(3)\nb"); r.Stdout != "[1, 2, 3]\n" {
		t.Errorf("%q", r.Stdout)
	}
	var rejected *tiers.RejectedError
	third := openSandbox(t, tier, tiers.Config{})
	state.Format = session.FormatPickle
	if _, err := third.(tiers.Exporter).Import(t.Context(), state); !errors.As(err, &rejected) {
		t.Error(err)
	}
}

func TestACompileErrorIsTheSnippetsOrARejection(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{})
	runOK(t, s, tiers.Go, "a := 1")
	job := tiers.Job{Language: tiers.Go, Source: "b := undefinedName + 1"}
	r, err := s.Run(t.Context(), job)
	if err != nil || r.Status != tiers.StatusRaised || r.Exception.Type != "CompileError" {
		t.Errorf("%+v %v", r, err)
	}
	job.Rejectable = true
	var rejected *tiers.RejectedError
	if _, err := s.Run(t.Context(), job); !errors.As(err, &rejected) ||
		rejected.Effects != tiers.EffectsNeverRan {
		t.Error(err)
	}
	if r := runOK(t, s, tiers.Go, "a"); r.Stdout != "1\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestACancelledSnippetLeavesTheSessionUsable(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{})
	runOK(t, s, tiers.Python, "a = 1")
	var broken *tiers.BrokenError
	// On a busy machine, the snippet starts late.
	for in := 50 * time.Millisecond; broken == nil || broken.Effects == tiers.EffectsNeverRan; in *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), in)
		_, err := s.Run(ctx, tiers.Job{Source: "while True:\n    pass"})
		cancel()
		if !errors.As(err, &broken) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
	}
	if broken.Lost == nil {
		t.Errorf("%+v", broken)
	}
	if r := runOK(t, s, tiers.Python, "a"); r.Stdout != "1\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestImpureSnippetsAreReportedAsLost(t *testing.T) {
	s := openSandbox(t, warmTier(t), tiers.Config{Limits: tiers.Limits{Wall: callsWall}})
	runOK(t, s, tiers.Go, "import \"time\"\nnow := time.Now()")
	r, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "for {\n}"})
	if err != nil || r.Lost == nil || fmt.Sprint(r.Lost.Snippets) != "[1 2]" {
		t.Errorf("%+v %v", r, err)
	}
	runOK(t, s, tiers.Go, "now := 3")
}

// TestNoProcessIsLeft checks that this process has no children left.
func TestNoProcessIsLeft(t *testing.T) {
	tier := interp.New(interp.Options{})
	tiertest.Require(t, interp.Name, tier.Probe(t.Context()))
	s, err := tier.Open(
		t.Context(), tiers.Config{Limits: tiers.Limits{Wall: 100 * time.Millisecond}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "for {\n}"}); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Close(), s.Close(), tier.Close()); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
			t.Errorf("children are left: %s", text)
		}
	}
}
