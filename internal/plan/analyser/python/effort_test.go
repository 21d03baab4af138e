package python

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestComputingIsEstimated compares estimates with the times of native CPython on one machine. An
// estimate may be too low, since it considers only constant bounds, but must be at most one and a
// half times the time.
func TestComputingIsEstimated(t *testing.T) {
	a, _ := open(t)
	const ms = time.Millisecond
	for _, c := range []struct {
		source string
		native time.Duration
		line   int
	}{
		{"for i in range(10**6): pass", 24 * ms, 1},
		{"x = 0\nfor i in range(1_000_000):\n    x += i * i", 92 * ms, 2},
		{"total = sum(i * i for i in range(10**6))", 38 * ms, 1},
		{"N = 10**6\nrows = [i for i in range(N)]", 31 * ms, 2},
		{"n = int(1e7)\nprint(sum(range(n)))", 135 * ms, 2},
		{"rows = list(range(10**7))", 290 * ms, 1},
		{
			"c = 0\nfor i in range(1000):\n    for j in range(1000):\n" +
				"        if (i * j) % 7 == 0:\n            c += 1",
			67 * ms, 2,
		},
		{"def f(a):\n    return a + 1\nfor i in range(10**6):\n    f(i)", 55 * ms, 3},
		{
			"def main():\n    d = {}\n    for i in range(2, 1_000_002):\n" +
				"        d[i] = str(i)\nif __name__ == '__main__':\n    main()",
			180 * ms, 6,
		},
		{
			"import itertools\nfor p in itertools.permutations(range(9)):\n" +
				"    if p[0] < p[1] and p[2]:\n        pass",
			26 * ms, 2,
		},
		{
			"from itertools import product\nn = sum(1 for _ in product('abcdef', repeat=8))",
			50 * ms, 2,
		},
		{"import math\nmath.factorial(100_000)", 143 * ms, 2},
		{"import hashlib\nhashlib.pbkdf2_hmac('sha256', b'x', b'y', 100_000)", 20 * ms, 2},
		{"for i, x in enumerate(range(1 << 20)): pass", 35 * ms, 1},
		{"for i in reversed(range(0, -1_000_000, -1)): pass", 24 * ms, 1},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			n := needs(t, a, c.source)
			if n.Computes < c.native/4 || n.Computes > c.native*3/2 || n.ComputesLine != c.line {
				t.Errorf("%q: computes %v in line %d, want about %v in line %d",
					c.source, n.Computes, n.ComputesLine, c.native, c.line)
			}
		})
	}
}

// TestLoopsWithoutKnownBoundsHaveNoEffort checks loops with an unknown number of iterations, and
// short loops.
func TestLoopsWithoutKnownBoundsHaveNoEffort(t *testing.T) {
	a, _ := open(t)
	for _, source := range []string{
		"x = 1", "for i in range(1000): pass", "for line in context.splitlines(): f(line)",
		"for i in range(0, len(context), 10_000_000): f(i)", "while True: pass",
		"for i in range(10**9):\n    if f(i):\n        break",
		"def f(n):\n    for i in range(n): pass\nf(10**9)",
		"def f():\n    for i in range(10**9): pass",
		"def f():\n    for i in range(10**9):\n        return i\nf()",
		"n = 10**9\nn = len(context)\nfor i in range(n): pass",
		"n = 10**9\nn -= 1\nfor i in range(n): pass",
		"def f(n=10**9):\n    for i in range(n): pass\nf()", "any(f(x) for x in range(10**9))",
		"next(x for x in range(10**9) if f(x))", "range(10**9)",
		"a = a + 10**9\nfor i in range(a): pass",
		"for i in range(5, -10**9): pass", "for i in range(0, 10**9, 0): pass",
		"for i in range(10**9, 1): pass",
		"range = f\nfor i in range(): pass", "for i in range(1, 10**9, 2, 3): pass",
		"math.factorial(-10**9)",
		"print('10**9 products of range(10**9)')",
	} {
		t.Run(source, func(t *testing.T) {
			if n := needs(t, a, source); n.Computes != 0 || n.ComputesLine != 0 {
				t.Errorf("%q: computes %v in line %d", source, n.Computes, n.ComputesLine)
			}
		})
	}
}

// TestHostileBoundsAreCheap checks bounds whose careless evaluation would exceed the analyser's own
// time limit.
func TestHostileBoundsAreCheap(t *testing.T) {
	a, _ := open(t)
	doubled := "a0 = 9\n"
	for i := range 100 {
		doubled += fmt.Sprintf("a%d = a%[2]d + a%[2]d\n", (i+1)%10, i%10)
	}
	for name, source := range map[string]string{
		"doubled":      doubled + "for i in range(a9): pass\nfor i in range(10**9): pass",
		"a tower":      "for i in range(9 ** 9 ** 9 ** 9): pass\nfor i in range(10**9): pass",
		"a long sum":   "for i in range(" + strings.Repeat("1+", 500) + "10**9): pass",
		"a deep nest":  nest(19, "for i in range(10**18):") + "pass",
		"many":         strings.Repeat("for i in range(10**9): pass\n", 1500),
		"many choices": "import itertools\nfor p in itertools.permutations(range(10**9), 60): pass",
		"huge": "for i in range(" + strings.Repeat("9",
			4000) + "): pass\nfor i in range(10**9): pass",
	} {
		t.Run(name, func(t *testing.T) {
			if n := needs(t, a, source); n.Computes < time.Second && name != "a long sum" {
				t.Errorf("%s: computes %v", name, n.Computes)
			}
		})
	}
}

// nest nests a line in itself, depth times.
func nest(depth int, line string) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + line + "\n")
	}
	return b.String() + strings.Repeat(" ", depth)
}
