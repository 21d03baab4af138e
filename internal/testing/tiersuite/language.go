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

// listCases returns the names of the scripts in a folder, without extension.
func listCases(t *testing.T, dir string) []string {
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

func readFixture(t *testing.T, name string) string {
	t.Helper()
	b, err := testdata.ReadFile(name)
	if err != nil {
		t.Fatalf("cannot read a fixture: %v (write the golden files with -update)", err)
	}
	return string(b)
}

// testLanguage runs each script of testdata/lang as a session's first snippet, or as the script
// specifies.
func (s *suite) testLanguage(t *testing.T) {
	skip.UnderRace(t)
	// The scripts print more than the default limit, which is meant for models.
	cfg := func() tiers.Config { return tiers.Config{Limits: tiers.Limits{Output: 10 << 20}} }
	names := listCases(t, langDir)
	read := func(i int) (source, stdout string) {
		return readFixture(t, langDir+"/"+names[i]+".py"), readFixture(t, langDir+"/"+names[i]+".stdout")
	}

	try := func(box *session, i int) bool {
		source, want := read(i)
		r, err := box.box.Run(t.Context(), tiers.Job{Source: source})
		return err == nil && r.Status == tiers.StatusOK && r.Lost == nil && r.Stdout == want
	}
	s.testEach(t, cfg, names, try, func(t *testing.T, i int) {
		if !s.info.Has(tiers.FeatureAsync) && strings.HasPrefix(names[i], "async_") {
			t.Skipf("tier %s has no feature %q", s.info.Name, tiers.FeatureAsync)
		}
		source, want := read(i)
		compare(t, "stdout", s.open(t, cfg()).mustRun(t, source).Stdout, want)
	})
}

// testTracebacks runs each script of testdata/raise and compares CPython's stderr with the
// snippet's stderr and traceback.
func (s *suite) testTracebacks(t *testing.T) {
	skip.UnderRace(t)
	names := listCases(t, raiseDir)
	read := func(i int) (source, stdout, stderr string) {
		name := raiseDir + "/" + names[i]
		return readFixture(t, name+".py"), readFixture(t, name+".stdout"), readFixture(t, name+".stderr")
	}

	try := func(box *session, i int) bool {
		source, stdout, stderr := read(i)
		r, err := box.box.Run(t.Context(), tiers.Job{Source: source})
		if err != nil || r.Lost != nil || r.Stdout != stdout || describeWrongEnding(names[i], r) != "" {
			return false
		}
		return hideDepth(snippets.ReplaceAllString(r.Stderr+r.Exception.Traceback, "<snippet 1>")) == stderr
	}

	s.testEach(t, emptyConfig, names, try, func(t *testing.T, i int) {
		source, stdout, stderr := read(i)
		box := s.open(t, emptyConfig())
		r := box.run(t, source)
		if problem := describeWrongEnding(names[i], r); problem != "" {
			t.Fatalf("%s\n%s", problem, describe(r))
		}

		compare(t, "traceback", hideDepth(r.Stderr+r.Exception.Traceback), stderr)
		compare(t, "stdout", r.Stdout, stdout)
		box.checkAlive(t)
	})
}

// snippets matches the names of snippets in tracebacks.
var snippets = regexp.MustCompile(`<snippet \d+>`)

// exitCodes are the codes of the scripts that exit instead of raising an exception.
var exitCodes = map[string]int{"exit_message": 1, "exit_code": 3, "exit_none": 0, "exit_object": 1}

// describeWrongEnding describes what is wrong with the ending of a script, or returns an empty
// string.
func describeWrongEnding(name string, r tiers.Result) string {
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

// hideDepth hides the depth of a recursion, because a tier's own frames use up a part of the depth.
// It also removes the final newline of a traceback.
func hideDepth(s string) string {
	s = repeats.ReplaceAllString(s, "Previous line repeated N more times")
	return strings.TrimSuffix(s, "\n")
}

// compare fails the test at the first line in which two strings differ.
func compare(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := 0; i < len(g) || i < len(w); i++ {
		a, b := quoteLine(g, i), quoteLine(w, i)
		if a != b {
			t.Fatalf(`%s differs from CPython's in line %d:
 got %s
want %s

whole %s:
%s`, what, i+1, a, b, what, excerpt(got))
		}
	}
}

func quoteLine(lines []string, i int) string {
	if i >= len(lines) {
		return "(no such line)"
	}
	return quote(lines[i])
}
