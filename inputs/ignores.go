package inputs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rlmhq/rlm/internal/data/openfile"
)

// ignores contains the rules of a Git repository's .gitignore files. The zero value contains no
// rules.
type ignores struct {
	inGit bool
	above []string // the folders between the top of the repository and the opened one
	known map[string][]ignorePattern
	count int
}

// These limits apply to the bytes of a .gitignore file, and to the number of patterns in a
// repository.
const (
	maxIgnoreFile = 1 << 20
	maxPatterns   = 20_000
)

// open finds the repository of a folder, if it is in one, and reads the patterns above the folder.
// Patterns that match the folder itself do not apply, because the user explicitly opened the
// folder.
func (g *ignores) open(folder string) error {
	folder, err := absolute(folder)
	if err != nil {
		return err
	}
	top := findRepository(folder)
	if top == "" {
		return nil
	}

	g.inGit, g.known = true, map[string][]ignorePattern{}
	rest, err := filepath.Rel(top, folder)
	if err != nil {
		return err
	}
	if rest != "." {
		g.above = strings.Split(filepath.ToSlash(rest), "/")
	}

	patterns, err := g.readAbove(top)
	if err != nil {
		return err
	}
	if len(g.above) > 0 && isIgnored(patterns, path.Join(g.above...), true) {
		patterns = nil
	}
	g.known["."] = patterns
	return nil
}

// findRepository returns the nearest folder that contains .git, or an empty string if there is
// none.
func findRepository(folder string) string {
	for {
		if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return ""
		}
		folder = parent
	}
}

// readAbove reads the patterns of the repository and of the folders above the opened one.
func (g *ignores) readAbove(top string) (patterns []ignorePattern, err error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	if patterns, err = g.read(root, ".git/info/exclude", nil, nil); err != nil {
		return nil, err
	}

	for i := range g.above {
		domain := g.above[:i:i]
		name := path.Join(append(slices.Clone(domain), ".gitignore")...)
		if patterns, err = g.read(root, name, domain, patterns); err != nil {
			return nil, err
		}
	}
	return patterns, nil
}

// enter reads the patterns of a folder below the opened one.
func (g *ignores) enter(root *os.Root, dir string) error {
	if !g.inGit {
		return nil
	}
	domain := append(slices.Clone(g.above), split(dir)...)
	patterns, err := g.read(root, path.Join(dir, ".gitignore"), domain, g.patternsOf(dir))
	if err == nil && len(patterns) > 0 {
		g.known[dir] = patterns
	}
	return err
}

// patternsOf returns the patterns that apply in a folder.
func (g *ignores) patternsOf(dir string) []ignorePattern {
	for {
		if patterns, ok := g.known[dir]; ok || dir == "." {
			return patterns
		}
		dir = path.Dir(dir)
	}
}

// split returns the names of a path.
func split(dir string) []string {
	if dir == "." {
		return nil
	}
	return strings.Split(dir, "/")
}

// read adds the patterns of a file to those of the folders above it. A missing file, or a link out
// of the folder, adds no patterns.
func (g *ignores) read(
	root *os.Root, name string, domain []string, above []ignorePattern,
) ([]ignorePattern, error) {
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return above, nil
	}
	file, err := openfile.RegularIn(root, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	defer file.Close()

	data, err := io.ReadAll(io.LimitReader(file, maxIgnoreFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if len(data) > maxIgnoreFile {
		return nil, fmt.Errorf("%s is longer than %d bytes: pass --no-ignore", name, maxIgnoreFile)
	}

	patterns := slices.Clip(above)

	for line := range strings.Lines(strings.TrimPrefix(string(data), "\uFEFF")) {
		if pattern, ok := parseIgnore(line, strings.Join(domain, "/")); ok {
			patterns = append(patterns, pattern)
			g.count++
		}
	}
	if g.count > maxPatterns {
		return nil, errors.New("the repository has too many patterns in .gitignore: pass --no-ignore")
	}
	return patterns, nil
}

// match reports whether a file or a folder is ignored. The folders above it must not be ignored.
func (g *ignores) match(name string, isDir bool) bool {
	if !g.inGit {
		return false
	}
	if path.Base(name) == ".git" {
		return true
	}
	return isIgnored(g.patternsOf(path.Dir(name)), path.Join(append(slices.Clone(g.above), name)...), isDir)
}

// ignorePattern is a line of a .gitignore file.
type ignorePattern struct {
	glob      string // for doublestar
	domain    string // the folder of the file, with a slash; empty at the top
	isNegated bool
	forDirs   bool // for folders only
}

// parseIgnore parses a line. The result ok is false if the line has no pattern.
func parseIgnore(line, domain string) (p ignorePattern, ok bool) {
	line = trimSpaces(strings.TrimRight(line, "\r\n"))
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	line, p.isNegated = strings.CutPrefix(line, "!")
	line, p.forDirs = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}

	if !strings.Contains(line, "/") {
		line = "**/" + line
	}
	line = strings.TrimPrefix(line, "/")
	if strings.HasSuffix(line, "/**") {
		line += "/*" // the content of a folder, but not the folder
	}
	p.glob = strings.NewReplacer("{", `\{`, "}", `\}`, `\{`, `\{`, `\}`, `\}`).Replace(line)
	if domain != "" {
		p.domain = domain + "/"
	}
	return p, doublestar.ValidatePattern(p.glob)
}

// trimSpaces removes spaces at the end, but not one that follows a backslash.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		trimmed += " "
	}
	return trimmed
}

// isIgnored reports the result of the last pattern that matches a path in the repository.
func isIgnored(patterns []ignorePattern, name string, isDir bool) bool {
	for _, p := range slices.Backward(patterns) {
		rest, ok := strings.CutPrefix(name, p.domain)
		if ok && (isDir || !p.forDirs) && doublestar.MatchUnvalidated(p.glob, rest) {
			return !p.isNegated
		}
	}
	return false
}
