package tiersuite

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// testSmallContext tests inputs that fit into the guest unchanged.
func (s *suite) testSmallContext(t *testing.T) {
	t.Run("Text", s.testSmallText)
	t.Run("Values", s.testValueInputs)
	t.Run("Several", s.testSeveralInputs)
	t.Run("Restored", s.testContextRestored)
	t.Run("Directory", s.testDirectory)
	t.Run("OddNames", s.testOddNames)
	t.Run("HostCalls", s.testContextToHost)
	t.Run("Foreign", s.testForeignInputs)
	t.Run("Documents", s.testDocuments)
	t.Run("Pages", s.testPages)
	t.Run("Extended", s.testExtended)
}

// makeTextInput opens b as an input that is closed with the test.
func makeTextInput(t *testing.T, name, b string) tiers.Input {
	t.Helper()
	text := bigtext.FromBytes(name, []byte(b))
	t.Cleanup(func() { _ = text.Close() }) // cannot lose data: the text is a constant
	return tiers.Input{Name: name, Text: text}
}

// makeFileInput writes b to a file and opens it.
func makeFileInput(t *testing.T, b []byte) (tiers.Input, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "context.txt")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return openInput(t, path), path
}

func openInput(t *testing.T, path string) tiers.Input {
	t.Helper()
	text, err := bigtext.Open(path)
	if err != nil {
		t.Fatalf("cannot open the context: %v", err)
	}
	t.Cleanup(func() {
		if err := text.Close(); err != nil {
			t.Errorf("cannot close the context: %v", err)
		}
	})

	return tiers.Input{Name: path, Text: text}
}

// testSmallText checks that a small context is a plain str, with all methods of str, and that
// isinstance is true.
func (s *suite) testSmallText(t *testing.T) {
	for name, row := range map[string]struct{ text, source, want string }{
		"ASCII": {
			"one\ntwo\n",
			"print(isinstance(context, str), len(context), context.splitlines(), context == context_0)",
			"True 8 ['one', 'two'] True\n",
		},
		"wide": {
			"é日😀", "print(isinstance(context, str), len(context), context[1:], context.upper())",
			"True 3 日😀 É日😀\n",
		},
		"empty":        {"", "print(repr(context), len(context), bool(context))", "'' 0 False\n"},
		"CRLF is kept": {"a\r\nb\r", "print(repr(context))", "'a\\r\\nb\\r'\n"},
		"NUL":          {"a\x00b", "print(len(context), context.find('b'))", "3 2\n"},
		"a BOM":        {"\ufeffx", "print(ascii(context))", "'\\ufeffx'\n"},
		"not UTF-8": {
			"a\xffb\xc3", "print(ascii(context), context.encode('utf-8', 'surrogateescape'))",
			"'a\\udcffb\\udcc3' b'a\\xffb\\xc3'\n",
		},
		"JSON": {`{"k": [1]}`, "print(json.loads(context)['k'])", "[1]\n"},
		"CSV": {"a,b\n1,2\n", `import csv, io
print(list(csv.DictReader(io.StringIO(context))))`, "[{'a': '1', 'b': '2'}]\n"},
		"regex": {
			"x1 y22", "print(re.findall(r'\\d+', context), re.sub('[xy]', '-', context))",
			"['1', '22'] -1 -22\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Inputs: []tiers.Input{makeTextInput(t, name, row.text)}})
			box.mustPrint(t, row.source, row.want)
		})
	}

	t.Run("no context", func(t *testing.T) {
		box := s.open(t, emptyConfig())
		box.mustPrint(t, `try:
    print(repr(context))
except NameError as e:
    print('none')
print('on')`, box.mustRun(t, `try:
    print(repr(context))
except NameError as e:
    print('none')`).Stdout+"on\n")
	})
}

func (s *suite) testValueInputs(t *testing.T) {
	for _, v := range jsonValues {
		if v.want == "" {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Inputs: []tiers.Input{{Name: "v", Value: tiers.Value(v.want)}}})
			box.mustPrint(t, "want = "+v.source+"\nprint(context == want, type(context) is type(want))", "True True\n")
		})
	}
}

func (s *suite) testSeveralInputs(t *testing.T) {
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{
		makeTextInput(t, "first", "one"),
		{Name: "second", Value: tiers.Value(`[2]`)},
		makeTextInput(t, "third", "three"),
	}})
	box.mustPrint(t, "print(context, context_0, context_1, context_2, 'context_3' in globals())",
		"one one [2] three False\n")
}

func (s *suite) testContextRestored(t *testing.T) {
	cfg := func() tiers.Config {
		return tiers.Config{Inputs: []tiers.Input{makeTextInput(t, "first", "one"), makeTextInput(t, "second", "two")}}
	}
	look := step{source: "print(context, context_0, context_1)", out: "one one two\n"}
	s.playScenarios(t, cfg, []scenario{
		{name: "overwritten", steps: []step{
			{source: "context = context_0 = 'mine'\nprint(context)", out: "mine\n"},
			look,
		}},
		{name: "deleted", steps: []step{{source: "del context, context_1"}, look}},
		{name: "a loop variable", steps: []step{{source: "for context in range(3): pass"}, look}},
		{
			name:  "overwritten by a snippet that raised",
			steps: []step{{source: "context_1 = 5\n1/0", raises: "ZeroDivisionError"}, look},
		},
		{name: "a derived variable is the user's", steps: []step{
			{source: "part = context[:2]"},
			{source: "print(part)", out: "on\n"},
		}},
	})
}

// makeDirInput writes files to a folder, by their relative paths, and opens it.
func makeDirInput(t *testing.T, files map[string]string) tiers.Input {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	dir, err := bigtext.OpenDir(root)
	if err != nil {
		t.Fatalf("cannot open the directory: %v", err)
	}
	t.Cleanup(func() { _ = dir.Close() }) // its files are read-only
	return tiers.Input{Name: root, Dir: dir}
}

// testDirectory checks a directory, which is a mapping of relative paths to texts.
func (s *suite) testDirectory(t *testing.T) {
	folder := makeDirInput(t, map[string]string{
		"a.txt": "alpha\n", "sub/b.md": "# bêta\n", "sub/deep/c.json": `{"n": 3}`,
		"empty": "", "latin.txt": "caf\xe9",
	})
	cfg := func() tiers.Config { return tiers.Config{Inputs: []tiers.Input{folder}} }

	names := "['a.txt', 'empty', 'latin.txt', 'sub/b.md', 'sub/deep/c.json']\n"
	s.playScenarios(t, cfg, []scenario{
		single("names", step{source: "print(sorted(context))", out: names}),
		single("keys, length and membership",
			step{source: "print(len(context), 'a.txt' in context, 'sub' in context, 'b.md' in context, " +
				"sorted(context.keys()) == sorted(context))", out: "5 True False False True\n"}),
		single("a text", step{
			source: "print(repr(context['a.txt']), context['sub/b.md'], repr(context['empty']))",
			out:    "'alpha\\n' # bêta\n ''\n",
		}),
		single("a text that is not UTF-8", step{source: "print(ascii(context['latin.txt']))", out: "'caf\\udce9'\n"}),
		single("parsed", step{source: "print(json.loads(context['sub/deep/c.json'])['n'])", out: "3\n"}),
		single("get", step{
			source: "print(context.get('nope'), context.get('nope', 5), context.get('a.txt').strip())",
			out:    "None 5 alpha\n",
		}),
		single("items", step{
			source: "print({k: len(v) for k, v in sorted(context.items())})",
			out:    "{'a.txt': 6, 'empty': 0, 'latin.txt': 4, 'sub/b.md': 7, 'sub/deep/c.json': 8}\n",
		}),
		single("values", step{source: "print(sum(len(v) for v in context.values()))", out: "25\n"}),
		single("a search over all files",
			step{
				source: "print(sorted(k for k in context if re.search('[ab]', context[k])))",
				out:    "['a.txt', 'latin.txt', 'sub/b.md']\n",
			}),
		single("a missing name", step{source: "context['nope']", raises: "KeyError"}),
		single("a path upwards", step{source: "context['../secret']", raises: "KeyError"}),
		single("an absolute path", step{source: "context['/etc/passwd']", raises: "KeyError"}),
		single("a key that is no str", step{source: `try:
    context[5]
except (KeyError, TypeError):
    print('refused')`, out: "refused\n"}),
		single("what only a text has", step{
			source: `for ask in lambda: context.count('x'), lambda: context[:10], lambda: context.nope:
    try:
        ask()
    except (AttributeError, TypeError) as e:
        print(type(e).__name__, 'context[path]' in str(e))`,
			out: "AttributeError True\nTypeError True\nAttributeError False\n",
		}),
		single("a copy", step{source: `import copy
print(sorted(copy.copy(context)) == sorted(context))`, out: "True\n"}),
		single("read-only", step{source: `try:
    context['new'] = 'x'
except TypeError:
    print('refused')`, out: "refused\n"}),
	})
}

// testOddNames checks file names that are not valid text, or look like something else.
func (s *suite) testOddNames(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"bad\xff\xc3name", "a,b", "new\nline", "\uFFFD", "-c"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("text of "+name), 0o600); err != nil {
			t.Skipf("this file system has no such names: %v", err)
		}
	}

	dir, err := bigtext.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() }) // its files are read-only
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{{Name: root, Dir: dir}}})
	box.mustPrint(t, "print(all(text == 'text of ' + name for name, text in context.items()), ascii(sorted(context)))",
		`True ['-c', 'a,b', 'bad\udcff\udcc3name', 'new\nline', '\ufffd']`+"\n")
}

// testForeignInputs checks a text and a directory that no package of this module implements.
func (s *suite) testForeignInputs(t *testing.T) {
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{
		{Name: "short", Text: strings.NewReader("one\ntwö\n")},
		{Name: "long", Text: strings.NewReader(strings.Repeat("x", 9<<20) + "end")},
		{Name: "folder", Dir: folder{"a.txt": "alpha", "sub/b.md": "beta"}},
	}})
	box.mustPrint(t, "print(isinstance(context, str), context.splitlines())", "True ['one', 'twö']\n")
	box.mustPrint(t, "print(len(context_1), context_1.find('end'), context_1[-3:])", "9437187 9437184 end\n")
	box.mustPrint(t, "print({name: text for name, text in sorted(context_2.items())})",
		"{'a.txt': 'alpha', 'sub/b.md': 'beta'}\n")
}

// folder is a directory in memory.
type folder map[string]string

func (f folder) Names() []string { return slices.Sorted(maps.Keys(f)) }

func (f folder) Size(name string) (int64, error) { return int64(len(f[name])), nil }

func (f folder) Open(name string) (fs.File, error) {
	return fstest.MapFS{name: {Data: []byte(f[name])}}.Open(name)
}

// testContextToHost passes parts of a small context, which are plain strings, to a host call.
func (s *suite) testContextToHost(t *testing.T) {
	cfg := newHost().config()
	cfg.Inputs = []tiers.Input{makeTextInput(t, "small", "é small text")}
	box := s.open(t, cfg)
	box.mustPrint(t, "print(seen(context), seen(context[:1]), echo(context) == context)",
		"\"é small text\" \"é\" True\n")
	bad := newHost().config()
	bad.Inputs = []tiers.Input{makeTextInput(t, "bad", "a\xffb")}
	box = s.open(t, bad)
	box.mustPrint(t, "r = echo(context)\nprint(len(r), r[0], r[2])", "3 a b\n")
}

// lines are the seed lines of huge contexts.
var lines = map[string]string{
	"ASCII": `The quick brown fox jumps over the lazy dog; ERROR 404 at 2024-02-29 12:34:56,` +
		" id=abc123, price $5.00 (tax: 19%).\n" +
		"second line, with\ttabs and  double  spaces  \r\nfoo_bar baz-qux \"quoted, text\",1,2.5\n\n",
	"languages": "Straße Öl café naïve; Ελλάδα ΟΔΥΣΣΕΥΣ, Привет мир 2024 Ёжик; 你好,世界。こんにちは、안녕하세요 " +
		"👩‍👩‍👧‍👦 🇩🇪\n" +
		"مرحبا بالعالم ٣٤ שלום नमस्ते สวัสดี e\u0301\u0323 ﬁ Ǆ İı " +
		"ſ\u00a0\u2003x\u2028y\u0085z\vq\fw\x1cv\n\r\nplain ASCII line id=42\n",
	"invalid": "\ufeffvalid é then \xff\xfe bytes \xc3( cut \xe2\x82 and \xed\xa0\x80 surrogate \xf0\x9f\x98 end\n" +
		"\x80lone continuation, caf\xe9 latin-1, ok 日本 \xf5\xf6\n\x00nul line\n",
}

// makeText returns a text from writeText.
func makeText(seed string, size int) []byte {
	var b bytes.Buffer
	_ = writeText(&b, seed, size) // a buffer accepts everything
	return b.Bytes()
}

// writeText repeats lines until they have at least size bytes, numbered so that all are different,
// with a needle near the end.
func writeText(w io.Writer, seed string, size int) error {
	parts := strings.SplitAfter(seed, "\n")
	for i, written := 0, 0; written < size; i++ {
		line := parts[i%len(parts)]
		if i%100 == 0 {
			line += "row " + formatDecimal(int64(i)) + ",é,\"x\"\n"
		}
		n, err := io.WriteString(w, line)
		if err != nil {
			return err
		}
		written += n
	}
	_, err := io.WriteString(w, "NEEDLE at the end, λ\nlast line without newline")
	return err
}

// testExtended adds inputs and functions to a session that has run snippets, and restores the
// session after a snippet that must be killed.
func (s *suite) testExtended(t *testing.T) {
	h := newHost()
	box := s.open(t, tiers.Config{
		Host: h, Inputs: []tiers.Input{{Name: "folder", Dir: folder{"a.txt": "alpha", "b.txt": "beta"}}},
		Limits: tiers.Limits{Wall: 2 * time.Second},
	})
	extender, ok := box.box.(tiers.Extender)
	if !ok {
		t.Skipf("sandboxes of tier %s are not Extenders", s.info.Name)
	}

	box.mustPrint(t, "kept = context['a.txt']\nprint(kept, 'context_1' in globals())", "alpha False\n")

	added := []tiers.Input{{Name: "more", Text: strings.NewReader("gamma")}}
	if err := extender.Extend(t.Context(), added, []tiers.Function{{Name: "echo"}}); err != nil {
		t.Fatal(err)
	}
	const all = "print(kept, context['b.txt'], context['a.txt'], context_1, echo(7))"
	box.mustPrint(t, all, "alpha beta alpha gamma 7\n")

	box.mustRun(t, "import time")
	r := box.run(t, "while True:\n    try:\n        while True: pass\n    except BaseException: pass")
	if r.Status != tiers.StatusLimit || r.Lost == nil {
		t.Fatalf("%s, lost %v", r.Status, r.Lost)
	}

	box.mustPrint(t, "print(context['b.txt'], context_1, echo(8))", "beta gamma 8\n")

	if err := extender.Extend(t.Context(), []tiers.Input{{}}, nil); err == nil {
		t.Error("an input without content was added")
	}
	if err := extender.Extend(t.Context(), nil, []tiers.Function{{Name: "FINAL"}}); err == nil {
		t.Error("a reserved name was added")
	}
}
