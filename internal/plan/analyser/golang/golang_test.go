package golang

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/router"
)

func analyse(tb testing.TB, source string) router.Verdict {
	tb.Helper()
	v, err := Analyser{}.Analyse(context.Background(), source)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func TestFeaturesAreFound(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"go f()", "go-goroutines"},
		{"import \"os/exec\"\nexec.Command(\"ls\").Run()", "processes"},
		{"import e \"os/exec\"\nout, _ := e.Command(\"ls\").Output()", "processes"},
		{"exec.Command(\"ls\")", "processes"},
		{
			"package main\nimport \"os/exec\"\nfunc main() { exec.Command(\"ls\").Run() }",
			"processes",
		},
		{"exec.LookPath(\"ls\")", ""},
		{"exec := pool{}\nexec.Command(\"x\")", ""},
		{"func f(exec pool) { exec.Command(\"x\") }", ""},
		{"import \"net\"\nc, err := net.Dial(\"tcp\", \"x:80\")", "sockets"},
		{"import \"net\"\nip := net.ParseIP(\"1.2.3.4\")", ""},
		{"import \"net/http\"\nr, err := http.Get(\"http://x\")", "sockets"},
		{"import \"net/http\"\nfmt.Println(http.StatusOK, http.MethodGet)", ""},
		{"import \"net/url\"\nu, err := url.Parse(\"http://x\")", ""},
		{"data, err := os.ReadFile(\"x\")", "files"},
		{"import \"os\"\nf, err := os.Create(\"x\")", "files"},
		{"import \"path/filepath\"\nfilepath.WalkDir(\".\", nil)", "files"},
		{"import \"path/filepath\"\nfilepath.Join(\"a\", \"b\")", ""},
		{"os.Getenv(\"X\")\nfmt.Fprintln(os.Stderr, os.Args)", ""},
		{"import \"unsafe\"\nn := unsafe.Sizeof(x)", "native"},
		{"import \"C\"", "native"},
		{"import \"syscall\"\nsyscall.Getpid()", "native"},
		{"import \"syscall\"\nsyscall.Exec(\"ls\", nil, nil)", "processes"},
		{"import \"plugin\"\nplugin.Open(\"x.so\")", "native"},
		{"import \"reflect\"\nreflect.TypeOf(x)", "go-reflect"},
		{"for i := 0; i < 3; i++ { fs = append(fs, func() int { return i }) }", "go1.22-loops"},
		{"for i := 0; i < 3; i++ { ps = append(ps, &i) }", "go1.22-loops"},
		{"for _, x := range xs { go func() { f(x) }() }", "go-goroutines go1.22-loops"},
		{"for _, x := range xs { go func(x int) { f(1) }(x) }", "go-goroutines"},
		{"for i := 0; i < 3; i++ { fmt.Println(i) }", ""},
		{"for i := range 10 { fmt.Println(i) }", "go1.22-range-int"},
		{"for i := range len(xs) { fmt.Println(i) }", "go1.22-range-int"},
		{"for i := range xs { fmt.Println(i) }", ""},
		{"x := min(a, b) + max(1, 2)\nclear(m)", "go1.21-builtins"},
		{"func min(a, b int) int { return a }\nx := min(1, 2)", ""},
		{"max := func(a, b int) int { return a }\nx := max(1, 2)", ""},
		{"func Map[T, U any](xs []T, f func(T) U) []U { return nil }", "go-generics"},
		{"type Set[T comparable] map[T]struct{}", "go-generics"},
		{"import \"slices\"\nslices.Sort(xs)", "go-generics-stdlib"},
		{
			"import \"maps\"\nimport \"slices\"\nks := slices.Collect(maps.Keys(m))",
			"go-generics-stdlib",
		},
		{"import \"sort\"\nsort.Slice(xs, func(i, j int) bool { return xs[i] < xs[j] })", ""},
		{
			"type T struct{}\nfunc (t T) String() string { return \"\" }\nfmt.Println(T{})",
			"go-methods",
		},
		{"type E struct{}\nfunc (e *E) Error() string { return \"\" }", "go-methods"},
		{"type T struct{}\nfunc (t T) Area() float64 { return 0 }", ""},
		{"s := \"os.ReadFile and go func()\" // http.Get", ""},
		{
			"import \"strings\"\nparts := strings.Split(context, \"\\n\")\nfmt.Println(len(parts))",
			"",
		},
		{"answer := Query(\"x\")\nFINAL(answer)", ""},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			v := analyse(t, c.source)
			if v.Needs == nil {
				t.Errorf("%q: %+v %q", c.source, v.Invalid, v.Unknown)
				return
			}
			var got []string
			for _, f := range v.Needs.Features {
				got = append(got, string(f.Feature))
			}
			slices.Sort(got)
			if got := strings.Join(slices.Compact(got), " "); got != c.want {
				t.Errorf("%q\n  needs %q, want %q", c.source, got, c.want)
			}
		})
	}
}

func TestNamesAreFound(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"x := 1\nfmt.Println(x)", "r:[fmt] w:[x] c:[] f:[] i:[]"},
		{"import \"fmt\"\nx := 1\nfmt.Println(x)", "r:[] w:[x] c:[] f:[] i:[fmt@1]"},
		{"x = 1", "r:[] w:[x] c:[] f:[] i:[]"},
		{"x += y", "r:[y x] w:[x] c:[] f:[] i:[]"},
		{"x := x + 1", "r:[x] w:[x] c:[] f:[] i:[]"},
		{
			"var a, b = 1, c\nconst d = 2\ntype T struct{ n int }",
			"r:[c] w:[a b d T] c:[] f:[a b d T] i:[]",
		},
		{
			"func f(n int) int { return g(n) + total }\ntotal := 3\nFINAL(f(1))",
			"r:[g FINAL] w:[f total] c:[g FINAL] f:[f] i:[]",
		},
		{
			"import (\n\t\"fmt\"\n\ts \"strings\"\n)\n\nfunc main() {\n" +
				"\tfmt.Println(s.ToUpper(context))\n}",
			"r:[context] w:[main] c:[] f:[main] i:[fmt@2 strings@3]",
		},
		{
			"package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }",
			"r:[] w:[main] c:[] f:[main] i:[fmt@3]",
		},
		{"p := T{Name: \"x\", N: n}", "r:[T n] w:[p] c:[] f:[] i:[]"},
		{
			"for _, l := range strings.Split(context, \"\\n\") { n++; _ = l }",
			"r:[strings context n] w:[n] c:[] f:[] i:[]",
		},
		{"func(a int) { print(a + b) }(1)", "r:[b] w:[] c:[] f:[] i:[]"},
		{"func(a int) string { return b }(1)", "r:[b] w:[] c:[] f:[] i:[]"},
		{"if x, ok := m[k]; ok { use(x) }", "r:[m k use] w:[] c:[use] f:[] i:[]"},
		{"type T struct{}\nfunc (t T) M() {}\nt := T{}\nt.M()", "r:[] w:[T t] c:[] f:[T] i:[]"},
		{
			"var wg sync.WaitGroup\nwg.Add(1)\ngo func() { defer wg.Done() }()\nwg.Wait()",
			"r:[sync] w:[wg] c:[] f:[wg] i:[]",
		},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			v := analyse(t, c.source)
			if v.Needs == nil {
				t.Errorf("%q: %+v %q", c.source, v.Invalid, v.Unknown)
				return
			}
			n := v.Needs
			var imports []string
			for _, i := range n.Imports {
				imports = append(imports, fmt.Sprintf("%s@%d", i.Module, i.Line))
			}
			got := fmt.Sprintf("r:%v w:%v c:%v f:%v i:%v",
				n.Reads, n.Writes, n.Calls, n.Defines, imports)
			if got != c.want {
				t.Errorf("%q\n  got  %s\n  want %s", c.source, got, c.want)
			}
		})
	}
}

func TestInvalidNamesTheSnippetsOwnLine(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"x := = 1", "snippet.go:1:6: "},
		{"x := 1\ny := = 2", "snippet.go:2:6: "},
		{"import \"fmt\"\n\nfunc f( {\n}\nx := 1", "snippet.go:3:"},
		{"if x {\n  y()", "snippet.go:2:"},
		{"x := 1\n}\nfunc g() {", "snippet.go:3:"},
		{"package main\nfunc main( {}", "snippet.go:2:"},
		{"Here is the program you asked for.", "snippet.go:1:"},
		{"def f():\n    return 1", "snippet.go:1:"},
		{"print(f'{x}')", "snippet.go:1:"},
		{"x := 'abc'", "snippet.go:1:"},
		{"s := \"abc", "snippet.go:1:"},
		{"package", "snippet.go:1:"},
		{"}", "snippet.go:1:"},
	} {
		t.Run(c.source, func(t *testing.T) {
			v := analyse(t, c.source)
			if v.Invalid == nil || !strings.HasPrefix(v.Invalid.Message, c.want) ||
				v.Invalid.Type != "SyntaxError" {
				t.Errorf("%q: %+v, want %q", c.source, v, c.want)
				if v.Invalid != nil {
					t.Log(v.Invalid)
				}
			}
		})
	}
}

func TestUnanalysableSnippetsAreReported(t *testing.T) {
	for _, source := range []string{
		strings.Repeat("x := 1\n", maxSource/7+1),
		"x := " + strings.Repeat("(", 200_000) + strings.Repeat(")", 200_000),
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			if v := analyse(t, source); v.Unknown == "" {
				t.Errorf("%.20s…: %+v", source, v)
			}
		})
	}
}

func TestEmptyIsValid(t *testing.T) {
	for _, source := range []string{"", "\n", "// comment", "/* a\nb */", ";"} {
		t.Run(source, func(t *testing.T) {
			if v := analyse(t, source); v.Needs == nil {
				t.Errorf("%q: %+v", source, v.Invalid)
			}
		})
	}
}

func FuzzAnalyse(f *testing.F) {
	for _, source := range []string{
		"x := 1", "import \"fmt\"\nfmt.Println(1)", "func (t T) M() {}\nx := func(a int) {}(1)",
		"package main", "for i := range 3 {}", "}{", "a\x00\xff",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		v := analyse(t, source)
		lines := strings.Count(source, "\n") + 1
		switch {
		case v.Needs != nil:
			for _, need := range v.Needs.Features {
				if need.Line < 1 || need.Line > lines {
					t.Errorf("%q: %+v is in no line", source, need)
				}
			}
		case v.Invalid == nil && v.Unknown == "":
			t.Errorf("%q: no verdict", source)
		}
	})
}

func BenchmarkAnalyse(b *testing.B) {
	const loop = `for _, line := range strings.Split(context, "\n") {
	if strings.Contains(line, "x") {
		count++
	}
}
`
	source := strings.Repeat(loop, 10)
	for b.Loop() {
		analyse(b, source)
	}
}

func TestLooksLikeGoTellsGoFromMistakesInPython(t *testing.T) {
	for source, want := range map[string]bool{
		"package main": true, "import \"fmt\"\nx := 1": true, "import (\n\"fmt\"\n)": true,
		"func f() int { return 1 }": true,
		"fmt.Println(1); x := 2":    true, "if x > 1 { y() }": true, "x := []int{1}": true,
		"var x int": true, "type T int": true,
		"go f()": true, "defer f()": true,
		"return 5": false, "!ls": false, "y := 2": false, "y := f.fmt": false, "x++": false,
		"import os": false, "a, b := f(1)": false,
		"y := math.Sqrt(2)": false, "x := \"{\"": false, "": false,
	} {
		t.Run(source, func(t *testing.T) {
			if got := looksLikeGo(source); got != want {
				t.Errorf("%q: %v", source, got)
			}
		})
	}
}
