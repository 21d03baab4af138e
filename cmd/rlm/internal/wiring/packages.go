package wiring

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/python/wheels"
)

// openPackages returns the packages of --with, or nil if there are none. They stay open until the
// process ends.
func openPackages(
	ctx context.Context, c *config.Loaded, note func(string, ...any),
) (fs.FS, error) {
	if len(c.With) == 0 {
		return nil, nil //nolint:nilnil // documented: none
	}
	options, remove, err := wheelOptions(c)
	if err != nil {
		return nil, err
	}
	defer remove() // the open files stay readable
	options.Progress = noteWriter(note)

	pins, err := wheels.Resolve(ctx, wheels.Target{
		Python: cpython.Manifest().Python, Help: adviser(c.With),
	}, c.With, options)
	if err != nil {
		return nil, fmt.Errorf("--with: %w", err)
	}
	tree, err := wheels.Open(pins)
	if err != nil {
		return nil, fmt.Errorf("--with: %w", err)
	}
	return tree, nil
}

// IndexURL returns the package index from the settings or pip's variable, or "" for PyPI.
func IndexURL(c *config.Loaded) string {
	return cmp.Or(c.IndexURL, os.Getenv("PIP_INDEX_URL"))
}

// wheelOptions returns the index of the packages, and the folder where they are kept until remove
// is called.
func wheelOptions(c *config.Loaded) (options wheels.Options, remove func(), err error) {
	options.Index = IndexURL(c)
	if c.CacheDir == "none" {
		dir, err := os.MkdirTemp("", "rlm-packages-")
		options.CacheDir = dir
		return options, func() { _ = os.RemoveAll(dir) }, err // the folder is temporary
	}

	dir := c.CacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return options, nil, fmt.Errorf("cannot keep packages: %w; name a folder with --cache-dir", err)
		}
		dir = filepath.Join(user, "rlm")
	}
	options.CacheDir = filepath.Join(dir, "packages")
	return options, func() {}, nil
}

// adviser returns a function that names a tier for a package that the wanted packages need and that
// is not pure Python.
func adviser(wanted []string) func(name string) string {
	return func(name string) string {
		recipe, err := images.Find(images.Python)
		module := strings.ReplaceAll(name, "-", "_")
		if err == nil && slices.Contains(recipe.Modules, module) {
			return "use tier docker, which has the package, and omit --with"
		}
		return fmt.Sprintf("tier docker runs it in an image: "+
			"rlm images build --name NAME --with '%s', then --image NAME", strings.Join(wanted, ","))
	}
}

// noteWriter writes each line as a note.
func noteWriter(note func(string, ...any)) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		note("%s", strings.TrimSpace(string(b)))
		return len(b), nil
	})
}

// writerFunc makes a function a writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
