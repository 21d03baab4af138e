package inputs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/inputs"
)

// tree creates empty files, and files with content: the path, then the content after "=".
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		name, content, _ := strings.Cut(file, "=")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func namesOf(t *testing.T, o inputs.Options, paths ...string) []string {
	t.Helper()
	in, err := inputs.Open(t.Context(), o, paths...)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	return in.Dir.Names()
}

func TestFilesOfSecretsMustBeNamed(t *testing.T) {
	dir := tree(t, "a.txt=a", ".env=KEY=1", "d/.env.local=KEY=2", "d/.env.example=KEY=", "d/Server.PEM=x",
		"d/id_ed25519=x", "d/id_ed25519.pub=x", "env=x")
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	for _, row := range []struct {
		o       inputs.Options
		paths   []string
		want    string
		leftOut string
	}{
		{inputs.Options{}, []string{dir}, "a.txt d/.env.example d/id_ed25519.pub env", "left out: 4 files of secrets"},
		{inputs.Options{}, in("**"), "a.txt d/.env.example d/id_ed25519.pub env", "left out: 4 files of secrets"},
		{inputs.Options{}, in("*", ".env"), ".env a.txt env", "left out: 1 "},
		{inputs.Options{}, in("d", ".env"), ".env d/.env.example d/id_ed25519.pub", "left out: 3 files of secrets"},
		{inputs.Options{Include: []string{".env"}}, []string{dir}, ".env", ""},
		{inputs.Options{Include: []string{"d/.env.local"}}, []string{dir}, "d/.env.local", ""},
		{inputs.Options{Include: []string{"*env*"}}, []string{dir}, "d/.env.example env", "2 files of secrets"},
	} {
		t.Run(fmt.Sprint(row.o.Include, row.paths), func(t *testing.T) {
			input, err := inputs.Open(t.Context(), row.o, row.paths...)
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			if got := strings.Join(input.Dir.Names(), " "); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
			if notes := strings.Join(input.Notes, "\n"); !strings.Contains(notes, row.leftOut) {
				t.Errorf("the notes are %s", notes)
			}
		})
	}

	alone, err := inputs.Open(t.Context(), inputs.Options{}, filepath.Join(dir, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	if alone.Text == nil {
		t.Error("a named file is not read")
	}
	_, err = inputs.Open(t.Context(), inputs.Options{}, filepath.Join(dir, "d", "*.PEM"))
	if err == nil || !strings.Contains(err.Error(), "file of secrets") {
		t.Errorf("a pattern that matches only secrets: %v", err)
	}
}

func TestPatternsChooseFiles(t *testing.T) {
	dir := tree(t, "a.go", "b.md", "d/a.go", "d/c.txt", "d/e/f.go", "vendor/x.go")
	for want, o := range map[string]inputs.Options{
		"a.go b.md d/a.go d/c.txt d/e/f.go vendor/x.go": {},
		"a.go d/a.go d/e/f.go":                          {Include: []string{"*.go"}, Exclude: []string{"vendor"}},
		"d/a.go d/c.txt d/e/f.go":                       {Include: []string{"d"}},
		"d/e/f.go":                                      {Include: []string{"d/*/*"}},
		"a.go d/a.go":                                   {Include: []string{"**/a.go"}},
		"b.md d/c.txt":                                  {Include: []string{"*.{md,txt}"}},
		"b.md":                                          {Exclude: []string{"*.go", "d/**"}},
	} {
		t.Run(want, func(t *testing.T) {
			if got := strings.Join(namesOf(t, o, dir), " "); got != want {
				t.Errorf("%+v: %s, want %s", o, got, want)
			}
		})
	}
}

func TestSeveralPathsAreOneFolder(t *testing.T) {
	dir := tree(t, "a/x.log", "a/y.txt", "b/x.log", "b/c/z.log")
	at := func(path string) string { return filepath.Join(dir, path) }
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{at("a/*.log")}, "x.log"},
		{[]string{at("*/x.log")}, "a/x.log b/x.log"},
		{[]string{at("**/*.log")}, "a/x.log b/c/z.log b/x.log"},
		{[]string{at("a/x.log"), at("b")}, "a/x.log b/c/z.log b/x.log"},
		{[]string{at("a/x.log"), at("a/y.txt"), at("a/x.log")}, "x.log y.txt"},
	} {
		if got := strings.Join(namesOf(t, inputs.Options{}, c.paths...), " "); got != c.want {
			t.Errorf("%q: %s, want %s", c.paths, got, c.want)
		}
	}
}

// The patterns must have the same meaning as in git, which the test runs for comparison.
func TestIgnoredFilesAreThoseOfGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	files := []string{
		"a.log", "keep.log", "b.txt", "build/out", "src/build", "src/deep/a.log", "docs/x.md", "docs/sub/x.md",
		"tmp/a/b/c", "foo/bar/baz", "x/foo/bar", "brace{1}", "sp ace ", "#hash", "!bang", "q1.c", "q12.c", "n/m/o",
		"src/only/kept.md", "src/only/gone.txt", "a/z/b", "a/b", "a/y/z/b", "UPPER.LOG", "class1", "classx",
	}
	patterns := "*.log\n!keep.log\nbuild/\n/docs/*.md\ntmp/**\nfoo/bar\nbrace{1}\nsp\\ ace\\ \n\\#hash\n\\!bang\n" +
		"q?.c\n\n# comment\n**/n/m\na/**/b\nclass[0-9]   \n[\r\n"
	dir := tree(t, slices.Concat(files, []string{
		".gitignore=" + patterns, "src/only/.gitignore=*\n!*.md\n!.gitignore\n", "src/.gitignore=/deep\n",
	})...)
	git := func(args ...string) ([]byte, error) {
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		return command.Output()
	}
	if out, err := git("init", "-q"); err != nil {
		t.Fatal(err, out)
	}
	for _, at := range []string{".", "src", "src/only"} {
		t.Run(at, func(t *testing.T) {
			out, err := git("ls-files", "-z", "--others", "--exclude-standard", at)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			got := namesOf(t, inputs.Options{}, filepath.Join(dir, at))
			for i := range got {
				got[i] = filepath.ToSlash(filepath.Join(at, got[i]))
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("in %s:\n%q, git says\n%q", at, got, want)
			}
		})
	}

	// The user explicitly opens an ignored folder.
	if got := namesOf(t, inputs.Options{}, filepath.Join(dir, "build")); !slices.Equal(got, []string{"out"}) {
		t.Errorf("%q", got)
	}
}

func TestPipesAreCopied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", path).CombinedOutput(); err != nil {
		t.Skip(err, out)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(path, []byte("from a pipe"), 0o600) }()
	in, err := inputs.Open(t.Context(), inputs.Options{}, path)
	if err := errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got := contentOf(t, in.Text); got != "from a pipe" {
		t.Errorf("%q", got)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := inputs.Open(ctx, inputs.Options{}, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a writer: %v", err)
	}
}

func TestFilesOfTheKernelAreRead(t *testing.T) {
	const path = "/proc/self/status"
	if info, err := os.Stat(path); err != nil || info.Size() > 0 {
		t.Skip("the system has no such file")
	}
	in, err := inputs.Open(t.Context(), inputs.Options{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got := contentOf(t, in.Text); !strings.HasPrefix(got, "Name:") {
		t.Errorf("%q", got)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	dir := tree(t, "a")
	for want, o := range map[string]inputs.Options{
		`pattern "[a"`:         {Include: []string{"[a"}},
		`pattern ""`:           {Exclude: []string{""}},
		"cannot be negative":   {MaxRatio: -1},
		`unknown encoding "x"`: {Encoding: "x"},
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := inputs.Open(t.Context(), o, dir); err == nil || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}
