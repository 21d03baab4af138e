package tiersuite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

const outDir = "testdata/out"

// testResults tests the results other than output: the value of the last expression, artefacts, and
// answers of bytes.
func (s *suite) testResults(t *testing.T) {
	t.Run("echo", s.testEcho)
	t.Run("artefacts", s.testArtefacts)
	t.Run("answers", s.testAnswersOfBytes)
	t.Run("bounds", s.testArtefactBounds)
}

func (s *suite) testEcho(t *testing.T) {
	box := s.open(t, emptyConfig())
	for _, c := range []struct{ source, echo, stdout string }{
		{"1 + 1", "2", "2\n"},
		{"print('said')\n'text'", "'text'", "said\n'text'\n"},
		{"x = 5", "", ""},
		{"print(7)", "", "7\n"},
		{"'a\\nb'", `'a\nb'`, "'a\\nb'\n"},
	} {
		if r := box.mustRun(t, c.source); r.Echo != c.echo || r.Stdout != c.stdout {
			t.Errorf("%s: %q and %q", c.source, r.Echo, r.Stdout)
		}
	}

	small := s.open(t, tiers.Config{Limits: tiers.Limits{Output: 10}})
	if r := small.run(t, "'x' * 100"); r.Echo != "'"+strings.Repeat("x", 9) || r.Limit != tiers.LimitOutput {
		t.Errorf("beyond the limit of output: %q %q", r.Echo, r.Limit)
	}
}

// shownSource is code that defines a class whose instances have the representations that notebooks
// display.
const shownSource = `class Shown:
    def __init__(self, **forms): self.__dict__.update(forms)
    def __repr__(self): return 'Shown()'
    def _repr_png_(self): return self.__dict__.get('png')
    def _repr_svg_(self): return self.__dict__.get('svg')
    def _repr_html_(self):
        if self.__dict__.get('html') == 'raise': raise ValueError('no html')
        return self.__dict__.get('html')
`

func (s *suite) testArtefacts(t *testing.T) {
	box := s.open(t, emptyConfig())
	box.mustRun(t, shownSource)
	for i, c := range []struct{ source, name, kind, data string }{
		{`Shown(png=b'\x89PNG')`, "value-%d-1.png", "image/png", "\x89PNG"},
		{`Shown(svg='<svg/>')`, "value-%d-1.svg", "image/svg+xml", "<svg/>"},
		{`Shown(html='<b>é</b>')`, "value-%d-1.html", "text/html", "<b>é</b>"},
		{`Shown(png=(b'\x89PNG', {'width': 1}))`, "value-%d-1.png", "image/png", "\x89PNG"},
		{`Shown(html='raise')`, "", "", ""},
		{`Shown(png=5)`, "", "", ""},
		{`Shown()`, "", "", ""},
		{`Shown`, "", "", ""},
		{`[Shown(png=b'x')]`, "", "", ""},
	} {
		r := box.mustRun(t, c.source)
		switch {
		case c.name == "" && len(r.Artefacts) > 0:
			t.Errorf("%s made %+v", c.source, r.Artefacts)
		case c.name == "":
		case len(r.Artefacts) != 1:
			t.Errorf("%s made %+v", c.source, r.Artefacts)
		default:
			got := r.Artefacts[0]
			if got.Name != fmt.Sprintf(c.name, i+2) || got.Type != c.kind || string(got.Data) != c.data {
				t.Errorf("%s made %+v", c.source, got)
			}
		}
		if r.Echo == "" {
			t.Errorf("%s has no text", c.source)
		}
	}
}

func (s *suite) testAnswersOfBytes(t *testing.T) {
	for _, c := range []struct{ source, value, kind, data string }{
		{`FINAL(b'text')`, `"text"`, "", ""},
		{`FINAL(bytearray(b'\x89PNG\r\n\x1a\n'))`, "answer-2-1.png", "image/png", "\x89PNG\r\n\x1a\n"},
		{`FINAL(b'%PDF-1.7 \xff')`, "answer-2-1.pdf", "application/pdf", "%PDF-1.7 \xff"},
		{`FINAL(memoryview(b'\xff\x00'))`, "answer-2-1.bin", "application/octet-stream", "\xff\x00"},
		{`FINAL(Shown(png=b'\x89PNG'))`, "answer-2-1.png", "image/png", "\x89PNG"},
		{`FINAL({'nested': b'\xff'})`, `{"nested": "�"}`, "", ""},
	} {
		box := s.open(t, emptyConfig())
		box.mustRun(t, shownSource)
		r := box.mustRun(t, c.source)
		if r.Final == nil {
			t.Fatalf("%s gave no answer", c.source)
		}
		if c.kind == "" {
			if string(r.Final.Value) != c.value || len(r.Artefacts) > 0 {
				t.Errorf("%s: %s %+v", c.source, r.Final.Value, r.Artefacts)
			}
			continue
		}

		var named struct {
			File, Type, SHA256 string
			Bytes              int
		}
		if err := json.Unmarshal(r.Final.Value, &named); err != nil || len(r.Artefacts) != 1 {
			t.Fatalf("%s: %s %v", c.source, r.Final.Value, err)
		}
		kept := r.Artefacts[0]
		if named.File != c.value || named.Type != c.kind || named.Bytes != len(c.data) ||
			len(named.SHA256) != 64 || kept.Name != c.value || string(kept.Data) != c.data {
			t.Errorf("%s: %s %+v", c.source, r.Final.Value, kept)
		}
	}
}

func (s *suite) testArtefactBounds(t *testing.T) {
	box := s.open(t, emptyConfig())
	box.mustRun(t, shownSource)
	r := box.mustRun(t, "Shown(png=bytes(65 << 20))")
	if len(r.Artefacts) > 0 || !strings.Contains(r.Stderr, "at most 64 MiB") {
		t.Errorf("%d artefacts, %q", len(r.Artefacts), r.Stderr)
	}
	if r := box.mustRun(t, "Shown(png=b'x')"); len(r.Artefacts) != 1 {
		t.Errorf("the next snippet made %+v", r.Artefacts)
	}
}

// testOutFolder tests the folder whose files are copied to the host.
func (s *suite) testOutFolder(t *testing.T) {
	cfg := tiers.Config{Out: true}
	for _, name := range listCases(t, outDir) {
		t.Run(name, func(t *testing.T) {
			r := s.open(t, cfg).mustRun(t, readFixture(t, outDir+"/"+name+".py"))
			compare(t, "stdout", r.Stdout, readFixture(t, outDir+"/"+name+".stdout"))
		})
	}

	t.Run("collect", func(t *testing.T) { s.testCollect(t, cfg) })
	t.Run("move", func(t *testing.T) { s.testFilesMove(t, cfg) })
	t.Run("bounds", func(t *testing.T) { s.testOutBounds(t, cfg) })
	t.Run("elsewhere", s.testFilesElsewhere)
	t.Run("absent", func(t *testing.T) {
		box := s.open(t, emptyConfig())
		if r := box.run(t, "open('/out/x', 'w')"); r.Status != tiers.StatusRaised {
			t.Errorf("without Out there is a folder: %+v", r)
		}
		if _, err := box.box.(tiers.Collector).Collect(t.Context(), t.TempDir()); err == nil {
			t.Error("files were collected without Out")
		}
	})
}

func (s *suite) collect(t *testing.T, box *session) (string, tiers.Collected) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "files")
	got, err := box.box.(tiers.Collector).Collect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, got
}

func (s *suite) testCollect(t *testing.T, cfg tiers.Config) {
	box := s.open(t, cfg)
	if dir, got := s.collect(t, box); got.Files != 0 {
		t.Errorf("a session that has run nothing gives %+v in %s", got, dir)
	}
	box.mustRun(t, `import os
os.makedirs('/out/d/empty')
open('/out/a.txt', 'w').write('text')
open('/out/d/größe.bin', 'wb').write(bytes(3 << 20))
for odd in ('back\\slash', 'new\nline', 'bell\a', '\u202egnp.exe'):
    open('/out/' + odd, 'w').write('x')
try:
    os.symlink('/etc/passwd', '/out/link')
except OSError: pass
open('/out/d/../../out/plain', 'w').write('p')
kept = 1`)
	dir, got := s.collect(t, box)
	if got.Files != 3 || got.Bytes != 5+3<<20 || len(got.Refused) < 4 || got.Lost != "" {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string][]byte{
		"a.txt": []byte("text"), "d/größe.bin": make([]byte, 3<<20), "plain": []byte("p"),
	} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(data, want) {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "d/empty")); err != nil || !info.IsDir() {
		t.Error(err)
	}

	if r := box.mustRun(t, "print(kept, open('/out/a.txt').read())"); r.Stdout != "1 text\n" {
		t.Errorf("the session went on with %q", r.Stdout)
	}
	box.mustRun(t, "open('/out/later', 'w').write('l')")
	again, err := box.box.(tiers.Collector).Collect(t.Context(), dir)
	if err != nil || again.Files != 1 || len(again.Refused) <= len(got.Refused) {
		t.Errorf("a second collection: %+v %v", again, err)
	}
}

// testFilesMove moves a session with files, and copies one.
func (s *suite) testFilesMove(t *testing.T, cfg tiers.Config) {
	if !s.info.Has(tiers.FeatureMove) {
		t.Skip("its sessions do not move")
	}
	box, next := s.open(t, cfg), s.open(t, cfg)
	box.mustRun(t, "import os\nos.makedirs('/out/d/e')\nopen('/out/d/f', 'wb').write(b'\\xff')\n"+
		"open('/out/top', 'w').close()\nx = 1")
	if report := moveTo(t, box, next); len(report.Left) > 0 {
		t.Errorf("left behind: %+v", report.Left)
	}
	const look = "import os\nprint(x, sorted(os.walk('/out')), open('/out/d/f', 'rb').read())"
	want := "1 [('/out', ['d'], ['top']), ('/out/d', ['e'], ['f']), ('/out/d/e', [], [])] b'\\xff'\n"
	if r := next.mustRun(t, look); r.Stdout != want {
		t.Errorf("the files that moved are %q", r.Stdout)
	}

	if s.info.Has(tiers.FeatureFork) {
		copied := next.testFork(t)
		copied.mustRun(t, "os.remove('/out/d/f')")
		if r := next.mustRun(t, look); r.Stdout != want {
			t.Errorf("a copy changed the files: %q", r.Stdout)
		}
	}
}

// testFilesElsewhere writes files in places that are not kept. One note must name each file that
// still exists when the snippet ends.
func (s *suite) testFilesElsewhere(t *testing.T) {
	s.requireFeature(t, tiers.FeatureFiles)
	const flagged = " will be lost with the sandbox: write files to keep below /out with --out FOLDER\n"
	box := s.open(t, emptyConfig())
	for _, row := range []struct{ name, source, stderr string }{
		{"kept by nobody", "open('result.csv', 'w').write('a')", "note: result.csv" + flagged},
		{"removed", "open('x', 'w').close()\nos.remove('x')", ""},
		{
			"temporary", "import tempfile\ntempfile.mkstemp()\n" +
				"open(tempfile.gettempdir() + '/x', 'w').close()", "",
		},
		{
			"hidden", "os.makedirs('.cache/p', exist_ok=True)\nopen('.cache/p/x', 'w').close()\n" +
				"open('.x', 'w').close()", "",
		},
		{
			"in a folder", "os.makedirs('d', exist_ok=True)\nos.chdir('d')\nopen('x', 'w').close()\n" +
				"os.chdir('..')", "note: d/x" + flagged,
		},
		{
			"many", "for i in range(5): open(f'{i}\\n', 'w').close()",
			`note: '0\n', '1\n', '2\n' and 2 more` + flagged,
		},
		{
			"of a child", "pid = os.fork()\nopen(f'by{pid > 0}', 'w').close()\n" +
				"if pid: _ = os.waitpid(pid, 0)", "note: byFalse, byTrue" + flagged,
		},
		{"before an answer", "open('answer', 'w').close()\nFINAL(1)", "note: answer" + flagged},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, want := range []string{row.stderr, ""} {
				if r := box.mustRun(t, "import os\n"+row.source); r.Stderr != want {
					t.Errorf("%q, want %q", r.Stderr, want)
				}
			}
		})
	}

	t.Run("where os has other functions", func(t *testing.T) {
		box := s.open(t, emptyConfig())
		box.mustPrint(t, "import os\nos.walk = os.scandir = None\nopen('x', 'w').close()\nprint(1)", "1\n")
	})
	t.Run("before an exception", func(t *testing.T) {
		box := s.open(t, tiers.Config{Out: true})
		r := box.run(t, "open('/out/x', 'w').close()\nopen('result.csv', 'w').close()\n1 / 0")
		want := "note: result.csv will be lost with the sandbox: write files to keep below /out\n"
		if r.Status != tiers.StatusRaised || r.Stderr != want {
			t.Errorf("%s %q, want %q", r.Status, r.Stderr, want)
		}
	})
}

func (s *suite) testOutBounds(t *testing.T, cfg tiers.Config) {
	box := s.open(t, cfg)
	r := box.mustRun(t, `import os
def fill(write):
    try:
        for i in range(1 << 20): write(i)
    except OSError as error:
        return error.errno
import errno
block, at = bytes(1 << 20), open('/out/large', 'wb', buffering=0)
full = fill(lambda i: at.write(block) or 1 / 0)
print(full in (errno.ENOSPC, errno.EFBIG), os.path.getsize('/out/large') <= 64 << 20)
at.close()
os.remove('/out/large')
print(fill(lambda i: open(f'/out/{i}', 'w').close()) == errno.ENOSPC, len(os.listdir('/out')) <= 4096)`)
	if r.Stdout != "True True\nTrue True\n" {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
}
