// Package gosuite is the suite for tiers that compile Go, including attacks on such tiers.
package gosuite

import (
	"context"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Run runs the suite on a tier that compiles Go. The tier must be usable.
func Run(t *testing.T, tier tiers.Tier) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, tiers.Tier)
	}{
		{"Session", testSession},
		{"Agreement", testAgreement},
		{"WhatDoesNotCompileChangesNothing", testCompileErrors},
		{"PanicsNameTheLinesAndKeepWhatWasDone", testPanics},
		{"Exits", testExits},
		{"BothStreams", testStreams},
		{"Limits", testLimits},
		{"HostCallsAreMadeOnce", testHostCalls},
		{"ASessionComesFromTheInterpreter", testMoveFromInterpreter},
		{"SomethingElseIsReported", testSomethingElse},
		{"LazyText", testLazyText},
		{"OutFolder", testOutFolder},
		{"Cancelled", testCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, tier) })
	}
}

// Open opens a session that is closed at the end of the test.
func Open(tb testing.TB, tier tiers.Tier, cfg tiers.Config) tiers.Sandbox {
	tb.Helper()
	cfg.Language = tiers.Go
	s, err := tier.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// RunSnippet runs a Go snippet. An error of the tier fails the test.
func RunSnippet(tb testing.TB, s tiers.Sandbox, source string) tiers.Result {
	tb.Helper()
	// The first call may compile the standard library.
	ctx, cancel := context.WithTimeout(tb.Context(), 4*time.Minute)
	defer cancel()
	r, err := s.Run(ctx, tiers.Job{Language: tiers.Go, Source: source})
	if err != nil {
		tb.Fatalf("%s\n%v", source, err)
	}

	return r
}

// RunOK runs a Go snippet that must succeed and must not lose any part of the session.
func RunOK(tb testing.TB, s tiers.Sandbox, source string) tiers.Result {
	tb.Helper()
	r := RunSnippet(tb, s, source)
	if r.Status != tiers.StatusOK {
		tb.Fatalf("%s\n%s %+v %s", source, r.Status, r.Exception, r.Limit)
	}
	if r.Lost != nil {
		tb.Fatalf("%s\nlost %+v", source, r.Lost)
	}

	return r
}

// goSteps are the snippets of one session, with their output.
var goSteps = []struct{ source, out string }{
	{"import \"fmt\"\nx := 3\nfmt.Println(x)", "3\n"},
	{"x + 1", "4\n"},
	{`type P struct{ N string }
func (p *P) Hi() string { return "hi " + p.N }
p := &P{"ann"}
p.Hi()`, ""},
	{"fmt.Println(p.Hi())", "hi ann\n"},
	{`package main

import (
	"fmt"
	"strings"
)

var a = b + 1
var b = 2

func init() { fmt.Println("init") }

func main() {
	fmt.Println(strings.ToUpper("whole"), x, a)
}`, "init\nWHOLE 3 3\n"},
	{"strings.Repeat(\"ab\", 2)", "\"abab\"\n"},
	{`var fs []func() int
for _, v := range []int{1, 2} {
	fs = append(fs, func() int { return v })
}
fmt.Println(fs[0](), fs[1]())`, "1 2\n"},
	{"if x := 9; x > 3 {\n\tfmt.Println(x)\n}\nx", "9\n3\n"},
	{"count := 0\nfunc inc() { count++ }\ninc()\ninc()\ncount", "2\n"},
	{"inc()\ncount", "3\n"},
	{"x := x + 10\nx", "13\n"},
	{"func show() int { return x }\nshow()", "13\n"},
	{"x := \"now a string\"\nfmt.Println(x, show())", "now a string 13\n"},
	{`type Stack[T any] struct{ items []T }
func (s *Stack[T]) Push(v T) { s.items = append(s.items, v) }
func Map[T, U any](in []T, f func(T) U) []U {
	var out []U
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}
s := &Stack[int]{}
s.Push(1)
s.Push(2)
Map(s.items, func(i int) string { return fmt.Sprint(i * 2) })`, "[2 4]\n"},
	{"import \"slices\"\ns.Push(9)\nslices.Max(s.items)", "9\n"},
	{`type P struct{ X, Y int }
func (p P) String() string { return fmt.Sprintf("(%d,%d)", p.X, p.Y) }
q := P{1, 2}
fmt.Printf("%v %T %s\n", q, q, p.Hi())`, "(1,2) main.P hi ann\n"},
	{`import "sync"
var wg sync.WaitGroup
squares := make([]int, 5)
for i := range 5 {
	wg.Add(1)
	go func() { defer wg.Done(); squares[i] = i * i }()
}
wg.Wait()
squares`, "[0 1 4 9 16]\n"},
	{"defer fmt.Println(\"deferred\")\nfmt.Println(\"first\")", "first\ndeferred\n"},
	{"const (\n\tA = iota + 1\n\tB\n)\nA + B", "3\n"},
	{"unused := 1\nfunc f() { y := 2; for i, v := range squares { _ = v } }\nmin(4, 2)", "2\n"},
	{`a, err := fmt.Sscan("7", &count)
b, err := fmt.Sscan("8", &count)
fmt.Println(a, b, err, count)`, "1 1 <nil> 8\n"},
	{`type Base struct{ ID int }
type Item struct {
	Base
	Name string
}
it := Item{Base{1}, "n"}
fmt.Printf("%+v %d\n", it, it.ID)`, "{Base:{ID:1} Name:n} 1\n"},
	{`package main

import "fmt"

type Base struct{ ID int }

type Item struct {
	Base
	Name string
}

func main() {
	it := Item{Base: Base{2}, Name: "m"}
	fmt.Printf("%+v %T %d\n", it, it, it.Base.ID)
}`, "{Base:{ID:2} Name:m} main.Item 2\n"},
	{"it.Name + fmt.Sprint(it.ID)", "\"n1\"\n"},
	{"strings := []string{\"shadowed\"}\nstrings[0]", "\"shadowed\"\n"},
	{"import \"bytes\"\nfunc buf() *bytes.Buffer { return bytes.NewBufferString(\"x\") }", ""},
	{"bb := buf()\nbb.WriteString(\"y\")\nbb.String() + \"\"", "\"xy\"\n"},
	{"goto done\nfmt.Println(\"skipped\")\ndone:\nfmt.Println(\"end\")", "end\n"},
	{"map[string]int{\"k\": count}", "map[k:8]\n"},
	{"func(n int) int { return n + 1 }(4)", ""},
	{"var any1 any = 3\nswitch v := any1.(type) {\ncase int:\n\tfmt.Println(\"int\")\n}", "int\n"},
}

func testSession(t *testing.T, tier tiers.Tier) {
	s := Open(t, tier, tiers.Config{})
	for _, step := range goSteps {
		if r := RunOK(t, s, step.source); r.Stdout != step.out {
			t.Errorf("%s\nprints %q, want %q", step.source, r.Stdout, step.out)
		}
	}
}

// OnWrite is a writer that calls a function after each write of a snippet.
type OnWrite func()

// Write calls the function and accepts everything.
func (f OnWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
