package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/local"
)

// TestPagesShowWhatCommandsPrint runs every console block of README.md and docs/, each page in its
// own folder. The folder is a copy of examples/PAGE, if that exists, with a link to the folder
// examples. A block that cannot run here, for example with a paid model, is marked sh or text
// instead.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	skip.UnderRace(t)
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	needCache(t)

	for _, page := range listPages(t) {
		examples := examplesOf(t, page)
		if len(examples) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			dir := folderOf(t, page)
			for _, e := range examples {
				t.Run(e.command, func(t *testing.T) {
					needTiersOf(t, e.command)
					printsAsShown(t, shell, dir, e)
				})
			}
		})
	}
}

// listPages returns README.md and the pages of docs that people have written.
func listPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	err := fs.WalkDir(os.DirFS(top), "docs", func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == "docs/generated":
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// top is the folder of the repository.
var top = filepath.Join("..", "..")

// example is a command of a console block, with its output.
type example struct{ command, output string }

// examplesOf returns the examples of a page. A command may have several lines; all except the last
// end with a backslash.
func examplesOf(t *testing.T, page string) []example {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}

	var found []example
	for i, block := range strings.Split(string(text), "```console\n") {
		if i == 0 {
			continue
		}
		block, _, isClosed := strings.Cut(block, "```")
		if !isClosed {
			t.Fatalf("%s has a console block without an end", page)
		}
		for j, part := range strings.Split("\n"+block, "\n$ ") {
			if j == 0 {
				continue
			}
			command, output, _ := strings.Cut(part, "\n")
			for strings.HasSuffix(command, "\\") {
				next, rest, _ := strings.Cut(output, "\n")
				command, output = command+"\n"+next, rest
			}
			found = append(found, example{command, output})
		}
	}
	return found
}

// folderOf makes the folder in which the examples of a page run.
func folderOf(t *testing.T, page string) string {
	t.Helper()
	dir := t.TempDir()
	examples, err := filepath.Abs(filepath.Join(top, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(examples, strings.TrimSuffix(filepath.Base(page), ".md"))
	if err := os.CopyFS(dir, os.DirFS(own)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// needTiersOf skips an example if it needs a tier that this machine lacks.
func needTiersOf(t *testing.T, command string) {
	t.Helper()
	if strings.Contains(command, "--allow-local") {
		skip.WithoutTier(t, "local", local.New(local.Options{Python: "/usr/bin/python3"}).Probe(t.Context()))
	}
	if strings.Contains(command, "--tier docker") {
		tier := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST")})
		defer tier.Close()
		skip.WithoutTier(t, "docker", tier.Probe(t.Context()))
	}
	if strings.HasPrefix(command, "rlm reflect ") || strings.HasPrefix(command, "rlm distill ") {
		skip.WithoutJail(t) // templates run in jails
	}
}

// elapsed matches a time in the output. progress matches a line that only a slow start prints.
var (
	elapsed  = regexp.MustCompile(`\bin \d[\d.]*(µs|ms|s)\b`)
	progress = regexp.MustCompile(`(?m)^rlm: (preparing .*|converting .*: \d+s)\n`)
)

// printsAsShown runs an example. Times may differ, and "..." matches the rest of a line, or any
// number of lines if it is on its own line.
func printsAsShown(t *testing.T, shell, dir string, e example) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), shell, "-c", e.command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RLM_PYTHON=/usr/bin/python3") // notes would name another interpreter
	out, _ := cmd.CombinedOutput()                                // pages also show errors

	out = progress.ReplaceAll(out, nil)
	got := strings.TrimRight(elapsed.ReplaceAllString(string(out), "in T"), "\n")
	shown := strings.TrimRight(elapsed.ReplaceAllString(e.output, "in T"), "\n")
	var pattern strings.Builder
	for i, line := range strings.Split(shown, "\n") {
		switch {
		case line == "...":
			pattern.WriteString(`(\n.*)*`)
			continue
		case i > 0:
			pattern.WriteString(`\n`)
		}
		begin, isCut := strings.CutSuffix(line, "...")
		pattern.WriteString(regexp.QuoteMeta(begin))
		if isCut {
			pattern.WriteString(`.*`)
		}
	}
	// If the expected output begins with "...", the actual output has no line break before it.
	if !regexp.MustCompile(`\A\n?` + pattern.String() + `\z`).MatchString("\n" + got) {
		t.Errorf("%s\nprints\n%s\nthe page shows\n%s", e.command, got, shown)
	}
}
