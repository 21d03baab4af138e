// Package images knows the container images that snippets run in, and makes them.
//
// An image is a recipe: Debian packages, what is left out of them, and a script
// that finishes it. Its name holds the recipe's hash, so that a program only ever
// uses an image that was made for it. The packages come from Debian's mirrors, by
// apt in a folder of its own; no registry, no root and no script of a package is
// needed. What is left has no shell and no program that changes its user.
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
	"sort"
	"strings"

	"github.com/rlmhq/rlm/internal/daemon"
)

// The code that decides what is in an image is part of its recipe.
//
//go:embed fetch.sh python contents.go layer.go
var recipes embed.FS

// Label is on every image of this project; its value is the image's kind.
const Label = "rlm.image"

// RecipeLabel holds the hash of the recipe, VersionLabel the version of what runs
// in the image.
const (
	RecipeLabel  = "rlm.recipe"
	VersionLabel = "rlm.version"
)

// Recipe is how one kind of image is made.
type Recipe struct {
	// Kind is "python".
	Kind string
	// Packages are Debian's names.
	Packages []string
	// Modules are the names that can be imported.
	Modules []string
	// Hash is of all that decides what is in the image but Debian's own updates.
	Hash string
}

// Name is the image's reference.
func (r Recipe) Name() string { return "rlm/" + r.Kind + ":" + r.Hash[:12] }

// Kinds are the kinds of image that there are.
func Kinds() []string { return []string{"python"} }

// Find returns the recipe of a kind.
func Find(kind string) (Recipe, error) {
	r := Recipe{Kind: kind}
	var err error
	if r.Packages, err = lines(kind + "/packages.txt"); err != nil {
		return Recipe{}, fmt.Errorf("there is no image %q, only %s", kind, strings.Join(Kinds(), ", "))
	}
	if r.Modules, err = lines(kind + "/modules.txt"); err != nil {
		return Recipe{}, err
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
	var names []string
	err := fs.WalkDir(recipes, ".", func(name string, entry fs.DirEntry, err error) error {
		folder, _, inFolder := strings.Cut(name, "/")
		if err == nil && !entry.IsDir() && (!inFolder || folder == kind) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	sort.Strings(names)
	sum := sha256.New()
	fmt.Fprintf(sum, "user %d\n", daemon.User)
	for _, name := range names {
		text, err := recipes.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
