package worker

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

var programs = flag.Int("programs", 4000, "how many sessions the differential test generates")

// judge runs sessions on CPython and echoes the last expression of each snippet.
const judge = `
import sys, json, ast, io, contextlib, signal
def late(*_): raise TimeoutError
class Done(BaseException): pass
def finish(v):
    final.append(json.dumps(v))
    raise Done
signal.signal(signal.SIGALRM, late)
sys.set_int_max_str_digits(4300)
out = []
for session in json.load(sys.stdin):
    ns, res = {"__name__": "__main__"}, []
    for src in session:
        buf, exc, final = io.StringIO(), None, []
        ns["FINAL"] = finish
        with contextlib.redirect_stdout(buf):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                tree = ast.parse(src)
                tail = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, "s", "exec"), ns)
                if tail is not None:
                    v = eval(compile(ast.Expression(tail.value), "s", "eval"), ns)
                    if v is not None: print(repr(v))
            except Done: pass
            except BaseException as e:
                exc = type(e).__name__
            signal.setitimer(signal.ITIMER_REAL, 0)
        res.append([buf.getvalue(), exc or "", final[0] if final else ""])
        if exc: break
    out.append(res)
json.dump(out, sys.stdout)
`

// cpython runs sessions natively. Without CPython it skips the test, unless RLM_REQUIRE_PYTHON
// is set.
func cpython(t *testing.T, sessions [][]string) [][][3]string {
	t.Helper()
	python := os.Getenv("RLM_PYTHON")
	if python == "" {
		if os.Getenv("RLM_REQUIRE_PYTHON") != "" {
			t.Fatal("RLM_PYTHON names no CPython")
		}
		t.Skip("RLM_PYTHON names no CPython")
	}
	input, err := json.Marshal(sessions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "-c", judge)
	cmd.Stdin = bytes.NewReader(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var results [][][3]string
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// differences runs sessions here and natively, and reports each session that ends well here but has
// a different result natively.
func differences(t *testing.T, sessions [][]string) (accepted, refused, atRunTime int) {
	t.Helper()
	native := cpython(t, sessions)
	shown := 0
	for i, session := range sessions {
		p := newPySession(newLink(io.Discard))
		for k, source := range session {
			if k >= len(native[i]) {
				break
			}
			if native[i][k][1] == "TimeoutError" {
				break // endless, or nearly
			}
			end := p.run(source)
			if end.code != wire.CodeOK {
				if strings.HasPrefix(end.report.Reason, "at run time") {
					atRunTime++
				} else {
					refused++
				}
				if os.Getenv("RLM_SHOW_REFUSED") != "" {
					t.Logf("refused: %s\n%s", end.report.Reason, source)
				}
				break
			}
			accepted++
			want := native[i][k]
			printed := string(p.in.out)
			if p.in.echo != "" {
				printed += p.in.echo + "\n"
			}
			if got := [3]string{
				printed, "", string(p.in.final),
			}; got[0] != want[0] || want[1] != "" || !sameText(got[2], want[2]) {
				if shown++; shown <= 15 {
					t.Errorf(
						"session %d, snippet %d:\n%s\ngpython %.300q\nCPython %.300q", i, k, source,
						got, want,
					)
				}
			}
		}
	}
	return accepted, refused, atRunTime
}

func sameText(a, b string) bool {
	return strings.ReplaceAll(a, " ", "") == strings.ReplaceAll(b, " ", "")
}

// TestPythonIsCPython generates sessions from accepted forms and other forms that the generator
// supports, and compares their results with CPython's.
func TestPythonIsCPython(t *testing.T) {
	skip.UnderRace(t)
	const batch = 1000
	var accepted, refused, atRunTime int
	for from := 0; from < *programs; from += batch {
		var sessions [][]string
		for seed := from; seed < min(from+batch, *programs); seed++ {
			sessions = append(sessions, generate(uint64(seed)))
		}
		a, r, d := differences(t, sessions)
		accepted, refused, atRunTime = accepted+a, refused+r, atRunTime+d
		if t.Failed() {
			break
		}
	}
	t.Logf(
		"%d snippets ran and agree, %d refused, %d refused at run time", accepted, refused,
		atRunTime,
	)
	if accepted < (refused+atRunTime)/2 {
		t.Error("too few generated programs are admitted to prove anything")
	}
}

// generator writes programs with known types, so that most are accepted.
type generator struct {
	*rand.Rand
	b     strings.Builder
	vars  map[string]string // name -> type: i, s, b, li, ls, lb, lli
	fixed map[string]bool   // loop counters
	loops int
	n     int
}

func generate(seed uint64) []string {
	g := &generator{
		Rand: rand.New(rand.NewPCG(seed, 7)), vars: map[string]string{}, fixed: map[string]bool{},
	}
	var session []string
	for range 1 + g.IntN(3) {
		g.b.Reset()
		g.block(0, 2+g.IntN(6))
		switch g.IntN(4) {
		case 0:
			fmt.Fprintf(&g.b, "%s\n", g.expr(g.kind(), 2))
		case 1:
			fmt.Fprintf(&g.b, "FINAL(%s)\n", g.expr(g.kind(), 1))
			g.block(0, g.IntN(2)) // it is not reached
		}
		session = append(session, g.b.String())
	}
	return session
}

func (g *generator) pick(options ...string) string { return options[g.IntN(len(options))] }

func (g *generator) kind() string {
	return g.pick("i", "i", "i", "s", "s", "b", "li", "li", "ls", "lb", "lli")
}

func (g *generator) name(kind string) string {
	var names []string
	for n, k := range g.vars {
		if k == kind {
			names = append(names, n)
		}
	}
	if len(names) == 0 || g.IntN(4) == 0 {
		return ""
	}
	// Maps have no order, but the same seed must give the same program.
	least := names[0]
	for _, n := range names {
		if n < least {
			least = n
		}
	}
	if g.IntN(2) == 0 {
		return least
	}
	most := least
	for _, n := range names {
		if n > most {
			most = n
		}
	}
	return most
}

func (g *generator) fresh(kind string) string {
	g.n++
	name := fmt.Sprintf("%s%d", kind, g.n)
	g.vars[name] = kind
	return name
}

func (g *generator) block(indent, statements int) {
	for range statements {
		g.statement(indent)
	}
}

func (g *generator) line(indent int, format string, operands ...any) {
	fmt.Fprintf(&g.b, strings.Repeat("    ", indent)+format+"\n", operands...)
}

func (g *generator) statement(indent int) {
	switch c := g.IntN(16); {
	case c < 4:
		kind := g.kind()
		value := g.expr(kind, 3)
		name := g.name(kind)
		if name == "" || g.fixed[name] {
			name = g.fresh(kind)
		}
		g.line(indent, "%s = %s", name, value)
	case c < 7:
		g.line(
			indent, "print(%s, %s%s)", g.expr(g.kind(), 3), g.expr(g.kind(), 2),
			g.pick("", ", sep='-'", ", end='|'"),
		)
	case c == 7 && indent < 3:
		g.line(indent, "if %s:", g.expr(g.kind(), 2))
		g.block(indent+1, 1+g.IntN(2))
		if g.IntN(2) == 0 {
			g.line(indent, "elif %s:", g.expr("b", 2))
			g.block(indent+1, 1)
		}
		if g.IntN(2) == 0 {
			g.line(indent, "else:")
			g.block(indent+1, 1)
		}
	case c == 8 && g.loops < 2:
		g.loops++
		g.n++
		v := fmt.Sprintf("n%d", g.n)
		g.vars[v], g.fixed[v] = "i", true
		g.line(indent, "%s = %d", v, g.IntN(5))
		g.line(indent, "while %s > 0:", v)
		g.line(indent+1, "%s -= 1", v)
		g.block(indent+1, 1+g.IntN(2))
		if g.IntN(3) == 0 {
			g.line(indent+1, "if %s: %s", g.expr("b", 1), g.pick("break", "continue", "pass"))
		}
		if g.IntN(3) == 0 {
			g.line(indent, "else:")
			g.block(indent+1, 1)
		}
		g.loops--
	case c < 11 && g.loops < 2:
		g.forLoop(indent)
	case c < 13:
		kind := g.pick("i", "i", "s", "li", "ls")
		if name := g.name(kind); name != "" && !g.fixed[name] {
			op := "+="
			if kind == "i" {
				op = g.pick("+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=")
			}
			g.line(indent, "%s %s %s", name, op, g.expr(kind, 1))
		}
	case c == 13:
		kind := g.pick("li", "ls", "lli")
		if name := g.name(kind); name != "" {
			switch g.IntN(4) {
			case 0:
				g.line(indent, "%s.append(%s)", name, g.expr(kind[1:], 2))
			case 1:
				g.line(indent, "%s.extend(%s)", name, g.expr(kind, 1))
			case 2:
				if kind != "lli" {
					g.line(indent, "%s.sort()", name)
				}
			case 3:
				g.line(
					indent, "if len(%s) > 1: %s[%s] %s %s", name, name, g.pick("0", "-1", "1"),
					map[bool]string{true: "+=", false: "="}[kind == "li" && g.IntN(2) == 0],
					g.expr(kind[1:], 1),
				)
			}
		}
	case c == 14:
		a, b := g.name("i"), g.name("i")
		if a != "" && b != "" && !g.fixed[a] && !g.fixed[b] {
			g.line(indent, "%s, %s = %s, %s", a, b, g.expr("i", 1), g.expr("i", 1))
		}
	}
	if indent > 0 {
		g.line(indent, "pass")
	}
}

func (g *generator) forLoop(indent int) {
	g.loops++
	kind := g.pick("i", "i", "s", "li", "ls", "lli")
	var v string
	switch kind {
	case "i":
		v = g.fresh("i")
		g.line(
			indent, "for %s in range(%s):", v,
			g.pick("3", "4", "1, 4", "5, 0, -2", "0, 7, 3", "len("+g.expr("s", 1)+")"),
		)
	case "s":
		v = g.fresh("s")
		g.line(indent, "for %s in %s:", v, g.expr("s", 1))
	default:
		v = g.fresh(kind[1:])
		if g.IntN(3) == 0 {
			g.n++
			i := fmt.Sprintf("e%d", g.n)
			g.vars[i] = "i"
			g.line(indent, "for %s, %s in enumerate(%s):", i, v, g.expr(kind, 1))
		} else {
			g.line(indent, "for %s in %s:", v, g.expr(kind, 1))
		}
	}
	g.block(indent+1, 1+g.IntN(2))
	if g.IntN(3) == 0 {
		g.line(indent+1, "if %s: %s", g.expr("b", 1), g.pick("break", "continue", "pass"))
	}
	if g.IntN(3) == 0 {
		g.line(indent, "else:")
		g.block(indent+1, 1)
	}
	g.loops--
}
