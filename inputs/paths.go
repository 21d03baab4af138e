package inputs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// mostMatches is the maximum number of files that patterns may match.
const mostMatches = 100_000

// isPattern reports whether a path is a pattern. A file with exactly that name takes precedence.
func isPattern(path string) bool {
	if !strings.ContainsAny(path, "*?[{") {
		return false
	}
	_, err := os.Lstat(path)
	return err != nil
}

// foundPaths contains files and folders.
type foundPaths struct {
	base    string         // the deepest folder that contains all of them
	names   []string       // relative to base, with slashes
	leftOut map[string]int // matches of patterns, by the reason
}

// findPaths finds the files and folders at the paths. A pattern stands for the files that match it.
func (r *reader) findPaths(ctx context.Context, paths []string) (f foundPaths, err error) {
	var all, bases []string
	f.leftOut = map[string]int{}

	for _, path := range paths {
		found, folder, err := r.findPath(ctx, path, f.leftOut)
		if err != nil {
			return f, err
		}
		all, bases = append(all, found...), append(bases, folder)
		if len(all) > mostMatches {
			return f, fmt.Errorf("the patterns match more than %d files: pass their folder", mostMatches)
		}
	}

	base := bases[0]

	for _, folder := range bases[1:] {
		for !isBelow(folder, base) {
			base = filepath.Dir(base)
		}
	}

	for _, path := range all {
		name, err := filepath.Rel(base, path)
		if err != nil {
			return f, err
		}
		f.names = append(f.names, filepath.ToSlash(name))
	}
	f.base = base
	return f, nil
}

// isBelow reports whether path is the folder itself, or in it.
func isBelow(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// findPath returns the absolute paths for a path or pattern, and the folder to which their names
// are relative.
func (r *reader) findPath(
	ctx context.Context, path string, leftOut map[string]int,
) (found []string, folder string, err error) {
	if isPattern(path) {
		return r.matchFiles(ctx, path, leftOut)
	}

	whole, err := absolute(path)
	if err != nil {
		return nil, "", err
	}
	info, err := os.Stat(whole)

	switch {
	case err != nil:
		return nil, "", err
	case info.IsDir():
		return []string{whole}, whole, nil
	case !info.Mode().IsRegular():
		return nil, "", fmt.Errorf("%q is neither a file nor a folder: pass it as a separate context", path)
	}
	return []string{whole}, filepath.Dir(whole), nil
}

// matchFiles returns the files that match a pattern, except files of secrets. Links are not
// followed.
func (r *reader) matchFiles(
	ctx context.Context, pattern string, leftOut map[string]int,
) (found []string, folder string, err error) {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	folder, err = absolute(filepath.FromSlash(base))
	if err != nil {
		return nil, "", fmt.Errorf("cannot look for %q: %w", pattern, err)
	}

	secrets := 0
	err = doublestar.GlobWalk(os.DirFS(folder), rest, func(name string, entry os.DirEntry) error {
		if !entry.Type().IsRegular() {
			return ctx.Err()
		}
		if bigtext.IsSecret(name) && !r.isNamed(name) {
			secrets++
			return ctx.Err()
		}
		if found = append(found, filepath.Join(folder, filepath.FromSlash(name))); len(found) > mostMatches {
			return errors.New("it matches too many files: pass their folder")
		}
		return ctx.Err()
	}, doublestar.WithNoFollow())

	switch {
	case err != nil:
		return nil, "", fmt.Errorf("cannot look for %q: %w", pattern, err)
	case len(found) == 0 && secrets > 0:
		return nil, "", fmt.Errorf("no file matches %q; %s", pattern,
			describeLeftOut(map[string]int{bigtext.Secrets: secrets})[0])
	case len(found) == 0:
		return nil, "", fmt.Errorf("no file matches %q", pattern)
	}
	if secrets > 0 {
		leftOut[bigtext.Secrets] += secrets
	}
	return found, folder, nil
}
