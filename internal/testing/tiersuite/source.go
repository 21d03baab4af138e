package tiersuite

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// testSource tests snippets with unusual text.
func (s *suite) testSource(t *testing.T) {
	t.Run("Odd", func(t *testing.T) { s.playScenarios(t, emptyConfig, oddSources) })
	t.Run("Bytes", s.testSourceBytes)
	if !s.opt.KnownProcess {
		t.Run("Huge", s.testHugeSource)
	}
}

var oddSources = []scenario{
	single("empty", step{source: ""}),
	single("white space", step{source: " \n\t\n  "}),
	single("a comment", step{source: "# nothing"}),
	single("a comment without a newline after code", step{source: "print(1)\n# end", out: "1\n"}),
	single("no newline at the end", step{source: "print(2)", out: "2\n"}),
	single("many newlines at the end", step{source: "print(3)" + strings.Repeat("\n", 1000), out: "3\n"}),
	single("a block without a newline at the end", step{source: "if True:\n    print(4)", out: "4\n"}),
	single("lines ended by \\r\\n", step{source: "x = '''a\r\nb'''\r\nprint(repr(x))\r\n", out: "'a\\nb'\n"}),
	single("lines ended by \\r", step{source: "x = 1\rprint(x)\r", out: "1\n"}),
	single("form feeds", step{source: "x = 1\n\fprint(x)\n", out: "1\n"}),
	single("tabs", step{source: "if True:\n\tx = 5\n\tprint(x)", out: "5\n"}),
	single("tabs in a string", step{source: "print('a\tb')", out: "a\tb\n"}),
	single("a byte order mark", step{source: "\ufeffprint(6)", out: "6\n"}),
	single("a coding line is ignored", step{source: "# -*- coding: latin-1 -*-\nprint('é')", out: "é\n"}),
	single("wide characters in names and strings", step{
		source: "größe = '日本😀'\nprint(größe, len(größe))",
		out:    "日本😀 3\n",
	}),
	single("names are folded", step{source: "ﬁne = 1\nprint(fine)", out: "1\n"}),
	single("triple quotes are not re-indented", step{source: `def f():
    return '''
  two
none
    '''
print(repr(f()))`, out: "'\\n  two\\nnone\\n    '\n"}),
	single("an indented snippet is an error", step{
		source: "    print(1)", raises: "IndentationError",
		says: []string{"unexpected indent"},
	}),
	single("a shell line is an error", step{source: "!ls", raises: "SyntaxError"}),
	single("a markdown fence is an error", step{source: "```python\nprint(1)\n```", raises: "SyntaxError"}),
	single("typographic quotes are an error", step{
		source: "print(“hi”)", raises: "SyntaxError",
		says: []string{"invalid character '“' (U+201C)"},
	}),
	single("a no-break space is an error", step{source: "x =\u00a01", raises: "SyntaxError", says: []string{"U+00A0"}}),
	single("an unfinished block", step{source: "def f():", raises: "IndentationError"}),
	single("a return at the top", step{
		source: "return 5", raises: "SyntaxError",
		says: []string{"'return' outside function"},
	}),
	single("a yield at the top", step{
		source: "yield 5", raises: "SyntaxError",
		says: []string{"'yield' outside function"},
	}),
	single("print as a statement", step{
		source: "print 'x'", raises: "SyntaxError",
		says: []string{"Missing parentheses"},
	}),
	single("a very long line", step{source: "print(len('" + strings.Repeat("x", 1_000_000) + "'))", out: "1000000\n"}),
	single("a NUL in the source", step{
		source: "print(1)\x00print(2)", status: tiers.StatusRaised,
		says: []string{"null byte"},
	}),
	{name: "an error does not shift later line numbers", steps: []step{
		{source: "\n\n1 +", raises: "SyntaxError", says: []string{`"<snippet 1>", line 3`}},
		{source: "\n1/0", raises: "ZeroDivisionError", says: []string{`"<snippet 2>", line 2`}},
	}},
}

// testSourceBytes runs snippets that are not UTF-8. A tier may refuse them with an exception, as
// CPython does, or read them somehow, but nothing may break.
func (s *suite) testSourceBytes(t *testing.T) {
	for name, source := range map[string]string{
		"an invalid byte in a string":  "print('\xff')",
		"an invalid byte in a comment": "# \xff\nprint(1)",
		"an invalid byte in a name":    "a\xff = 1",
		"an encoded surrogate":         "print('\xed\xa0\x80')",
		"a cut sequence at the end":    "print(1)  # \xe2\x82",
		"latin-1":                      "print('caf\xe9')",
		"UTF-16":                       "\xff\xfep\x00r\x00i\x00n\x00t\x00(\x001\x00)\x00",
		"only NULs":                    strings.Repeat("\x00", 1000),
		"all bytes":                    allBytes(),
	} {
		t.Run(name, func(t *testing.T) {
			box := s.open(t, emptyConfig())
			box.mustRun(t, harm.Marked)
			r := box.run(t, source)
			if r.Status != tiers.StatusOK && r.Status != tiers.StatusRaised {
				t.Errorf("want an exception\n%s", describe(r))
			}

			box.checkAlive(t)
			box.checkHonest(t, r)
		})
	}
}

func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// testHugeSource runs snippets that are megabytes long.
func (s *suite) testHugeSource(t *testing.T) {
	skip.UnderRace(t)
	skip.Short(t, "it compiles megabytes")
	box := s.open(t, emptyConfig())
	for name, source := range map[string]string{
		"8 MB of comments":   strings.Repeat("# a comment that says nothing at all\n", 220_000) + "print('end')",
		"8 MB in one string": "x = '''" + strings.Repeat("é😀\n", 1_200_000) + "'''\nprint('end')",
		"100,000 statements": strings.Repeat("x = 1\n", 100_000) + "print('end')",
		"20,000 functions":   strings.Repeat("def f(a, b=1): return a + b\n", 20_000) + "print('end')",
		"a long if and elif": "x = 5\nif x == -1: pass\n" + strings.Repeat("elif x == -2: pass\n", 500) +
			"print('end')",
		"a long list display": "x = [" + strings.Repeat("1, ", 300_000) + "]\nprint('end')",
	} {
		t.Run(name, func(t *testing.T) { box.mustPrint(t, source, "end\n") })
	}
}
