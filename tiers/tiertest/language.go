package tiertest

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

//go:embed testdata
var testdata embed.FS

const (
	langDir  = "testdata/lang"
	raiseDir = "testdata/raise"
)

// cases returns the names of the scripts in a folder, without extension.
func cases(t *testing.T, dir string) []string {
	t.Helper()
	files, err := fs.Glob(testdata, dir+"/*.py")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(path.Base(f), ".py")
	}
	return names
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := testdata.ReadFile(name)
	if err != nil {
		t.Fatalf("cannot read a fixture: %v (write the golden files with -update)", err)
	}
	return string(b)
}

// language runs each script of testdata/lang as a session's first snippet.
func (s *suite) language(t *testing.T) {
	for _, name := range cases(t, langDir) {
		t.Run(name, func(t *testing.T) {
			if !s.info.Has(tiers.FeatureAsync) && strings.HasPrefix(name, "async_") {
				t.Skipf("tier %s has no feature %q", s.info.Name, tiers.FeatureAsync)
			}
			t.Parallel()
			// The scripts print more than a model should read.
			box := s.open(t, tiers.Config{Limits: tiers.Limits{Output: 10 << 20}})
			r := box.ok(t, fixture(t, langDir+"/"+name+".py"))
			compare(t, "stdout", r.Stdout, fixture(t, langDir+"/"+name+".stdout"))
		})
	}
}

// tracebacks runs each script of testdata/raise and compares what CPython would
// have written to stderr with the snippet's stderr and the traceback.
func (s *suite) tracebacks(t *testing.T) {
	for _, name := range cases(t, raiseDir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := s.open(t, bare())
			r := box.run(t, fixture(t, raiseDir+"/"+name+".py"))
			want := fixture(t, raiseDir+"/"+name+".stderr")
			checkEnding(t, name, r)
			compare(t, "traceback", anyDepth(r.Stderr+r.Exception.Traceback), want)
			compare(t, "stdout", r.Stdout, fixture(t, raiseDir+"/"+name+".stdout"))
			box.alive(t)
		})
	}
}

// exitCodes are the codes of the scripts that exit instead of raising.
var exitCodes = map[string]int{"exit_message": 1, "exit_code": 3, "exit_none": 0, "exit_object": 1}

func checkEnding(t *testing.T, name string, r tiers.Result) {
	t.Helper()
	code, exits := exitCodes[name]
	want := tiers.StatusRaised
	if exits {
		want = tiers.StatusExited
	}
	if r.Status != want || r.Exception == nil {
		t.Fatalf("status %q, want %q\n%s", r.Status, want, describe(r))
	}
	if exits && r.Exception.ExitCode != code {
		t.Errorf("exit code %d, want %d", r.Exception.ExitCode, code)
	}
	if kind := r.Exception.Type; exits != (kind == "SystemExit") {
		t.Errorf("exception %s with status %s", kind, r.Status)
	}
}

var repeats = regexp.MustCompile(`Previous line repeated \d+ more times`)

// anyDepth hides how deep a recursion went: a tier's own frames take some of it.
// It also lets a traceback end in a newline or not.
func anyDepth(s string) string {
	s = repeats.ReplaceAllString(s, "Previous line repeated N more times")
	return strings.TrimSuffix(s, "\n")
}

// compare fails the test at the first line in which two texts differ.
func compare(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; i < len(g) || i < len(w); i++ {
		a, b := line(g, i), line(w, i)
		if a != b {
			t.Fatalf("%s differs from CPython's in line %d:\n got %s\nwant %s\n\nwhole %s:\n%s", what, i+1, a, b, what, excerpt(got))
		}
	}
}

func line(lines []string, i int) string {
	if i >= len(lines) {
		return "(no such line)"
	}
	return quote(lines[i])
}
