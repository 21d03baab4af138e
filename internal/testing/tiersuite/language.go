package tiersuite

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
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

// language runs each script of testdata/lang as a session's first snippet, or as each
// says.
func (s *suite) language(t *testing.T) {
	skip.UnderRace(t)
	// The scripts print more than a model should read.
	cfg := func() tiers.Config { return tiers.Config{Limits: tiers.Limits{Output: 10 << 20}} }
	names := cases(t, langDir)
	script := func(i int) (source, stdout string) {
		return fixture(t, langDir+"/"+names[i]+".py"), fixture(t, langDir+"/"+names[i]+".stdout")
	}

	try := func(box *session, i int) bool {
		source, want := script(i)
		r, err := box.box.Run(t.Context(), tiers.Job{Source: source})
		return err == nil && r.Status == tiers.StatusOK && r.Lost == nil && r.Stdout == want
	}
	s.each(t, cfg, names, try, func(t *testing.T, i int) {
		if !s.info.Has(tiers.FeatureAsync) && strings.HasPrefix(names[i], "async_") {
			t.Skipf("tier %s has no feature %q", s.info.Name, tiers.FeatureAsync)
		}
		source, want := script(i)
		compare(t, "stdout", s.open(t, cfg()).ok(t, source).Stdout, want)
	})
}

// tracebacks runs each script of testdata/raise and compares what CPython would
// have written to stderr with the snippet's stderr and the traceback.
func (s *suite) tracebacks(t *testing.T) {
	skip.UnderRace(t)
	names := cases(t, raiseDir)
	script := func(i int) (source, stdout, stderr string) {
		name := raiseDir + "/" + names[i]
		return fixture(t, name+".py"), fixture(t, name+".stdout"), fixture(t, name+".stderr")
	}

	try := func(box *session, i int) bool {
		source, stdout, stderr := script(i)
		r, err := box.box.Run(t.Context(), tiers.Job{Source: source})
		if err != nil || r.Lost != nil || r.Stdout != stdout || wrongEnding(names[i], r) != "" {
			return false
		}
		return anyDepth(snippets.ReplaceAllString(r.Stderr+r.Exception.Traceback, "<snippet 1>")) == stderr
	}

	s.each(t, bare, names, try, func(t *testing.T, i int) {
		source, stdout, stderr := script(i)
		box := s.open(t, bare())
		r := box.run(t, source)
		if problem := wrongEnding(names[i], r); problem != "" {
			t.Fatalf("%s\n%s", problem, describe(r))
		}

		compare(t, "traceback", anyDepth(r.Stderr+r.Exception.Traceback), stderr)
		compare(t, "stdout", r.Stdout, stdout)
		box.alive(t)
	})
}

// snippets are the names of snippets in tracebacks.
var snippets = regexp.MustCompile(`<snippet \d+>`)

// exitCodes are the codes of the scripts that exit instead of raising.
var exitCodes = map[string]int{"exit_message": 1, "exit_code": 3, "exit_none": 0, "exit_object": 1}

// wrongEnding says what is wrong with the ending of a script, empty if nothing is.
func wrongEnding(name string, r tiers.Result) string {
	code, exits := exitCodes[name]
	want := tiers.StatusRaised
	if exits {
		want = tiers.StatusExited
	}
	switch {
	case r.Status != want || r.Exception == nil:
		return fmt.Sprintf("status %q, want %q", r.Status, want)
	case exits && r.Exception.ExitCode != code:
		return fmt.Sprintf("exit code %d, want %d", r.Exception.ExitCode, code)
	case exits != (r.Exception.Type == "SystemExit"):
		return fmt.Sprintf("exception %s with status %s", r.Exception.Type, r.Status)
	}

	return ""
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
			t.Fatalf(`%s differs from CPython's in line %d:
 got %s
want %s

whole %s:
%s`, what, i+1, a, b, what, excerpt(got))
		}
	}
}

func line(lines []string, i int) string {
	if i >= len(lines) {
		return "(no such line)"
	}
	return quote(lines[i])
}
