package bigtext

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// backtracker matches by backtracking, like Perl and CPython; it visits each instruction at each
// position once, like the backtracker of package regexp.
type backtracker struct {
	prog    *syntax.Prog
	b       []byte
	classes *classes
	noEmpty int
	start   int
	seen    map[[2]int]bool
}

// match returns the end of the match at p.
func (m *backtracker) match(pc, p int) (end int, ok bool) {
	if m.seen[[2]int{pc, p}] {
		return 0, false
	}
	m.seen[[2]int{pc, p}] = true
	in := &m.prog.Inst[pc]
	k, w := m.classes.at(m.b, int64(p), int64(len(m.b)))
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		if end, ok := m.match(int(in.Out), p); ok {
			return end, ok
		}
		return m.match(int(in.Arg), p)
	case syntax.InstCapture, syntax.InstNop:
		return m.match(int(in.Out), p)
	case syntax.InstEmptyWidth:
		r1, r2 := rune(-1), rune(-1)
		if p > 0 {
			r1 = rune(m.b[p-1])
		}
		if p < len(m.b) {
			r2 = rune(m.b[p])
		}
		if syntax.EmptyOp(in.Arg)&^syntax.EmptyOpContext(r1, r2) != 0 {
			return 0, false
		}
		return m.match(int(in.Out), p)
	case syntax.InstMatch:
		return p, p != m.start || m.start != m.noEmpty
	case syntax.InstFail:
		return 0, false
	default:
	}
	if w == 0 || !in.MatchRune(m.classes.rep[k]) {
		return 0, false
	}
	return m.match(int(in.Out), p+int(w))
}

// backtrack returns the matches of re in b according to CPython's rule.
func backtrack(re *Regexp, b []byte) (all [][2]int) {
	noEmpty := -1
	for p := 0; p <= len(b); {
		found := false
		for q := p; q <= len(b) && !found; q++ {
			if !boundary(b, int64(q)) {
				continue
			}
			m := &backtracker{
				prog:    re.prog,
				b:       b,
				classes: re.classes,
				noEmpty: noEmpty,
				start:   q,
				seen:    map[[2]int]bool{},
			}
			if end, ok := m.match(re.prog.Start, q); ok {
				all = append(all, [2]int{q, end})
				if p, noEmpty = end, -1; q == end {
					noEmpty = end
				}
				found = true
			}
		}
		if !found {
			break
		}
	}
	return all
}

var atoms = []string{
	"a", "b", "ab", "é", "中", ".", "[^a]", "[a-c]", `\w`, `\d`, `\s`, `\S`, `\W`, `\b`, `\B`, "^",
	"$", "(?m:^)", "(?m:$)", `\A`, `\z`, "(?s:.)", "x", " ", "\n", `\r`, "(?i:k)", `\x{fffd}`,
	"foo", `\p{L}`, "[[:upper:]]", "", "-",
}

func randomExpr(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	a, b := randomExpr(r, depth-1), randomExpr(r, depth-1)
	switch r.IntN(9) {
	case 0:
		return "(" + a + "|" + b + ")"
	case 1:
		return "(?:" + a + ")*"
	case 2:
		return "(?:" + a + ")+?" + b
	case 3:
		return "(" + a + ")?" + b
	case 4:
		return "(?:" + a + "){1,3}"
	case 5:
		return "(?:" + a + ")*?" + b
	case 6:
		return "(?:" + a + "|" + b + ")+"
	default:
		return a + b
	}
}

// checkRegexp compares expr on the characters [x,y) of b with a backtracking match, and with
// package regexp if no match is empty.
func checkRegexp(t *testing.T, r *rand.Rand, expr string, b []byte) {
	t.Helper()
	re, err := CompileRegexp(t.Context(), expr)
	if err != nil {
		return
	}
	text, m := shrink(FromBytes("text", b)), newModel(b)
	x, y := 0, len(m)
	if r.IntN(2) == 0 && len(m) > 0 {
		x = r.IntN(len(m))
		y = x + r.IntN(len(m)-x+1)
	}
	part := strings.Join(m[x:y], "")
	want := backtrack(re, []byte(part))
	toChar := func(p int) int64 { return int64(x + len(newModel([]byte(part[:p])))) }
	spans := findAll(t, text, re, int64(x), int64(y), 1+r.IntN(4))
	if len(spans) != len(want) {
		t.Fatalf("%q on %q: %v; want %v", expr, part, spans, want)
	}
	for i, w := range want {
		if spans[i][0] != toChar(w[0]) || spans[i][1] != toChar(w[1]) {
			t.Fatalf("%q on %q from %d: %v; want %v", expr, part, x, spans, want)
		}
	}
	if !slices.ContainsFunc(want, func(w [2]int) bool { return w[0] == w[1] }) {
		checkStdlib(t, expr, part, spans, toChar)
	}
}

func checkStdlib(t *testing.T, expr, part string, spans [][]int64, toChar func(int) int64) {
	t.Helper()
	for i, loc := range regexp.MustCompile(expr).FindAllStringSubmatchIndex(part, -1) {
		if loc[0] == loc[1] {
			return // package regexp uses another rule for these
		}
		var want []int64
		for _, p := range loc {
			if p >= 0 {
				want = append(want, toChar(p))
			} else {
				want = append(want, -1)
			}
		}
		if i >= len(spans) || !slices.Equal(spans[i], want) {
			t.Fatalf("%q on %q: match %d of %v; package regexp has %v", expr, part, i, spans, want)
		}
	}
}

func findAll(t *testing.T, text *Text, re *Regexp, a, b int64, limit int) (all [][]int64) {
	t.Helper()
	for from := a; from >= 0; {
		spans, next, err := text.FindRegexp(bg, re, a, b, from, limit)
		if err != nil || len(spans) > limit+1 {
			t.Fatalf("%d spans for limit %d, %v", len(spans), limit, err)
		}
		all = append(all, spans...)
		from = next
	}
	return all
}

func TestRegexpRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 700 {
		checkRegexp(t, r, randomExpr(r, 1+i%4), randomText(r, 5+i%40))
	}
}

func TestRegexpChosen(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	exprs := []string{
		"|a", "a*?", "a*", `\b`, `\B`, "$", "^", "(?m)^", "(?m)$", "(?m)^$", `[A-Z][a-z]+ing\b`,
		`\d{4}-\d{2}-\d{2}`, `error: \w+`, `(\w+)-(\w+)`, "(a)|(b)|(c)", `\bfoo\b`, "foo", "é+",
		"[^a]", ".", "(?s).", "(?s).*", "(?s)a.*?b", `\s+`, `(?i)KING`, `\Aa`, `a\z`, `(|a)+`,
		`(a*)+`, `(?:a|ab)(?:c|bcd)(d*)`, `x*-`, `(?:\b|a)*`, `[\x{fffd}]`, `\x{fffd}+`, `\pL+`,
		`a$|b`, `(?m)a$`,
	}
	for _, expr := range exprs {
		t.Run(expr, func(t *testing.T) {
			for range 15 {
				checkRegexp(t, r, expr, randomText(r, 60))
			}
		})
	}
}

func TestRegexpFlush(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	expr := `(a|b)*a(a|b){6}x|ab`
	b := []byte{}
	for range 3000 {
		b = append(b, "aab bx"[r.IntN(6)])
	}
	re, err := CompileRegexp(t.Context(), expr)
	if err != nil {
		t.Fatal(err)
	}
	d := newDFA(re)
	d.max = 16
	re.free = append(re.free, &matcher{re: re, dfa: d, pike: newPike(re)})
	n, err := countRegexp(FromBytes("", b), re, int64(len(b)))
	if want := len(backtrack(re, b)); err != nil || n != int64(want) {
		t.Fatalf("%d, %v; want %d", n, err, want)
	}
}

func TestRegexpBounds(t *testing.T) {
	for _, expr := range []string{
		strings.Repeat("a", maxExpr+1), "(", "(?:a{1000}){1000}", strings.Repeat("(a)", 10000),
		`a{1000}{20}b{1000}`,
	} {
		t.Run(fmt.Sprintf("%.60s", expr), func(t *testing.T) {
			if _, err := CompileRegexp(t.Context(), expr); err == nil {
				t.Errorf("%.20q is no error", expr)
			} else if !strings.HasPrefix(err.Error(), "cannot compile") {
				t.Errorf("%.20q: %v", expr, err)
			}
		})
	}
}

func TestRegexpCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	text := FromBytes("", []byte(strings.Repeat("ab", 1<<20)))
	if _, err := text.Len(bg); err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{"ab", "(?s)a.*b", "x*", `c\b`} {
		t.Run(expr, func(t *testing.T) {
			re, err := CompileRegexp(t.Context(), expr)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = text.FindRegexp(ctx, re, 0, 1<<21, 0, 1<<30)
			if !errorsIs(err, context.Canceled) {
				t.Errorf("%q: %v", expr, err)
			}
		})
	}
}

func FuzzRegexp(f *testing.F) {
	for i, a := range atoms {
		f.Add(a+"|(a)b?", []byte(fmt.Sprint(a, a, i)), uint64(i))
	}
	f.Fuzz(func(t *testing.T, expr string, b []byte, seed uint64) {
		if len(expr) < 40 && len(b) < 200 {
			checkRegexp(t, rand.New(rand.NewPCG(seed, 1)), expr, b)
		}
	})
}

// TestHostileExpressionsAreCompiledInTime checks expressions that used to take between seconds and
// hours.
func TestHostileExpressionsAreCompiledInTime(t *testing.T) {
	list := func(n int, one func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = one(i)
		}
		return strings.Join(parts, "|")
	}
	for name, expr := range map[string]string{
		"many sets at the start": list(1500, func(i int) string { return fmt.Sprintf(`[^\x{%x}]%d`, 0x1000+i, i) }),
		"many classes":           list(3000, func(i int) string { return fmt.Sprintf(`\x{%x}%d`, 0x1000+2*i, i) }),
		"an assertion far away":  strings.Repeat("(", 900) + `\b` + strings.Repeat(")", 900) + "a",
		"assertions far away":    strings.Repeat("(?:(?:", 150) + `\b` + strings.Repeat("b)?a*)*", 150),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := CompileRegexp(t.Context(), expr); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for name, expr := range map[string]string{
		"a long program": strings.Repeat("a{1000}", 3000), "a long program of groups": strings.Repeat("(){1000}", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := CompileRegexp(t.Context(), expr); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := CompileRegexp(ctx, "[a-z]"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// FuzzCountInst compares the count with compiled programs.
func FuzzCountInst(f *testing.F) {
	f.Add(`(a|b{2,5}){3}(?:^x?){4}[^\n]*`)
	f.Add(`(?i)((x{0}){7}|k+?|()){2,}\pL`)
	f.Fuzz(func(t *testing.T, expr string) {
		tree, err := syntax.Parse(expr, syntax.Perl)
		if err != nil || len(expr) > 100 {
			return
		}
		least := countInst(tree)
		if least > maxInst {
			return
		}
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(prog.Inst); n < least {
			t.Errorf("%q has %d instructions, not %d", expr, n, least)
		}
	})
}
