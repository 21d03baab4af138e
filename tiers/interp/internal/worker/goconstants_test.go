package worker

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// overflowing are lines with a constant that the compiler rejects. Lines before the last one are
// earlier snippets.
var overflowing = []string{
	"const x = 1 << 1000000000",
	"_ = 1 << 1000000000 == 0",
	"_ = 1 << 512 >> 511",
	"const a, b = 1 << 500, 5\nconst c = a * a",
	"const d = -1 << 511\nconst e = d + d",
	"f := 1e1000000000 / 1e999999999",
	"g := 0x1p1000000000",
	"const h = 1e300 * 1e300 * 1e300\nvar i float64 = h",
	"var j = int8(127) + 1",
	"const k int8 = 127\n_ = k + 1",
	"_ = uint(1) << 64",
	"_ = complex(1e400, 0)",
	"const m float32 = 1e39",
	"_ = 99999999999999999999999999",
	"n := []int{1 << 70}",
	"var o [1 << 70]byte",
	"_ = 'a' << 600",
	"_ = ^(1 << 511) - 1<<511 - 1<<511",
	"_ = string(rune(1 << 70))",
	"_ = math.MaxInt64 + 1 + 0*len(\"\")",
	"_ = 1 << math.MaxInt64",
	"_ = time.Hour * 10000000000",
	"const r = 10\ntype s [r << 60]int",
	"func t() int { return 1 << 9999 }",
	"const ( u = 1 << (10 * iota); v; w; x2; y; z; aa; _ = aa << (aa * 60) )",
	"for i := 0; i < 1<<5000; i++ { }",
	"_ = 1.5e+99999999999999999999999",
	"_ = 0x" + strings.Repeat("f", 200),
	"_ = " + strings.Repeat("9", 20_000),
}

// TestConstantsAreRefusedAsByTheCompiler compares the positions and messages of the check's errors
// with those of Go's compiler.
func TestConstantsAreRefusedAsByTheCompiler(t *testing.T) {
	var file strings.Builder
	file.WriteString("package main\nimport \"math\"\nimport \"time\"\nvar _, _ = math.Pi, time.Hour\nfunc main() {}\n")
	begins := map[int]int{} // the line of the file at which a case begins
	line := strings.Count(file.String(), "\n") + 1
	for i, lines := range overflowing {
		begins[i] = line
		if strings.HasPrefix(lines, "func ") {
			file.WriteString(lines + "\n")
			line++
			continue
		}
		fmt.Fprintf(&file, "func _() {\n%s\n}\n", lines)
		line += strings.Count(lines, "\n") + 3
	}
	want := compileErrors(t, file.String())

	for i, lines := range overflowing {
		s := newGoSession(newLink(frames{&bytes.Buffer{}}))
		if end := s.run("import \"math\"\nimport \"time\"", 1); end.code != wire.CodeOK {
			t.Fatalf("%+v", end)
		}
		all := strings.Split(lines, "\n")
		for _, earlier := range all[:len(all)-1] {
			if end := s.run(earlier, 2); end.code != wire.CodeOK {
				t.Fatalf("%s: %+v", earlier, end)
			}
		}
		end := s.run(all[len(all)-1], 3)
		at := begins[i] + len(all)
		if strings.HasPrefix(lines, "func ") {
			at--
		}

		expected := want[at]
		if expected == "" {
			t.Errorf("%.60s: the compiler takes it", lines)
		}
		if end.exception == nil || end.exception.Message != "snippet_3.go:1:"+expected {
			t.Errorf("%.60s: %.200v, and the compiler says %.200s", lines, end.exception, expected)
		}
		if end.code != wire.CodeRejected || !end.report.IsInvalid {
			t.Errorf("%.60s: it has another ending: %+v", lines, end)
		}
		if end := s.run("1 + 1", 4); end.code != wire.CodeOK {
			t.Errorf("%.60s: the session has ended: %+v", lines, end)
		}
	}
}

var compileError = regexp.MustCompile(`(?m)^\./main\.go:(\d+):(\d+: .*)$`)

// compileErrors returns the compiler's first error of each line of a program, with its column.
func compileErrors(t *testing.T, source string) map[int]string {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no Go toolchain")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": source, "go.mod": "module programs\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), tool, "build", "-gcflags=-e", "-o", os.DevNull, ".")
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("the compiler takes all of it")
	}

	errs := map[int]string{}
	for _, match := range compileError.FindAllStringSubmatch(string(said), -1) {
		line, _ := strconv.Atoi(match[1]) // it is a number
		if errs[line] == "" && !strings.Contains(match[2], "declared and not used") {
			errs[line] = match[2]
		}
	}
	return errs
}

func TestATypeBeyondTheAddressSpaceIsRefused(t *testing.T) {
	for source, want := range map[string]string{
		"var p [1 << 62][1 << 10]byte": "1:7: type [4611686018427387904][1024]byte larger than address space",
		"type p [1 << 50]byte":         "1:8: type [1125899906842624]byte larger than address space",
		"x := []int{1}\nvar y *[1 << 48][1 << 48]int\n_, _ = x, y": "2:8: type [281474976710656][281474976710656]int " +
			"larger than address space",
	} {
		t.Run(source, func(t *testing.T) {
			s := newGoSession(newLink(frames{&bytes.Buffer{}}))
			if end := s.run(source, 3); end.exception == nil || end.exception.Message != "snippet_3.go:"+want {
				t.Errorf("%s: %+v %v", source, end, end.exception)
			}
		})
	}
}

// TestConstantsThatTheCompilerTakesRun checks computations with constants up to the compiler's
// bounds.
func TestConstantsThatTheCompilerTakesRun(t *testing.T) {
	for source, want := range map[string]string{
		"fmt.Println(1 << 500 >> 499, 1<<62, -1<<63)": "" +
			"2 4611686018427387904 -9223372036854775808\n",
		"const a = 1 << 400\nfmt.Println(a / (a - 1), a>>399)": "1 2\n",
		"const a = 1e-1000000000\nfmt.Println(a)":              "0\n",
		"fmt.Println(uint64(math.MaxUint64), math.MaxInt64)": "" +
			"18446744073709551615 9223372036854775807\n",
		"const d = 2 * time.Hour\nfmt.Println(d, time.Duration(1<<40))":                "2h0m0s 18m19.511627776s\n",
		"var n = 70\nfmt.Println(1<<n, uint8(1)<<7)":                                   "0 128\n",
		"const n = 3\nvar a [n << 2]int\nfmt.Println(len(a))":                          "12\n",
		"x := int8(100)\nx += 100\nfmt.Println(x)":                                     "-56\n",
		"const s = \"ab\" + \"cd\"\nconst u = s + s\nfmt.Println(u, len(u))":           "abcdabcd 8\n",
		"type T struct{ A [1 << 3]byte }\nvar t T\nfmt.Println(len(t.A))":              "8\n",
		"const x = 10\nfunc f() int { x := 1; return x << 3 }\nfmt.Println(f(), x<<1)": "8 20\n",
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			var out bytes.Buffer
			s := newGoSession(newLink(frames{&out}))
			end := s.run("import \"fmt\"\nimport \"math\"\nimport \"time\"\n"+source, 1)
			s.link.out.flush()
			if end.code != wire.CodeOK || out.String() != want {
				t.Errorf("%s: %q %+v %+v", source, out.String(), end, end.exception)
			}
		})
	}
}

// TestALaterSnippetKnowsConstants checks a snippet that redefines a name of an earlier snippet.
func TestALaterSnippetKnowsConstants(t *testing.T) {
	s := newGoSession(newLink(frames{&bytes.Buffer{}}))
	for i, c := range []struct {
		source string
		code   int
	}{
		{"const big = 1 << 510", wire.CodeOK},
		{"_ = big << 2", wire.CodeRejected},
		{"func f() int { big := 1; return big << 2 }\nf()", wire.CodeOK},
		{"var small int8 = 100", wire.CodeOK},
		{"small + 100<<1>>1", wire.CodeOK},
	} {
		if end := s.run(c.source, i+1); end.code != c.code {
			t.Errorf("%s: %+v %+v", c.source, end, end.exception)
		}
	}
}

// TestALongConstantStringIsRejected checks constant strings that a few lines define and that would
// take arbitrary amounts of memory.
func TestALongConstantStringIsRejected(t *testing.T) {
	doubled := func(first int, times int) string {
		var b strings.Builder
		for i := first; i < first+times; i++ {
			fmt.Fprintf(&b, "const s%d = s%d + s%d\n", i+1, i, i)
		}
		return b.String()
	}
	const ten = "const s0 = \"0123456789\"\n"
	for name, c := range map[string]struct {
		snippets []string
		code     int
	}{
		"of a snippet":    {[]string{ten + doubled(0, 60)}, wire.CodeRejected},
		"of two snippets": {[]string{ten + doubled(0, 18), doubled(18, 10)}, wire.CodeRejected},
		"in a function": {
			[]string{"func f() int {\n" + ten + doubled(0, 40) + "return len(s40)\n}"},
			wire.CodeRejected,
		},
		"that is its own": {[]string{"const s0 = s1 + s1\nconst s1 = s0 + s0"}, wire.CodeRejected},
		"with repeated values": {
			[]string{ten + doubled(0, 23) + "const (\n\ta = s23 + s23\n\tb\n)"},
			wire.CodeRejected,
		},
		"that is short":      {[]string{ten + doubled(0, 10)}, wire.CodeOK},
		"in another snippet": {[]string{ten + doubled(0, 10), doubled(10, 3)}, wire.CodeOK},
	} {
		t.Run(name, func(t *testing.T) {
			s := newGoSession(newLink(frames{&bytes.Buffer{}}))
			var end ending
			for i, source := range c.snippets {
				end = s.run(source, i+1)
			}
			if end.code != c.code {
				t.Errorf("%+v %+v", end, end.exception)
			}
		})
	}
}
