// Package images knows the container images that snippets run in, and makes them.
//
// An image is a recipe: what is fetched, what is left out of it, and a program that
// finishes it. Its name holds the recipe's hash, so that a program only ever uses an
// image that was made for it. What is in python comes from Debian's mirrors, by apt
// in a folder of its own, what is in go from a Go module proxy; no registry of
// images, no root and no script of a package is needed. What is left has no shell
// and no program that changes its user.
//
// The modules that an image has are part of this package: the router knows them
// before any daemon has been asked.
package images

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sort"
	"strings"

	"github.com/rlmhq/rlm/internal/dockerapi"
)

// The code that decides what is in an image is part of its recipe.
//
//go:embed fetch.sh python go contents.go layer.go
var recipes embed.FS

// Label is on every image of this project; its value is the image's kind.
const Label = "rlm.image"

// RecipeLabel holds the hash of the recipe, VersionLabel the version of what runs
// in the image.
const (
	RecipeLabel  = "rlm.recipe"
	VersionLabel = "rlm.version"
)

// The kinds of image.
const (
	Python = "python"
	Go     = "go"
)

// Recipe is how one kind of image is made.
type Recipe struct {
	// Kind is one of the kinds.
	Kind string
	// Packages are Debian's names, of python.
	Packages []string
	// Modules are the names that can be imported, in python.
	Modules []string
	// Toolchain is the version of Go's toolchain, "go1.26.8", and Sum its sum as go.sum
	// has it, empty if it is not known for this architecture. Both are of go.
	Toolchain, Sum string
	// Hash is of all that decides what is in the image but Debian's own updates.
	Hash string
}

// Name is the image's reference.
func (r Recipe) Name() string { return "rlm/" + r.Kind + ":" + r.Hash[:12] }

// Kinds are the kinds of image that there are.
func Kinds() []string { return []string{Python, Go} }

// Find returns the recipe of a kind.
func Find(kind string) (Recipe, error) {
	r := Recipe{Kind: kind}
	var err error
	switch kind {
	case Python:
		if r.Packages, err = lines("python/packages.txt"); err != nil {
			return Recipe{}, err
		}
		if r.Modules, err = lines("python/modules.txt"); err != nil {
			return Recipe{}, err
		}
	case Go:
		words, err := lines("go/toolchain.txt") // a version, then architectures and sums
		if err != nil {
			return Recipe{}, err
		}
		r.Toolchain = words[0]
		if at := slices.Index(words, runtime.GOARCH); at > 0 {
			r.Sum = words[at+1]
		}
	default:
		return Recipe{}, fmt.Errorf("there is no image %q, only %s", kind, strings.Join(Kinds(), ", "))
	}
	r.Hash, err = hash(kind)
	return r, err
}

func lines(name string) ([]string, error) {
	text, err := recipes.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(text)), nil
}

// hash covers the files of a recipe and those that all have in common.
func hash(kind string) (string, error) {
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
	if err == nil && kind == Go {
		var sources []extra
		sources, err = goSources()
		parts = append(parts, sources...)
	}
	if err != nil {
		return "", err
	}
	sort.Slice(parts, func(i, j int) bool { return parts[i].name < parts[j].name })
	sum := sha256.New()
	fmt.Fprintf(sum, "user %d\n", dockerapi.User)
	for _, part := range parts {
		fmt.Fprintf(sum, "%s %d\n%s", part.name, len(part.text), part.text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
