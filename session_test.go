package rlm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tables"
	"github.com/rlmhq/rlm/tiers"
)

// longText is the length of a text that is too long to be passed as a plain str.
const longText = 8<<20 + 1

// TestMain keeps the cache of this test separate from the user's.
func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// sharedEngine serves all tests, so the interpreter is compiled only once.
var sharedEngine = sync.OnceValues(func() (*rlm.Engine, error) {
	return rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{}), SQL: tables.SQL})
})

// open starts a session that is closed when the test ends.
func open(t *testing.T, cfg rlm.SessionConfig) *rlm.Session {
	t.Helper()
	session, err := tryOpen(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func tryOpen(t *testing.T, cfg rlm.SessionConfig) (*rlm.Session, error) {
	t.Helper()
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	session, err := engine.Open(t.Context(), cfg)
	if err == nil {
		t.Cleanup(func() {
			if err := session.Close(); err != nil {
				t.Errorf("the session does not close: %v", err)
			}
		})
	}
	return session, err
}

// prints runs a snippet that must succeed and print exactly want.
func prints(t *testing.T, session *rlm.Session, source, want string) {
	t.Helper()
	result, err := session.Run(t.Context(), source)
	if err != nil {
		t.Fatalf("%s\n%v", source, err)
	}
	if result.Status != tiers.StatusOK || result.Stdout != want {
		t.Errorf("%s\nis %s and prints %q, want %q\n%s", source, result.Status, result.Stdout, want,
			trouble(result))
	}
}

func trouble(r rlm.Result) string {
	if r.Exception == nil {
		return r.Stderr
	}
	return r.Stderr + r.Exception.Traceback
}

// file creates a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASnippetFindsEachKindOfContext(t *testing.T) {
	long := strings.Repeat("ä", longText/2) + "é!"
	longPath := file(t, "long.txt", long)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.txt": "one", "sub/b.txt": "two"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	longShown := fmt.Sprintf("True %d é!\n", longText/2+2)
	const showLong = `print(isinstance(context, str), len(context), context[-2:])`
	type guest struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	for _, c := range []struct {
		name         string
		context      rlm.Context
		source, want string
	}{
		{"short File", rlm.File(file(t, "a.txt", "ärger\r\n")), `print(repr(context))`, "'ärger\\r\\n'\n"},
		{"long File", rlm.File(longPath), showLong, longShown},
		{"directory", rlm.File(dir), `print(dict(context))`, "{'a.txt': 'one', 'sub/b.txt': 'two'}\n"},
		{"Text", rlm.Text("t", "in memory"), `print(repr(context))`, "'in memory'\n"},
		{"empty Text", rlm.Text("t", ""), `print(repr(context))`, "''\n"},
		{"Text with other bytes", rlm.Text("t", "a\xff"), `print(ascii(context))`, "'a\\udcff'\n"},
		{"long Text", rlm.Text("t", long), showLong, longShown},
		{
			"Reader", rlm.Reader("r", iotest.OneByteReader(strings.NewReader("streamed")), 8),
			`print(repr(context))`, "'streamed'\n",
		},
		{"long Reader", rlm.Reader("r", strings.NewReader(long), 1<<30), showLong, longShown},
		{
			"Value", rlm.Value("v", guest{"Ada", []string{"x", "ü"}}),
			`print(type(context) is dict, context["name"], context["tags"])`, "True Ada ['x', 'ü']\n",
		},
		{"Value of nil", rlm.Value("v", nil), `print(context)`, "None\n"},
		{"Value of a big number", rlm.Value("v", uint64(math.MaxUint64)), `print(context)`, "18446744073709551615\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{c.context}})
			prints(t, session, c.source, c.want)
			prints(t, session, "print(context is context_0)", "True\n")
		})
	}
}

func TestContextsAreNumberedInOrder(t *testing.T) {
	session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{
		rlm.Text("first", "a"),
		rlm.Value("second", 2),
		rlm.Reader("third", strings.NewReader("c"), 1),
	}})
	prints(t, session, "print(context, context_0, context_1, context_2)", "a a 2 c\n")
}

func TestAContextThatCannotBeUsedIsAnErrorThatNamesIt(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.txt")
	broken := errors.New("the line is dead")
	for _, c := range []struct {
		name    string
		context rlm.Context
		says    string
		wraps   error
	}{
		{"missing", rlm.File(missing), "missing.txt", fs.ErrNotExist},
		{"empty file", rlm.File(file(t, "empty.txt", "")), "empty.txt", nil},
		{"hollow directory", rlm.File(t.TempDir()), "no files", nil},
		{"device", rlm.File(os.DevNull), filepath.Base(os.DevNull), nil},
		{"empty stream", rlm.Reader("the stream", strings.NewReader(""), 10), "the stream", nil},
		{
			"stream beyond its limit", rlm.Reader("the stream", strings.NewReader("12345678901"), 10),
			"the stream", bigtext.ErrTooLarge,
		},
		{"stream that breaks", rlm.Reader("the stream", iotest.ErrReader(broken), 10), "the stream", broken},
		{"value that is not JSON", rlm.Value("the value", math.NaN()), "the value", nil},
		{"zero", rlm.Context{}, "File, Text, Reader, Value or package inputs", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tryOpen(t,
				rlm.SessionConfig{Contexts: []rlm.Context{rlm.Text("good", "text"), c.context}})
			if err == nil {
				t.Fatal("the session opens")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
			if c.wraps != nil && !errors.Is(err, c.wraps) {
				t.Errorf("the error does not wrap %q: %v", c.wraps, err)
			}
		})
	}
}

func TestLimitsAndFunctionsThatMakeNoSenseAreErrors(t *testing.T) {
	for name, cfg := range map[string]rlm.SessionConfig{
		"negative wall":   {Limits: tiers.Limits{Wall: -1}},
		"negative memory": {Limits: tiers.Limits{Memory: -1}},
		"no identifier":   {Functions: []rlm.Function{rlm.Func("not a name", "", ping)}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tryOpen(t, cfg); err == nil {
				t.Error("the session opens")
			}
		})
	}
	// Only a tier can detect these errors, so they occur when the first snippet needs a tier.
	for name, bytes := range map[string]int64{"too little memory": 1 << 20, "too much memory": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			session := open(
				t,
				rlm.SessionConfig{
					Limits: tiers.Limits{Memory: bytes},
					Policy: router.Policy{Pin: "wasm"},
				},
			)
			if _, err := session.Run(t.Context(), "print(1)"); !errors.Is(err, router.ErrNoTier) {
				t.Errorf("the snippet runs: %v", err)
			}
		})
	}
}

func TestAForkIsIndependent(t *testing.T) {
	session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{rlm.Text("t", "text")}})
	prints(t, session, "items = ['both']\ndef show(): print(items, context)", "")
	fork, err := session.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	prints(t, fork, "items.append('fork')\nshow()", "['both', 'fork'] text\n")
	prints(t, session, "items.append('origin')\nshow()", "['both', 'origin'] text\n")
	prints(t, fork, "show()", "['both', 'fork'] text\n")
}

func TestAForkOutlivesItsOrigin(t *testing.T) {
	for name, c := range map[string]rlm.Context{
		"short": rlm.File(file(t, "a.txt", "text")),
		"long":  rlm.File(file(t, "long.txt", strings.Repeat("x", longText)+"text")),
	} {
		t.Run(name, func(t *testing.T) {
			session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{c}})
			fork, err := session.Fork(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer fork.Close()
			// A second Close must not release the fork's share of the contexts.
			for range 2 {
				if err := session.Close(); err != nil {
					t.Fatal(err)
				}
			}
			prints(t, fork, "print(context[-4:])", "text\n")
		})
	}
}

func TestCloseIsIdempotent(t *testing.T) {
	session := open(t,
		rlm.SessionConfig{Contexts: []rlm.Context{rlm.File(file(t, "a.txt", "text"))}})
	prints(t, session, "print(context)", "text\n")
	for i := range 3 {
		if err := session.Close(); err != nil {
			t.Errorf("close %d: %v", i+1, err)
		}
	}
	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := engine.Close(); err != nil {
			t.Errorf("close %d of the engine: %v", i+1, err)
		}
	}
}

func TestAClosedSessionAnswersWithErrors(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Run(t.Context(), "print(1)"); err == nil {
		t.Error("it runs a snippet")
	}
	if _, err := session.Fork(t.Context()); err == nil {
		t.Error("it can be forked")
	}
}

func TestAClosedEngineAnswersWithErrors(t *testing.T) {
	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Open(t.Context(), rlm.SessionConfig{}); err == nil {
		t.Error("it opens a session")
	}
	if err := engine.Warm(t.Context()); err == nil {
		t.Error("it warms up")
	}
}

func TestOpenAndRunEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	session := open(t, rlm.SessionConfig{})
	cancel()
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Open(ctx, rlm.SessionConfig{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
	if _, err := session.Run(ctx, "x = 1"); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	prints(t, session, "print('x' in globals())", "False\n")
}

func ping(context.Context, tiers.Call) (int, error) { return 1, nil }

// functions maps names to host functions that receive their calls unchanged.
type functions map[string]func(ctx context.Context, call tiers.Call) (any, error)

// config offers the functions to a session.
func (f functions) config(contexts ...rlm.Context) rlm.SessionConfig {
	cfg := rlm.SessionConfig{Contexts: contexts}
	for name, call := range f {
		cfg.Functions = append(cfg.Functions, rlm.Func(name, "", call))
	}
	return cfg
}

func TestHostFunctionsTakeAndReturnTypedValues(t *testing.T) {
	var got []tiers.Call
	session := open(t, functions{
		"record": func(_ context.Context, call tiers.Call) (any, error) {
			got = append(got, call)
			return map[string]any{"n": 1, "half": 0.5, "list": []any{"ä", nil, true}}, nil
		},
	}.config())
	prints(t, session, "x = record(1, 'ü', [None, 2.5], key={'deep': (1, 2)})\nprint(x)",
		"{'half': 0.5, 'list': ['ä', None, True], 'n': 1}\n")
	prints(t, session, "record(); y = record()\nprint(y == x, type(y['n']), type(y['half']))",
		"True <class 'int'> <class 'float'>\n")
	if len(got) != 3 {
		t.Fatalf("%d calls, want 3", len(got))
	}
	first := got[0]
	var numbers struct {
		Deep []int `json:"deep"`
	}
	if err := json.Unmarshal(first.Named["key"], &numbers); err != nil ||
		!slices.Equal(numbers.Deep, []int{1, 2}) {
		t.Errorf("the keyword argument is %s (%v)", first.Named["key"], err)
	}
	if len(first.Args) != 3 || string(first.Args[0]) != "1" || string(first.Args[1]) != `"ü"` {
		t.Errorf("the arguments are %s", first.Args)
	}
	for i, want := range [][2]int{{1, 1}, {2, 1}, {2, 2}} {
		if at := [2]int{got[i].Snippet, got[i].Ordinal}; at != want {
			t.Errorf("call %d says snippet and ordinal %v, want %v", i, at, want)
		}
	}
}

func TestAnErrorOfTheHostIsAPythonException(t *testing.T) {
	session := open(t, functions{
		"fail": func(context.Context, tiers.Call) (any, error) { return nil, errors.New("no such book: «ü»") },
	}.config())
	prints(t, session, "try: fail()\nexcept Exception as e: print(e)", "no such book: «ü»\n")
	result, err := session.Run(t.Context(), "fail()")
	if err != nil || result.Status != tiers.StatusRaised ||
		result.Exception.Message != "no such book: «ü»" {
		t.Errorf("status %s, error %v\n%s", result.Status, err, trouble(result))
	}
}

func TestALongContextReachesTheHostAsAReference(t *testing.T) {
	var got []tiers.Value
	session := open(t, functions{
		"send": func(_ context.Context, call tiers.Call) (any, error) {
			got = call.Args
			return nil, nil
		},
	}.config(rlm.Text("first", "short"), rlm.Text("second", strings.Repeat("ä", longText))))
	prints(t, session, "send(context_1, context_1[5:-5], context_0)", "")
	want := []string{
		fmt.Sprintf(`{"__rlm_text__": [1, 0, %d]}`, longText),
		fmt.Sprintf(`{"__rlm_text__": [1, 5, %d]}`, longText),
		`"short"`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d arguments, want %d", len(got), len(want))
	}
	// A slice of less than 8 Mi characters is passed as a string, not as a reference.
	if string(got[0]) != want[0] || string(got[2]) != want[2] {
		t.Errorf("the arguments are %.80s and %.80s, want %s and %s", got[0], got[2], want[0],
			want[2])
	}
}

func TestTheLimitOfHostCallsIsNamed(t *testing.T) {
	cfg := functions{
		"ping": func(context.Context, tiers.Call) (any, error) { return 1, nil },
	}.config()
	cfg.Limits = tiers.Limits{HostCalls: 3}
	session := open(t, cfg)
	result, err := session.Run(t.Context(), "while True: ping()")
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != tiers.StatusLimit || result.Limit != tiers.LimitHostCalls ||
		result.Usage.HostCalls != 3 {
		t.Errorf("status %s, limit %q, %d calls\n%s", result.Status, result.Limit,
			result.Usage.HostCalls, trouble(result))
	}
	prints(t, session, "print(ping() + ping() + ping())", "3\n")
}

func TestCallsGatheredRunAtTheSameTime(t *testing.T) {
	const n = 8
	var here sync.WaitGroup
	here.Add(n)
	session := open(t, functions{
		// No call returns before all have begun.
		"meet": func(_ context.Context, call tiers.Call) (any, error) {
			here.Done()
			here.Wait()
			return call.Args[0], nil
		},
	}.config())
	prints(
		t,
		session,
		fmt.Sprintf("import asyncio\nprint(await asyncio.gather(*[meet(i) for i in range(%d)]))",
			n),
		"[0, 1, 2, 3, 4, 5, 6, 7]\n",
	)
}

func TestSessionsRunConcurrently(t *testing.T) {
	const sessions, snippets = 8, 10
	path := file(t, "long.txt", strings.Repeat("one two three\n", longText/14+1))
	var all sync.WaitGroup
	for i := range sessions {
		all.Go(func() {
			cfg := functions{
				"mine": func(context.Context, tiers.Call) (any, error) { return i, nil },
			}.config(rlm.File(path), rlm.Value("number", i))
			session := open(t, cfg)
			for n := range snippets {
				source := fmt.Sprintf(
					"total = globals().get('total', 0) + mine()\nprint(total, context_1, "+
						"context.count('two'))\nassert total == %d",
					i*(n+1),
				)
				result, err := session.Run(t.Context(), source)
				want := fmt.Sprintf("%d %d %d\n", i*(n+1), i, longText/14+1)
				if err != nil || result.Stdout != want {
					t.Errorf(
						"session %d, snippet %d: %q, want %q (%v)\n%s", i, n, result.Stdout, want,
						err, trouble(result),
					)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestCancellationStopsASnippetAndLeavesTheSession(t *testing.T) {
	for name, source := range map[string]string{
		"a loop":           "while True: pass",
		"a stubborn loop":  "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
		"a loop in C code": "sum(range(10 ** 12))",
		"asleep":           "import time; time.sleep(3600)",
		"awaiting":         "import asyncio; await asyncio.sleep(3600)",
		"a host call":      "block()",
		"an awaited call":  "await block()",
	} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{}, 1)
			cfg := functions{
				"begun": func(context.Context, tiers.Call) (any, error) { begun <- struct{}{}; return nil, nil },
				"block": func(ctx context.Context, _ tiers.Call) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
			}.config()
			cfg.Limits.Wall = 24 * time.Hour // so that only the cancellation can end the snippet
			session := open(t, cfg)
			prints(t, session, "kept = 'kept'", "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-begun
				cancel()
			}()
			_, err := session.Run(ctx, "begun()\n"+source)
			var broken *tiers.BrokenError
			if !errors.Is(err, context.Canceled) || !errors.As(err, &broken) {
				t.Fatalf("the error is %v, want a BrokenError that wraps context.Canceled", err)
			}
			// Either the variable exists, or the loss of its snippet is reported.
			reported := broken.Lost != nil && slices.Contains(broken.Lost.Snippets, 1)
			prints(t, session, "print('kept' in globals())",
				map[bool]string{true: "False\n", false: "True\n"}[reported])
		})
	}
}

func TestADeadlineIsAnErrorToo(t *testing.T) {
	session := open(t, rlm.SessionConfig{Limits: tiers.Limits{Wall: 24 * time.Hour}})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := session.Run(ctx, "while True: pass"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	prints(t, session, "print(1)", "1\n")
}

// mapped skips the test on systems where a mapped file cannot be changed.
func mapped(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let one change a file that is mapped")
	}
}

func TestAFileThatChangesBetweenSnippetsIsAnError(t *testing.T) {
	mapped(t)
	for name, change := range map[string]func(path string) error{
		"cut to nothing": func(path string) error { return os.Truncate(path, 0) },
		"cut in half":    func(path string) error { return os.Truncate(path, longText/2) },
		"grown":          func(path string) error { return os.Truncate(path, 2*longText) },
		"touched":        func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)) },
	} {
		for size, n := range map[string]int{"short": 1 << 20, "long": longText} {
			t.Run(name+", "+size, func(t *testing.T) {
				path := file(t, "changing.txt", strings.Repeat("x", n))
				session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{rlm.File(path)}})
				prints(t, session, "print(context.count('x'))", fmt.Sprintln(n))
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the error persists
					_, err := session.Run(t.Context(), "print(context.count('x'))")
					if !errors.Is(err, bigtext.ErrChanged) ||
						!strings.Contains(err.Error(), "changing.txt") {
						t.Errorf("the error is %v", err)
					}
				}
			})
		}
	}
}

// TestAFileThatIsCutUnderASnippetIsAnError truncates a file while a snippet reads it, and checks
// that the snippet or its run fails and that the process survives.
func TestAFileThatIsCutUnderASnippetIsAnError(t *testing.T) {
	mapped(t)
	for name, source := range map[string]string{
		"slice":  "cut()\nprint(len(context[-1000:]))",
		"index":  "cut()\nprint(context[-1])",
		"count":  "cut()\nprint(context.count('x'))",
		"find":   "cut()\nprint(context.find('y'))",
		"regexp": "import re\ncut()\nprint(len(re.findall('x+', context)))",
		"split":  "cut()\nprint(len(context.split('\\n')))",
		"lines":  "rest = iter(context)\nnext(rest)\ncut()\nfor line in rest: pass",
		"chunks": "rest = iter(context.chunks(1000))\nnext(rest)\ncut()\nfor part in rest: pass",
		"bytes":  "cut()\nprint(len(context.bytes(-1000)))",
		"whole":  "cut()\nprint(len(str(context)))",
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat("xxxxxxx\n", longText/8+1)
			path := file(t, "cut.txt", text)
			session := open(t, functions{
				"cut": func(context.Context, tiers.Call) (any, error) { return nil, os.Truncate(path, 0) },
			}.config(rlm.File(path)))
			prints(t, session, "print(len(context))", fmt.Sprintln(len(text)))
			result, err := session.Run(t.Context(), source)
			if err == nil && result.Status != tiers.StatusRaised {
				t.Errorf("the snippet is %s and prints %q", result.Status, result.Stdout)
			}
			if _, err := session.Run(t.Context(), "print(1)"); !errors.Is(err, bigtext.ErrChanged) {
				t.Errorf("the next snippet: %v", err)
			}
		})
	}
	// The engine serves other sessions as before.
	prints(t, open(t, rlm.SessionConfig{}), "print(1)", "1\n")
}

func TestASessionReadsMoreFilesThanAreOpenAtOnce(t *testing.T) {
	for name, size := range map[string]int64{"short": 1 << 10, "long": longText} {
		t.Run(name, func(t *testing.T) {
			const n = 70
			dir := t.TempDir()
			for i := range n {
				path := filepath.Join(dir, fmt.Sprintf("%03d", i))
				if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, size); err != nil { // a hole in the file
					t.Fatal(err)
				}
			}
			session := open(t, rlm.SessionConfig{
				Contexts: []rlm.Context{inputs.Files(inputs.Options{}, dir)},
			})
			all := fmt.Sprintln(n * size)
			prints(t, session,
				"first = context['000']\nprint(sum(len(context[p]) for p in context))", all)
			prints(t, session, "print(first[:4])", "text\n")
			prints(t, session, "print(sum(len(context[p]) for p in context))", all)
		})
	}
}

func TestTheSameWorkTakesTheSameFuel(t *testing.T) {
	var used []uint64
	for range 2 {
		session := open(t, rlm.SessionConfig{Deterministic: true})
		result, err := session.Run(t.Context(),
			"import random\nprint(sorted(random.random() for _ in range(100))[:3])")
		if err != nil || result.Status != tiers.StatusOK {
			t.Fatalf("%v\n%s", err, trouble(result))
		}
		used = append(used, result.Usage.Fuel)
	}
	if used[0] != used[1] || used[0] == 0 {
		t.Errorf("the two runs took %d and %d", used[0], used[1])
	}
}

func TestARunStreamsItsOutput(t *testing.T) {
	var stdout, stderr strings.Builder
	var seen string
	session := open(t, functions{
		"look": func(context.Context, tiers.Call) (any, error) { seen = stdout.String(); return nil, nil },
	}.config())
	result, err := session.RunJob(t.Context(), tiers.Job{
		Source: "import sys\nprint('before')\nlook()\nprint('after')\nprint('error', file=sys.stderr)",
		Stdout: &stdout,
		Stderr: &stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != "before\n" || stdout.String() != "before\nafter\n" || stderr.String() != "error\n" {
		t.Errorf("streamed %q, then %q and %q", seen, stdout.String(), stderr.String())
	}
	if result.Stdout != stdout.String() || result.Stderr != stderr.String() {
		t.Errorf("the result has %q and %q", result.Stdout, result.Stderr)
	}
}

func TestAnotherLanguageIsRejected(t *testing.T) {
	session := open(t, rlm.SessionConfig{Policy: router.Policy{Pin: "wasm"}})
	_, err := session.RunJob(t.Context(), tiers.Job{Language: tiers.Go, Source: "package main"})
	if !errors.Is(err, router.ErrNoTier) {
		t.Errorf("the error is %v", err)
	}
	prints(t, session, "print(1)", "1\n")
}

// TestASnippetMayTakeANameOfPython checks that rebound names of built-ins do not disturb the check
// that follows code which could have harmed the interpreter.
func TestASnippetMayTakeANameOfPython(t *testing.T) {
	for _, pin := range []string{rlm.TierWasm, rlm.TierLocal} {
		t.Run(pin, func(t *testing.T) {
			cfg := rlm.SessionConfig{Policy: router.Policy{Pin: pin, AllowLocal: true}}
			session := open(t, cfg)
			if _, err := session.Run(t.Context(), "1"); errors.Is(err, router.ErrNoTier) {
				t.Skip(err)
			}
			prints(t, session, "kept = 1\nstr = print_ = len = None", "")
			prints(t, session, "kind = ''.__class__", "")
			prints(t, session, "print(kept)", "1\n")
		})
	}
}
