// Package images defines the container images in which snippets run, and builds them.
//
// An image has a recipe: what to fetch, what to leave out, and a program that finishes it. The
// image's name contains the recipe's hash, so this program only ever uses an image that was made
// for it.
//
// The contents of the image python come from Debian's mirrors: a lock pins the version and the
// hash of each package. Those of the image go come from a Go module proxy. Neither needs an image
// registry, root, or a package's scripts. The image python has a shell and the usual small programs.
// Neither image has a program that changes its user.
//
// The lists of an image's modules are part of this package: the router knows them without asking
// any daemon.
package images

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sort"
	"strings"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// The code that decides the contents of an image is part of its recipe.
//
//go:embed python go contents.go layer.go
var recipes embed.FS

// The kinds of image.
const (
	Python = "python"
	Go     = "go"
)

// kinds lists all of them.
var kinds = []string{Python, Go}

// Recipe describes how one kind of image is made.
type Recipe struct {
	// Kind is one of the kinds.
	Kind string
	// Name is the image's reference.
	Name string
	// Hash covers everything that decides the contents of the image, except Options.Latest.
	Hash string
	// Program is the first process of a container, by its absolute path.
	Program string
	// Modules are the importable names in the image python.
	Modules []string

	packages  []string // Debian's names, of the image python
	programs  []string // what can be executed in the image python
	lock      string   // their locked versions; empty if unknown for this architecture
	toolchain string   // Go's version, "go1.26.8", of the image go
	sum       string   // the toolchain's, as in go.sum; empty if unknown for this architecture
}

// Find returns the recipe of a kind.
func Find(kind string) (Recipe, error) {
	r := Recipe{Kind: kind}
	var err error
	switch kind {
	case Python:
		err = r.readPython()
	case Go:
		err = r.readGo()
	default:
		err = fmt.Errorf("unknown image %q: use one of %s", kind, strings.Join(kinds, ", "))
	}
	if err != nil {
		return Recipe{}, err
	}

	if r.Hash, err = hashRecipe(kind); err != nil {
		return Recipe{}, err
	}
	r.Name = "rlm/" + kind + ":" + r.Hash[:12]
	return r, nil
}

// readPython reads the parts specific to the image python.
func (r *Recipe) readPython() (err error) {
	r.Program = "/usr/bin/python3"
	if r.packages, err = readWords("python/packages.txt"); err != nil {
		return err
	}
	if r.programs, err = readWords("python/programs.txt"); err != nil {
		return err
	}
	if r.Modules, err = readWords("python/modules.txt"); err != nil {
		return err
	}

	lock, err := recipes.ReadFile("python/packages." + runtime.GOARCH + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // such a machine can list images, and build from the latest packages
	}
	r.lock = string(lock)
	return err
}

// readGo reads the parts specific to the image go.
func (r *Recipe) readGo() error {
	r.Program = "/usr/lib/rlm/guest"
	words, err := readWords("go/toolchain.txt") // a version, then architectures and sums
	if err != nil {
		return err
	}
	r.toolchain = words[0]
	if at := slices.Index(words, runtime.GOARCH); at > 0 {
		r.sum = words[at+1]
	}
	return nil
}

// readWords reads the words of a recipe's file.
func readWords(name string) ([]string, error) {
	text, err := recipes.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(text)), nil
}

// hashRecipe returns a hash of a recipe's files and those that all recipes share.
func hashRecipe(kind string) (string, error) {
	parts, err := readRecipe(kind)
	if err != nil {
		return "", err
	}

	sum := sha256.New()
	fmt.Fprintf(sum, "user %d\n", dockerapi.User)
	for _, part := range parts {
		fmt.Fprintf(sum, "%s %d\n%s", part.name, len(part.text), part.text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// readRecipe returns the files that decide the contents of an image, sorted by name.
func readRecipe(kind string) ([]extra, error) {
	var parts []extra
	err := fs.WalkDir(recipes, ".", func(name string, entry fs.DirEntry, err error) error {
		folder, _, inFolder := strings.Cut(name, "/")
		if err != nil || entry.IsDir() || inFolder && folder != kind {
			return err
		}
		text, err := recipes.ReadFile(name)
		parts = append(parts, extra{name: name, text: string(text)})
		return err
	})
	if err != nil {
		return nil, err
	}

	if kind == Go {
		sources, err := goSources()
		if err != nil {
			return nil, err
		}
		parts = append(parts, sources...)
	}
	sort.Slice(parts, func(i, j int) bool { return parts[i].name < parts[j].name })
	return parts, nil
}
