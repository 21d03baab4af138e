package inputs

import (
	"os"
	"path"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// choice selects the files of one folder.
type choice struct {
	*reader
	ignores ignores
}

// Notes give these reasons for leaving files out.
const (
	byInclude = "files by --include"
	byExclude = "files and folders by --exclude"
	byIgnore  = "files and folders by .gitignore (--no-ignore reads them)"
)

func (c *choice) enter(root *os.Root, dir string) error {
	return c.ignores.enter(root, dir)
}

// skip returns the reason why a file or a folder is left out.
func (c *choice) skip(name string, isDir bool) string {
	if reason := c.skipPattern(name, isDir); reason != "" {
		return reason
	}
	if c.ignores.match(name, isDir) {
		return byIgnore
	}
	return ""
}

// skipPattern is like skip, but considers only the patterns of the options. A folder is entered if
// a file in it may be included.
func (r *reader) skipPattern(name string, isDir bool) string {
	switch {
	case matchesAny(r.Exclude, name):
		return byExclude
	case !isDir && len(r.Include) > 0 && !matchesAbove(r.Include, name):
		return byInclude
	case !isDir && bigtext.IsSecret(name) && !r.isNamed(name):
		return bigtext.Secrets
	}
	return ""
}

// isNamed reports whether an option names a file without wildcards.
func (r *reader) isNamed(name string) bool {
	return slices.Contains(r.Include, name) || slices.Contains(r.Include, path.Base(name))
}

// matchesAny reports whether a pattern matches a path or its last element.
func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		subject := name
		if path.Base(pattern) == pattern {
			subject = path.Base(name)
		}
		if doublestar.MatchUnvalidated(pattern, subject) {
			return true
		}
	}
	return false
}

// matchesAbove reports whether a pattern matches a path or one of its folders.
func matchesAbove(patterns []string, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if matchesAny(patterns, name) {
			return true
		}
	}
	return false
}
