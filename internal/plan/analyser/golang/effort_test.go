package golang

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestComputingIsEstimated compares estimates with the times of compiled programs on one machine.
// An estimate may be far too low, since memory and the library take more time, but must be at most
// three times too high.
func TestComputingIsEstimated(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		source    string
		low, high time.Duration
		line      int
	}{
		{"x := 0\nfor i := 0; i < 100_000_000; i++ {\n\tx += i * i\n}", 25 * ms, 150 * ms, 2},
		{"for i := range 100_000_000 {\n\tx += i\n}", 25 * ms, 150 * ms, 1},
		{
			"const n = 10_000\nc := 0\nfor i := 0; i < n; i++ {\n\tfor j := 0; j < n; j++ {\n" +
				"\t\tif (i*j)%7 == 0 {\n\t\t\tc++\n\t\t}\n\t}\n}",
			90 * ms, 800 * ms, 3,
		},
		{
			"package main\n\nfunc f(a int) int { return a%7 + 1 }\n\nfunc main() {\n\tc := 0\n" +
				"\tfor i := 0; i < 1e7; i++ {\n\t\tc += f(i)\n\t}\n}",
			9 * ms, 80 * ms, 7,
		},
		{"n := int(1e8)\nfor i := n; i > 0; i -= 2 {\n\tx++\n}", 10 * ms, 80 * ms, 2},
		{"func() {\n\tfor i := 0; i <= 1<<27; i++ {\n\t}\n}()", 5 * ms, 100 * ms, 1},
		{
			"for i := 0; i < 100_000_000; i++ {\n\tswitch i % 3 {\n\tcase 0:\n\t\tbreak\n" +
				"\tdefault:\n\t\tx++\n\t}\n}",
			25 * ms, 300 * ms, 1,
		},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			n := analyse(t, c.source).Needs
			if n.Computes < c.low || n.Computes > c.high || n.ComputesLine != c.line {
				t.Errorf("%q: computes %v in line %d, want %v to %v in line %d",
					c.source, n.Computes, n.ComputesLine, c.low, c.high, c.line)
			}
		})
	}
}

// TestLoopsWithoutKnownBoundsHaveNoEffort checks loops with an unknown number of iterations, and
// short loops.
func TestLoopsWithoutKnownBoundsHaveNoEffort(t *testing.T) {
	for _, source := range []string{
		"x := 1", "for i := 0; i < 1000; i++ {\n}", "for {\n}", "for i := 0; i < len(xs); i++ {\n}",
		"for i := range n {\n\tx++\n}",
		"for _, x := range xs {\n\tuse(x)\n}",
		"for i := 0; i < 1e9; i++ {\n\tif f(i) {\n\t\tbreak\n\t}\n}",
		"func f() int {\n\tfor i := 0; i < 1e9; i++ {\n\t\treturn i\n\t}\n\treturn 0\n}\nf()",
		"func f() {\n\tfor i := range 1_000_000_000 {\n\t}\n}",
		"n := 1_000_000_000\nn = f()\nfor i := 0; i < n; i++ {\n}",
		"n := 1_000_000_000\nread(&n)\nfor i := range n {\n}",
		"for i := 0; i < 1e9; {\n}", "for i := 0; i < 1e9; j++ {\n}",
		"for i := 0; i < 1e9; i += f() {\n}", "for i := 0; j < 1e9; i++ {\n}",
		"for i := 9; i < -1_000_000_000; i++ {\n}",
		"f := func() {\n\tfor range 1_000_000_000 {\n\t}\n}",
		"outer:\nfor i := 0; i < 1e9; i++ {\n\tfor {\n\t\tbreak outer\n\t}\n}",
		"for i := 0; i < 1e9/0; i++ {\n}",
		"for i := range \"1000000000\" {\n}", "func f() { f() }\nf()",
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			if n := analyse(t, source).Needs; n.Computes != 0 || n.ComputesLine != 0 {
				t.Errorf("%q: computes %v in line %d", source, n.Computes, n.ComputesLine)
			}
		})
	}
}

// TestHostileBoundsAreCheap checks sources whose careless estimate would take hours, or all memory.
func TestHostileBoundsAreCheap(t *testing.T) {
	doubled := "const a0 = 9\n"
	for i := range 50 {
		doubled += fmt.Sprintf("const a%c = %[2]s + %[2]s\n", 'A'+i, before(i))
	}
	for name, source := range map[string]string{
		"doubled":    doubled + "for i := 0; i < ar; i++ {\n}",
		"a deep sum": "for i := 0; i < " + strings.Repeat("1+", 10_000) + "1; i++ {\n}",
		"a nest": strings.Repeat("for range 1000000000 {", 50_000) + strings.Repeat("}",
			50_000),
		"a literal":   "for i := 0; i < 1e" + strings.Repeat("9", 300_000) + "; i++ {\n}",
		"an exponent": "for i := 0; i < 1e999999999; i++ {\n}",
		"calls":       "func f() {\n" + strings.Repeat("f()\n", 100_000) + "}\nf()",
	} {
		t.Run(name, func(t *testing.T) { analyse(t, source) })
	}
}

func before(i int) string {
	if i == 0 {
		return "a0"
	}
	return "a" + string(rune('A'+i-1))
}
