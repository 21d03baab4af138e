package tiersuite

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// lazy is a size in bytes above which a context is a handle.
const lazy = 8<<20 + 64<<10

// testHugeContext tests the string-like handle for a text that is not in the guest.
func (s *suite) testHugeContext(t *testing.T) {
	if !s.opt.KnownProcess {
		t.Run("Tables", s.testTables)
		t.Run("RealStr", s.testRealStr)
		t.Run("PartEnds", s.testPartEnds)
		t.Run("LongParts", s.testLongParts)
		t.Run("LongLists", s.testLongLists)
		t.Run("Library", s.testLibrary)
	}
	if !s.opt.KnownGuest {
		t.Run("Differential", s.testDifferential)
		t.Run("Lazy", s.testLazy)
		t.Run("BeyondTwoGiB", s.testBeyond)
		t.Run("WideBeyondTwoGiB", s.testWideBeyond)
	}
	t.Run("Handle", s.testHandle)
	t.Run("ToHost", s.testRefs)
	t.Run("Truncated", s.testTruncated)
	t.Run("Changed", s.testChanged)
}

// compareScript is code that evaluates expressions on the context and on an equal str, and prints
// those with different outcomes. It compares exceptions by class.
const compareScript = `import itertools, hashlib, sys
plain = "".join(context[i:i + (1 << 20)] for i in range(0, context.size, 1 << 20))
assert type(plain) is str
assert hashlib.sha256(plain.encode("utf-8", "surrogateescape")).hexdigest() == %q, "the slices do not make up the text"
` + comparison

// compareLazyScript is like compareScript, for a lazy text with low thresholds, so that a short
// text quickly takes every code path.
const compareLazyScript = `import asyncio, hashlib, sys
inside = asyncio.run.__globals__["contexts"]
inside._install()
inside.LAZY, inside._BLOCK, inside._STREAM = 1 << 16, 1 << 13, 1 << 12
plain, context = str(context), inside.LazyText(inside.wire.decode(inside.wire.text("ti0")), 0, len(context))
assert type(plain) is str and not isinstance(context[:1 << 17], str)
assert hashlib.sha256(plain.encode("utf-8", "surrogateescape")).hexdigest() == %q
` + comparison

const comparison = `
from collections import Counter

def norm(v):
    if hasattr(v, "groupdict"):
        return ("match", v.span(), v.group(), v.groups(), v.groupdict(), v.start(), v.end(), v.lastindex)
    if type(v) in (int, bool, str, float, type(None)):
        return v
    if isinstance(v, tuple):
        return tuple(norm(x) for x in v)
    if isinstance(v, dict):
        return {k: norm(x) for k, x in v.items()}
    if hasattr(v, "size") and hasattr(v, "lines"):
        return str(v)
    v = list(v)
    return v if set(map(type, v)) <= {str} else [norm(x) for x in v]

def outcome(expr, t):
    try:
        names = {"t": t, "N": len(plain), "re": re, "islice": itertools.islice, "json": json, "Counter": Counter}
        return norm(eval(expr, names))
    except Exception as e:
        return "raises " + type(e).__name__

bad = 0
for expr in json.loads(%q):
    print(expr, file=sys.stderr)  # the last one is the culprit when time runs out
    got, want = outcome(expr, context), outcome(expr, plain)
    if got != want:
        bad += 1
        print(f"{expr}\n    got  {ascii(got)[:300]}\n    want {ascii(want)[:300]}")
print("different:", bad)`

// testDifferential compares a long context with a str. It tries one in three of the expressions
// that take seconds on such a text; testLazy tries them all.
func (s *suite) testDifferential(t *testing.T) { s.compare(t, compareScript, lazy, 3) }

// testLazy compares a lazy text with a str. A long context is a lazy text where it cannot be a str.
func (s *suite) testLazy(t *testing.T) { s.compare(t, compareLazyScript, lazy>>5, 1) }

// compare runs a script over texts of each kind, with each group of expressions. Of those that take
// the guest long, it tries one in few.
func (s *suite) compare(t *testing.T, script string, size, few int) {
	skip.Short(t, "it compares thousands of expressions")
	skip.UnderRace(t)
	for kind, name := range slices.Sorted(maps.Keys(lines)) {
		t.Run(name, func(t *testing.T) {
			s.runParallel(t)
			data := makeText(lines[name], size)
			sum := sha256.Sum256(data)
			for _, g := range expressions(kind, few*len(lines)) {
				t.Run(g.name, func(t *testing.T) {
					in, _ := makeFileInput(t, data)
					box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}, Limits: tiers.Limits{
						Memory: 1 << 30, Output: 1 << 20, Wall: s.opt.Patience,
					}})
					list, err := json.Marshal(g.exprs)
					if err != nil {
						t.Fatal(err)
					}

					r := box.run(t, fmt.Sprintf(script, hex.EncodeToString(sum[:]), string(list)))
					if r.Status != tiers.StatusOK || !strings.HasSuffix(r.Stdout, "different: 0\n") {
						t.Errorf("the text is not like the str\n%s\n%s", r.Stdout, describe(r))
					}
				})
			}
		})
	}
}

// testHandle tests features that a str does not have, or that differ from those of a str.
func (s *suite) testHandle(t *testing.T) {
	data := makeText(lines["languages"], lazy)
	in, _ := makeFileInput(t, data)
	cfg := func() tiers.Config {
		return tiers.Config{
			Inputs: []tiers.Input{in, makeTextInput(t, "small", "a small one")},
			Limits: tiers.Limits{Memory: 1 << 30},
		}
	}

	length := len([]rune(string(data)))
	s.playScenarios(t, cfg, []scenario{
		single("it has a size", step{
			source: "print(context.size, len(context) == context.size, bool(context))",
			out:    fmt.Sprintf("%d True True\n", length),
		}),
		single("context_0 and context_1", step{
			source: "print(context_0.size == context.size, context_1)",
			out:    "True a small one\n",
		}),
		single("its repr is short, or that of a str", step{
			source: "print(isinstance(context, str) or len(repr(context)) < 1000)",
			out:    "True\n",
		}),
		single("iteration gives characters", step{source: `it = iter(context)
print(repr(next(it)), repr(next(it)), sum(1 for _ in it) == context.size - 2)`, out: "'S' 't' True\n"}),
		single("lines(a, b)", step{source: "print([l[:6] for l in context.lines(0, 2)], " +
			"len(list(context.lines(10, 20))))", out: "['Straße', 'row 0,'] 10\n"}),
		single("lines(a, b) agrees with lines()", step{source: `import itertools
print(list(context.lines(5, 25)) == list(itertools.islice(context.lines(), 5, 25)))`, out: "True\n"}),
		single("chunks make up the text", step{source: `cs = [str(c) for c in context.chunks(1_000_000)]
print(sum(map(len, cs)) == context.size, all(len(c) == 1_000_000 for c in cs[:-1]),
      ''.join(cs) == str(context[:]))`, out: "True True True\n"}),
		single("chunks overlap", step{source: `cs = [str(c) for c in context.chunks(500_000, 100)]
print(all(a[-100:] == b[:100] for a, b in zip(cs, cs[1:])),
      cs[0] + ''.join(c[100:] for c in cs[1:]) == str(context[:]))`, out: "True True\n"}),
		single("chunks of nonsense", step{source: `for a in ((0,), (-1,), (5, 5), (5, -1), ('x',)):
    try:
        list(context.chunks(*a))
        print('no')
    except (ValueError, TypeError): pass`, out: ""}),
		single("search by methods", step{
			source: `m = context.search(r'NEEDLE at the (\w+)')
print(m.group(1), context[m.start():m.end()], context.findall('NEED..'),
      [m.group() for m in context.finditer('NEEDLE|last line')])`,
			out: "end NEEDLE at the end ['NEEDLE'] ['NEEDLE', 'last line']\n",
		}),
		single("the last words", step{
			source: "print([p[-9:] for p in context.rsplit(None, 2)], " +
				"context.rsplit(None, 0)[0] == context.rstrip())",
			out: "['last line', 'without', 'newline'] True\n",
		}),
		single("rsplit at nothing", step{source: "context.rsplit('', 2)", raises: "ValueError"}),
		single("negative and huge bounds",
			step{
				source: "print(context[-4:], context[10**30:], context[-10**30:3], context[:-10**30])",
				out:    "line  Str \n",
			}),
		single("assignment is refused", step{source: "context[0] = 'x'", raises: "TypeError"}),
		single("an index beyond the end", step{source: "context[context.size]", raises: "IndexError"}),
		single("an index of another type", step{source: "context['x']", raises: "TypeError"}),
		single("find with another type", step{source: "context.find(5)", raises: "TypeError"}),
		single("compiled patterns", step{source: `p = re.compile(r'needle', re.I)
m = p.search(context)
print(m.group(), p.findall(context), m.re is p or m.re == p)`, out: "NEEDLE ['NEEDLE'] True\n"}),
		single("in a condition and a membership test",
			step{
				source: "print('NEEDLE at' in context, 'no such text' in context, '' in context, 'λ' in context)",
				out:    "True False True True\n",
			}),
		{name: "restored when overwritten", steps: []step{
			{source: "size = context.size\ncontext = 'mine'\ndel context_0"},
			{source: "print(context.size == size, context_0.find('NEEDLE') > 0)", out: "True True\n"},
		}},
		{name: "a part kept in a variable", steps: []step{
			{source: "head, words = context[:20], context[:200].split()"},
			{source: "print(head, len(words))", anyOut: true},
		}},
		{
			name:  "searching does not use the guest's memory",
			steps: []step{{source: "print(context.count('e') > 0, context.find('NEEDLE') > 0)", out: "True True\n"}},
		},
	})
}

// testLongParts iterates over parts that are longer than a single read, and over a part that is
// longer than the longest str that is made implicitly. The separators overlap themselves, so the
// end of a part can be determined only from its beginning.
func (s *suite) testLongParts(t *testing.T) {
	skip.Short(t, "it splits a long text in each way there is")
	in, _ := makeFileInput(t, []byte(strings.Repeat("a", 1_000_003)+"\r\n"+strings.Repeat("é b", 1_500_000)+"\n\n"+
		strings.Repeat("w", 600_001)+"\u2028aaaa"+strings.Repeat("é", lazy)+"\r\nlast\r"))
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}, Limits: tiers.Limits{
		Memory: 1 << 30,
		Wall:   s.opt.Patience,
	}})
	box.mustPrint(t, `import re
plain = "".join(context[i:i + (1 << 20)] for i in range(0, context.size, 1 << 20))
print([len(part) for part in context.lines()] == [len(part) for part in context.lines()[:]])
for parts, want in (
    (context.lines(), re.split("\r?\n", plain)), (context.lines(keepends=True), re.findall(".*\n|.+$", plain)),
    (context.splitlines(), plain.splitlines()), (context.splitlines(True), plain.splitlines(True)),
    (context.split(), plain.split()), (context.split("aaa"), plain.split("aaa")),
    (context.split("é" * 999), plain.split("é" * 999)),
):
    print(all(a == b for a, b in zip(parts, want, strict=True)), end=" ")
`, "True\nTrue True True True True True True ")
}

// testLibrary passes the handle to functions that normally accept a str or a file. Each function
// must work, or raise an exception that explains what to do instead.
func (s *suite) testLibrary(t *testing.T) {
	skip.Short(t, "it reads a long text in each way there is")
	rows := "id,name,note\n" + strings.Repeat("1,Zoë,\"a, b\"\n", lazy/14)
	jsonText := `{"rows": [` + strings.Repeat(`{"n": "é", "v": 1}, `, lazy/21) + `{}]}`
	for _, row := range []struct{ name, text, source string }{
		{"csv.reader", rows, `import csv
n = 0
for r in csv.reader(context.lines()): n += r == ['1', 'Zoë', 'a, b']
print(n)`},
		{"csv.DictReader", rows, `import csv
n = 0
for r in csv.DictReader(context.lines()): n += r['name'] == 'Zoë'
print(n)`},
		{"csv over io.StringIO", rows, `import csv, io
n = 0
for r in csv.reader(io.StringIO(context)): n += r[0] == '1'
print(n)`},
		{"csv over lines", rows, "import csv\nprint(sum(r[0] == '1' for r in csv.reader(context.splitlines())))"},
		{"json.loads", jsonText, "print(sum(r.get('n') == 'é' for r in json.loads(context)['rows']))"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in, _ := makeFileInput(t, []byte(row.text))
			box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}, Limits: tiers.Limits{
				Memory: 1 << 30,
				Wall:   s.opt.Patience,
			}})
			r := box.run(t, row.source)
			want := formatDecimal(int64(strings.Count(row.text, "ë")+strings.Count(row.text, "é"))) + "\n"
			switch {
			case r.Status == tiers.StatusOK && r.Stdout != want:
				t.Errorf("counted %q, want %q", r.Stdout, want)
			case r.Status != tiers.StatusOK &&
				(r.Exception == nil || !strings.Contains(r.Exception.Message, "context")):
				t.Errorf("neither a result nor advice\n%s", describe(r))
			}

			box.checkAlive(t)
		})
	}

	t.Run("io.StringIO", func(t *testing.T) {
		in, _ := makeFileInput(t, makeText(lines["ASCII"], lazy))
		box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}, Limits: tiers.Limits{Memory: 1 << 30}})
		box.mustPrint(t, `import io
f = io.StringIO(context)
print(f.readline()[:9], f.read(6), sum(1 for l in f) > 1000)`, "The quick row 0, True\n")
	})
}

// testRefs checks what a host receives for a handle.
func (s *suite) testRefs(t *testing.T) {
	in, _ := makeFileInput(t, makeText(lines["ASCII"], lazy))
	cfg := newHost().config()
	cfg.Inputs = []tiers.Input{makeTextInput(t, "small", "x"), in}
	box := s.open(t, cfg)
	r := box.mustRun(t, `print(seen(context_1))
print(seen(context_1[5:]))
print(seen([context_1]))
print(context_1.size)`)

	out := strings.Split(r.Stdout, "\n")
	for i, want := range []string{`{"__rlm_text__":[1,0,` + out[3] + `]}`, `{"__rlm_text__":[1,5,` +
		out[3] + `]}`, `[{"__rlm_text__":[1,0,` + out[3] + `]}]`} {
		if !sameJSON(out[i], want) {
			t.Errorf("the host got %s, want %s", out[i], want)
		}
	}

	box.mustPrint(t, "print(seen(context_1[4:9]))", "\"quick\"\n")
}

// testTruncated truncates the file while the session uses it.
func (s *suite) testTruncated(t *testing.T) {
	s.testDisturbance(t, func(path string) error { return os.Truncate(path, 1000) })
}

// testChanged writes to the file while the session uses it.
func (s *suite) testChanged(t *testing.T) {
	s.testDisturbance(t, func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("more")
		return errors.Join(err, f.Close())
	})
}

// testDisturbance requires a clear error, as an exception or from Run, or an answer if the change
// does not affect it. The process must stay alive in any case.
func (s *suite) testDisturbance(t *testing.T, disturb func(path string) error) {
	in, path := makeFileInput(t, makeText(lines["ASCII"], lazy))
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}})
	box.mustPrint(t, "print(context[4:9], context.count('NEEDLE'))", "quick 1\n")
	if err := disturb(path); err != nil {
		t.Fatal(err)
	}

	for _, source := range []string{
		"context[8_000_000:8_000_100]", "context.count('NEEDLE')",
		"list(context.lines(50_000, 50_010))", "context.findall('NEEDLE')",
	} {
		r, err := box.tryJob(s.patientContext(t), t, tiers.Job{Source: source})
		switch {
		case err != nil && !errors.Is(err, bigtext.ErrChanged):
			t.Errorf("%s: %v", source, err)
		case err == nil && r.Status == tiers.StatusRaised && !strings.Contains(r.Exception.Message,
			filepath.Base(path)):
			t.Errorf("%s: the exception does not name the file\n%s", source, describe(r))
		case err == nil && r.Status != tiers.StatusRaised && r.Status != tiers.StatusOK:
			t.Errorf("%s\n%s", source, describe(r))
		}
	}
}
