package inputs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
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

// findPaths returns the deepest folder that contains all the paths, and the paths relative to it.
// A pattern stands for the files that match it.
func findPaths(ctx context.Context, paths []string) (base string, names []string, err error) {
	var all, bases []string

	for _, path := range paths {
		found, folder, err := findPath(ctx, path)
		if err != nil {
			return "", nil, err
		}
		all, bases = append(all, found...), append(bases, folder)
		if len(all) > mostMatches {
			return "", nil, fmt.Errorf("the patterns match more than %d files: pass their folder", mostMatches)
		}
	}

	base = bases[0]

	for _, folder := range bases[1:] {
		for !isBelow(folder, base) {
			base = filepath.Dir(base)
		}
	}

	for _, path := range all {
		name, err := filepath.Rel(base, path)
		if err != nil {
			return "", nil, err
		}
		names = append(names, filepath.ToSlash(name))
	}
	return base, names, nil
}

// isBelow reports whether path is the folder, or in it.
func isBelow(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// findPath returns the absolute paths for a path or pattern, and the folder from which their names
// start.
func findPath(ctx context.Context, path string) (found []string, folder string, err error) {
	if isPattern(path) {
		return matchFiles(ctx, path)
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

// matchFiles returns the files that match a pattern. Links are not followed.
func matchFiles(ctx context.Context, pattern string) (found []string, folder string, err error) {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	folder, err = absolute(filepath.FromSlash(base))
	if err != nil {
		return nil, "", fmt.Errorf("cannot look for %q: %w", pattern, err)
	}

	err = doublestar.GlobWalk(os.DirFS(folder), rest, func(name string, entry os.DirEntry) error {
		if !entry.Type().IsRegular() {
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
	case len(found) == 0:
		return nil, "", fmt.Errorf("no file matches %q", pattern)
	}
	return found, folder, nil
}
