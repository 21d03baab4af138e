package gosuite

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

func testCompileErrors(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{})
	RunOK(t, s, "a := 1")
	for source, want := range map[string]string{
		"a := 2\nb := undefinedName + a":    "snippet_2.go:2:6: undefined: undefinedName",
		"x := 1\nvar s string = x":          "snippet_2.go:2:",
		"import \"github.com/x/y\"":         "package github.com/x/y is not in std",
		"import \"nosuchpackage\"":          "package nosuchpackage is not in std",
		"import \"C\"":                      "is not in std",
		"import \"internal/abi\"":           "is not in std",
		"func f() int {\n\treturn \"x\"\n}": "snippet_2.go:2:9: cannot use \"x\"",
		"fmt.Println(1)":                    "undefined: fmt",
		"x := context":                      "in Go the first input is Context",
		"for i := 0; i < 3; i++ {":          "snippet_2.go:",
		"}\nfunc evil() {":                  "snippet_2.go",
		"package other\nfunc main() {}\n)":  "snippet_2.go",
		"y := y + 1":                        "undefined: y",
		"a := 3\na := 4":                    "no new variables",
		"func rlm__1() {}":                  "reserved",
		"import . \"fmt\"":                  "own names",
		"var q [1<<40]int\nfunc big() [1<<40]int { return q }\nbig()": "",
	} {
		r := RunSnippet(t, s, source)
		if r.Status != tiers.StatusRaised || r.Exception == nil || !strings.HasSuffix(r.Exception.Type, "Error") ||
			!strings.Contains(r.Exception.Traceback, want) {
			t.Errorf("%s\n%s %+v, want %q", source, r.Status, r.Exception, want)
		}
	}

	if r := RunOK(t, s, "a"); r.Stdout != "1\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func testPanics(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{})
	RunOK(t, s, "func f(n int) int {\n\treturn 10 / n\n}")
	r := RunSnippet(t, s, "done := 0\nfor i := 1; i >= 0; i-- {\n\tdone += f(i)\n}")
	if r.Status != tiers.StatusRaised || r.Exception.Type != "runtime.Error" ||
		!strings.Contains(r.Exception.Message, "divide by zero") {
		t.Fatalf("%s %+v", r.Status, r.Exception)
	}

	for _, want := range []string{
		"main.f(...)\n\tsnippet_1.go:2: return 10 / n",
		"main.main(...)\n\tsnippet_2.go:3: done += f(i)",
	} {
		if !strings.Contains(r.Exception.Traceback, want) {
			t.Errorf("the traceback does not say %q:\n%s", want, r.Exception.Traceback)
		}
	}

	if r := RunOK(t, s, "done"); r.Stdout != "10\n" {
		t.Errorf("%q", r.Stdout)
	}
	r = RunSnippet(t, s, "import \"errors\"\nfunc g() { panic(errors.New(\"mine\")) }\ng()")
	if r.Status != tiers.StatusRaised || r.Exception.Type != "panic" || r.Exception.Message != "mine" {
		t.Errorf("%s %+v", r.Status, r.Exception)
	}

	if r := RunOK(t, s, "done += 1\ndone"); r.Stdout != "11\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func testExits(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{})
	r := RunSnippet(t, s, `import (
	"fmt"
	"os"
)
k := 5
defer fmt.Println("never")
fmt.Println("before")
os.Exit(3)
fmt.Println("after")`)

	if r.Status != tiers.StatusExited || r.Exception.ExitCode != 3 || r.Stdout != "before\n" || r.Lost != nil {
		t.Fatalf("%s %+v %q %+v", r.Status, r.Exception, r.Stdout, r.Lost)
	}
	if r := RunOK(t, s, "k"); r.Stdout != "5\n" {
		t.Errorf("%q", r.Stdout)
	}

	r = RunSnippet(t, s, "import \"log\"\nk = 6\nlog.Fatal(\"gone\")")
	if r.Status != tiers.StatusExited || r.Exception.ExitCode != 1 || r.Lost == nil ||
		!strings.HasSuffix(r.Stderr, " gone\n") {
		t.Errorf("%s %+v %+v %q", r.Status, r.Exception, r.Lost, r.Stderr)
	}
	if r := RunOK(t, s, "k"); r.Stdout != "5\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func testStreams(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{Limits: tiers.Limits{Output: 1000}})
	var out, errs strings.Builder
	r, err := s.Run(t.Context(), tiers.Job{
		Language: tiers.Go, Stdout: &out, Stderr: &errs,
		Source: `import (
	"fmt"
	"os"
)
fmt.Println("a")
fmt.Fprintln(os.Stderr, "b")
println("c", 1, true)
os.Stdout.WriteString("d\n")`,
	})

	if err != nil || r.Stdout != "a\nd\n" || r.Stderr != "b\nc 1 true\n" || out.String() != r.Stdout ||
		errs.String() != r.Stderr {
		t.Errorf("%+v %v %q %q", r, err, out.String(), errs.String())
	}
	r = RunOK(t, s, "for i := range 100000 { fmt.Println(i) }")
	if r.Limit != tiers.LimitOutput || len(r.Stdout) != 1000 || r.Dropped != 588890-1000 ||
		r.Usage.OutputBytes != 588890 {
		t.Errorf("%s %d %d", r.Limit, len(r.Stdout), r.Dropped)
	}

	RunOK(t, s, "1")
}

func testLimits(t *testing.T, tier tiers.Tier) {
	for name, c := range map[string]struct {
		source string
		limit  tiers.Limit
	}{
		"loop":     {"for {\n}", tiers.LimitWall},
		"sleep":    {"import \"time\"\ntime.Sleep(time.Hour)", tiers.LimitWall},
		"deadlock": {"select {}", tiers.LimitWall},
		"memory": {`var all [][]byte
for {
	b := make([]byte, 1<<22)
	for i := range b { b[i] = 1 }
	all = append(all, b)
}`, tiers.LimitMemory},
		"huge slice": {"b := make([]byte, 1<<45)\nb[0] = 1", tiers.LimitMemory},
	} {
		t.Run(name, func(t *testing.T) {
			// the memory limit must end the snippet
			s := Open(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 20 * time.Second, Memory: 64 << 20}})
			RunOK(t, s, "kept := 41")
			if name == "loop" || name == "sleep" || name == "deadlock" {
				s = Open(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 3 * time.Second}})
				RunOK(t, s, "kept := 41")
			}

			begun := time.Now()
			r := RunSnippet(t, s, c.source)
			if name == "huge slice" && r.Status == tiers.StatusRaised {
				return // the compiler recognises that the slice is too large
			}
			if r.Status != tiers.StatusLimit || r.Limit != c.limit && (r.Limit != tiers.LimitActive ||
				name != "loop") || r.Lost == nil || fmt.Sprint(r.Lost.Snippets) != "[2]" {
				t.Fatalf("%s %s %+v %+v after %v", r.Status, r.Limit, r.Exception, r.Lost, time.Since(begun))
			}

			if r := RunOK(t, s, "kept + 1"); r.Stdout != "42\n" {
				t.Errorf("%q", r.Stdout)
			}
		})
	}
}

// counting is a host that counts its calls.
type counting struct {
	mu    sync.Mutex
	calls []tiers.Call
}

func (c *counting) Call(_ context.Context, call tiers.Call) (tiers.Value, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	if len(call.Args) > 0 && string(call.Args[0]) == `"fail"` {
		return nil, errors.New("host says no")
	}
	return json.Marshal("re: " + strings.Trim(string(call.Args[0]), `"`))
}

func (c *counting) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

func testHostCalls(t *testing.T, tier tiers.Tier) {
	h := &counting{}
	cfg := tiers.Config{
		Host: h, Functions: []tiers.Function{{Name: "ask"}, {Name: "llm_query"}},
		Limits: tiers.Limits{Wall: 2 * time.Second, HostCalls: 20},
		Inputs: []tiers.Input{{Value: tiers.Value(`{"a": 1}`)}},
	}

	s := Open(t, tier, cfg)
	RunOK(t, s, `import "fmt"
a, err := Query("hi")
fmt.Println(a, err)
b, err := ask("x", 1)
c, err := Call("ask", "fail")
fmt.Println(b, c, err)`)

	r := RunOK(t, s, `answers, err := QueryBatched([]string{"1", "2", "3", "4"})
fmt.Println(answers, err)`)
	if r.Stdout != "[re: 1 re: 2 re: 3 re: 4] <nil>\n" || h.made() != 7 || r.Usage.HostCalls != 4 {
		t.Errorf("%q, %d calls, %d in the snippet", r.Stdout, h.made(), r.Usage.HostCalls)
	}
	if r := RunOK(t, s, "fmt.Println(a, b, answers[3], Context)"); r.Stdout != "re: hi re: x re: 4 map[a:1]\n" ||
		h.made() != 7 {
		t.Errorf("%q, %d calls", r.Stdout, h.made())
	}

	// The functions also work after a loss.
	if r := RunSnippet(t, s, "for {\n}"); r.Lost == nil {
		t.Errorf("%+v", r)
	}
	r = RunSnippet(t, s, "import \"math\"\nFINAL(map[string]any{\"a\": []float64{1, math.NaN()}})")
	if r.Status != tiers.StatusRaised || r.Final != nil ||
		!strings.Contains(r.Exception.Message, "the answer has NaN") {
		t.Errorf("%+v", r)
	}
	r = RunOK(t, s, "FINAL_VAR(\"answers\")\nFINAL(1)")
	if r.Final == nil || string(r.Final.Value) != `["re: 1","re: 2","re: 3","re: 4"]` ||
		r.Final.Name != "answers" || h.made() != 7 {
		t.Errorf("%+v, %d calls", r.Final, h.made())
	}

	state, err := s.(tiers.Exporter).Export(t.Context())
	if err != nil || state.Format != session.FormatReplay || state.Language != tiers.Go {
		t.Fatalf("%+v %v", state, err)
	}
	other := Open(t, tier, cfg)
	report, err := other.(tiers.Exporter).Import(t.Context(), state)
	if err != nil || report.Moved != 5 {
		t.Fatalf("%+v %v", report, err)
	}
	if r := RunOK(t, other, "a + answers[0]"); r.Stdout != "\"re: hire: 1\"\n" || h.made() != 7 || r.Final != nil {
		t.Errorf("%q after %d calls, %+v", r.Stdout, h.made(), r.Final)
	}

	r = RunOK(t, other, "n := 0\nfor i := range 30 {\n\tif _, err := ask(i); err != nil { n++ }\n}\nn")
	if r.Stdout != "10\n" || r.Limit != tiers.LimitHostCalls || h.made() != 27 {
		t.Errorf("%q %s %d", r.Stdout, r.Limit, h.made())
	}
}

// testMoveFromInterpreter imports a state that tier interp exported.
func testMoveFromInterpreter(t *testing.T, tier tiers.Tier) {
	h := &counting{}
	s := Open(t, tier, tiers.Config{Host: h, Functions: []tiers.Function{{Name: "ask"}}})
	call := sha256.Sum256([]byte(`["llm_query",["hi"],{}]`))
	data := `["import \"fmt\"\nx := 3\nfunc double(n int) int { return 2 * n }",` +
		`{"source":"a, _ := Query(\"hi\")\nfmt.Println(a)",` +
		`"calls":[{"call":"` + base64.StdEncoding.EncodeToString(call[:]) + `","value":"cached"}]}]`
	state := tiers.State{
		Language: tiers.Go, Format: session.FormatReplay, From: "interp", Snippet: 2, Data: []byte(data),
	}
	if _, err := s.(tiers.Exporter).Import(t.Context(), state); err != nil {
		t.Fatal(err)
	}

	r := RunOK(t, s, "func Twice[T any](v T) []T { return []T{v, v} }\nfmt.Println(Twice(a), double(x))")
	if r.Stdout != "[cached cached] 6\n" || h.made() != 0 {
		t.Errorf("%q, %d calls", r.Stdout, h.made())
	}
	var rejected *tiers.RejectedError
	for _, data := range []string{
		`["x := "]`, `["x := undefined"]`, `{}`,
		`[{"source":"a, _ := Query(\"hi\")\nprintln(a)","calls":[]}]`,
	} {
		state.Data = []byte(data)
		if _, err := Open(t, tier, tiers.Config{}).(tiers.Exporter).Import(t.Context(), state); !errors.As(err,
			&rejected) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func testSomethingElse(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{})
	RunOK(t, s, `import (
	"fmt"
	"math/rand"
	"time"
)
n := rand.Intn(1000000)
fmt.Println(n)`)

	RunOK(t, s, "fmt.Println(n, rand.Intn(1000000))")
	RunOK(t, s, "fmt.Println(time.Now().UnixNano())")
	r := RunSnippet(t, s, "1")
	if r.Status != tiers.StatusOK || r.Lost == nil || fmt.Sprint(r.Lost.Snippets) != "[3]" {
		t.Errorf("%s %+v", r.Status, r.Lost)
	}

	state, err := s.(tiers.Exporter).Export(t.Context())
	if err != nil || len(state.Left) != 1 || state.Left[0].Name != "snippet 3" {
		t.Errorf("%+v %v", state.Left, err)
	}
}

func testLazyText(t *testing.T, tier tiers.Tier) {
	text := bigtext.FromBytes("long", []byte(strings.Repeat("héllo wörld\n", 20000)))
	defer text.Close()
	short := bigtext.FromBytes("short", []byte("short\n"))
	defer short.Close()
	h := &counting{}
	s := Open(t, tier, tiers.Config{
		Host: h, Functions: []tiers.Function{{Name: "ask"}},
		Inputs: []tiers.Input{{Text: text}, {Text: short}},
	})

	r := RunOK(t, s, `import "fmt"
found := Context.Find("wörld", 6)
fmt.Println(Context.Len(), Context.Slice(0, 5), found, Context.Count("h"),
	Context.LineCount(), Context.Lines(1, 3), len(Context_1))
ask(Context)
var kept *Text = Context`)
	if want := "240000 héllo 6 20000 20000 [héllo wörld héllo wörld] 6\n"; r.Stdout != want {
		t.Errorf("%q, want %q", r.Stdout, want)
	}
	if h.made() != 1 || string(h.calls[0].Args[0]) != `{"__rlm_text__":[0,0,240000]}` {
		t.Errorf("%+v", h.calls)
	}

	RunOK(t, s, "kept.RFind(\"h\")")
}

func testCancelled(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{})
	RunOK(t, s, "a := 1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := s.Run(ctx, tiers.Job{
		Language: tiers.Go, Source: `import "fmt"
fmt.Println(a)
for {
}`, Stdout: OnWrite(cancel), // while the snippet runs, not while it is compiled
	})

	var broken *tiers.BrokenError
	if !errors.As(err, &broken) || !errors.Is(err, context.Canceled) || broken.Effects != tiers.EffectsRan ||
		broken.Lost == nil {
		t.Fatalf("%v", err)
	}
	if r := RunOK(t, s, "a"); r.Stdout != "1\n" {
		t.Errorf("%q", r.Stdout)
	}
	if tier.Info().Lacks[tiers.Python] != "" {
		return
	}

	if r, err := s.Run(t.Context(), tiers.Job{Source: "print('python, too')"}); err != nil ||
		r.Stdout != "python, too\n" {
		t.Errorf("%+v %v", r, err)
	}
}
