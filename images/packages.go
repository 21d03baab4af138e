package images

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/data/pyfolder"
	"github.com/rlmhq/rlm/internal/python/wheels"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// An image with additional packages is the image python, with their files in a separate folder. No
// program of the build imports them.

//go:embed packages
var packageScripts embed.FS

// lockFile is the path of their lock in an image.
const lockFile = "usr/share/rlm/packages.lock"

// extendIn is the maximum duration of a build with additional packages, including downloads.
const extendIn = time.Hour

// glibc is the minor version of glibc 2 in Debian trixie.
const glibc = 41

// maxDefaultName is the maximum length of an image name derived from its packages.
const maxDefaultName = 40

// plainName matches names that a label can contain. Others can be imported, but the router does
// not know them.
var plainName = lazyregexp.New(`^[A-Za-z0-9_]+$`)

var validName = lazyregexp.New(`^[a-z0-9]+(?:[._-][a-z0-9]+)*$`)

// Extended returns the reference of the named image python with additional packages. The error
// describes valid names.
func (r Recipe) Extended(name string) (string, error) {
	if len(name) > 60 || !validName.MatchString(name) {
		return "", fmt.Errorf("cannot name an image %q: use at most 60 lower case letters and digits, "+
			"with single . _ - between them", name)
	}
	return fmt.Sprintf("rlm/%s-%s:%s", r.Kind, name, r.Hash[:12]), nil
}

var packageName = lazyregexp.New(`^[A-Za-z0-9._-]*`)

// nameOf returns the name in a requirement such as NAME==VERSION.
func nameOf(text string) string {
	return wheels.Normalise(packageName.FindString(strings.TrimSpace(text)))
}

// nameFor returns the name of an image with these packages.
func nameFor(with []string) string {
	var names []string
	for _, text := range with {
		names = append(names, nameOf(text))
	}

	whole := strings.Join(names, "-")
	if len(whole) <= maxDefaultName {
		return whole
	}
	sum := sha256.Sum256([]byte(whole))
	return fmt.Sprintf("%s-%x", strings.TrimRight(whole[:maxDefaultName-9], "-"), sum[:4])
}

// name makes this a build of an image python with additional packages.
func (b *imageBuild) name() (err error) {
	if b.recipe.Kind != Python {
		return fmt.Errorf("cannot add Python packages to the image %s", b.recipe.Kind)
	}
	name := b.options.Name
	if name == "" {
		name = nameFor(b.options.With)
	}
	b.base = b.recipe.Name
	b.recipe.Name, err = b.recipe.Extended(name)
	return err
}

// wanted returns the requested packages in the format of a label.
func (b *imageBuild) wanted() string {
	var list []string
	for _, text := range b.options.With {
		list = append(list, strings.Join(strings.Fields(text), ""))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// checkWanted refuses an existing image that was built with other packages.
func (b *imageBuild) checkWanted(with string) error {
	if wanted := b.wanted(); with != wanted {
		return fmt.Errorf("the image %s exists already, with %q and not %q: "+
			"pass --again to replace it, or another --name", b.recipe.Name, with, wanted)
	}
	return nil
}

// buildBase builds the image python if the daemon does not have it.
func (b *imageBuild) buildBase(ctx context.Context) error {
	plain := b.options
	plain.With, plain.Again, plain.Latest = nil, false, false
	recipe, err := Find(Python)
	if err == nil {
		_, err = Build(ctx, recipe, plain)
	}
	return err
}

// extend makes the image from the image python and the packages. It needs no other container: the
// container that reports the contents of the image python also receives the packages.
func (b *imageBuild) extend(ctx context.Context, facts dockerapi.Facts) (built Image, err error) {
	if err := b.buildBase(ctx); err != nil {
		return Image{}, err
	}
	script, err := packageScripts.ReadFile("packages/install.py")
	if err != nil {
		return Image{}, err
	}

	spec := b.buildSpec(b.base, facts)
	spec.Command = []string{"/usr/bin/python3", "-I", "-c", string(script)}
	spec.Env = []string{"LANG=C.UTF-8", "PYTHONHASHSEED=0"}

	ctx, cancel := context.WithTimeout(ctx, extendIn)
	defer cancel()
	box, err := b.docker.Start(ctx, spec, func(said []byte) { _, _ = b.options.Progress.Write(said) })
	if err != nil {
		return Image{}, err
	}
	defer func() { err = errors.Join(err, box.End(context.WithoutCancel(ctx))) }()

	version, err := b.install(ctx, box)
	if err != nil {
		return Image{}, err
	}
	id, err := b.importFinished(ctx, box, version)
	return b.describe(id, version), err
}

// install resolves the packages and puts them into a container of the image python. It returns the
// version of Python.
func (b *imageBuild) install(ctx context.Context, box *dockerapi.Container) (string, error) {
	defer context.AfterFunc(ctx, func() { _ = box.Close() })() // ends the reading
	said := bufio.NewReader(io.LimitReader(box, maxInventory))
	line, err := said.ReadBytes('\n')
	if err != nil {
		return "", fmt.Errorf("cannot ask the image for its packages: %w", errors.Join(err, ctx.Err()))
	}
	var has inventory
	if err := json.Unmarshal(line, &has); err != nil {
		return "", fmt.Errorf("cannot ask the image for its packages: it printed %.200q", line)
	}

	if b.pins, err = b.pinPackages(ctx, &has); err != nil {
		return "", err
	}
	tree, err := wheels.Open(b.pins)
	if err != nil {
		return "", err
	}
	defer tree.Close()
	b.noteModules(tree)

	err = b.writeLayer(func(files io.Reader) error { return box.Put(ctx, files) },
		func(l *layer) error { return b.addPackages(l, tree) })
	if err != nil {
		return "", err
	}

	_, _ = fmt.Fprintln(b.options.Progress, "compiling the packages")
	if _, err := box.Write([]byte("\n")); err != nil {
		return "", fmt.Errorf("cannot compile the packages: %w", err)
	}

	rest, err := io.ReadAll(said)
	if err != nil {
		return "", fmt.Errorf("cannot compile the packages: %w", errors.Join(err, ctx.Err()))
	}
	return has.Version, checkEnd(ctx, box, rest)
}

// pinPackages resolves the packages, or uses those of the lock.
func (b *imageBuild) pinPackages(ctx context.Context, has *inventory) ([]wheels.Pin, error) {
	target := wheels.Target{
		Python: has.Version, Glibc: glibc, Has: map[string]string{},
		Machine: map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH],
		Help: func(name string) string {
			return fmt.Sprintf("name a release that has one, as --with '%s<VERSION'", name)
		},
	}
	for name, version := range has.Packages {
		target.Has[wheels.Normalise(name)] = version
	}
	options := wheels.Options{
		Index: b.options.Index, Progress: b.options.Progress,
		CacheDir: filepath.Join(b.options.WorkDir, "packages"),
	}

	lock, err := os.ReadFile(b.options.Lock) // an empty name does not exist
	if err == nil {
		return wheels.ReadLock(ctx, string(lock), target, b.options.With, options)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the lock: %w", err)
	}

	pins, err := wheels.Resolve(ctx, target, b.options.With, options)
	if err != nil || b.options.Lock == "" {
		return pins, err
	}
	if err := os.WriteFile(b.options.Lock, []byte(wheels.FormatLock(pins)), 0o644); err != nil {
		return nil, fmt.Errorf("cannot write the lock: %w", err)
	}
	return pins, nil
}

// noteModules records the modules in the packages.
func (b *imageBuild) noteModules(tree *wheels.Tree) {
	var names []string
	for _, f := range tree.File {
		names = append(names, f.Name)
	}
	b.modules = pyfolder.Modules(names)
}

// addPackages writes the files of the packages, and their lock.
func (b *imageBuild) addPackages(l *layer, tree *wheels.Tree) error {
	lock := extra{name: lockFile, text: wheels.FormatLock(b.pins)}
	if err := l.addExtras([]extra{{name: dockerapi.PackageFolder[1:], dir: true}, lock}); err != nil {
		return err
	}
	slices.SortFunc(tree.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })

	for _, f := range tree.File {
		head := extra{name: dockerapi.PackageFolder[1:] + "/" + f.Name}.header()
		head.Size = int64(f.UncompressedSize64) //nolint:gosec // wheels bounds it
		if f.Mode()&0o111 != 0 {
			head.Mode = 0o755
		}

		from, err := f.Open()
		if err != nil {
			return fmt.Errorf("cannot unpack %s: %w", f.Name, err)
		}
		if err := errors.Join(l.copyFile(head, io.LimitReader(from, head.Size)), from.Close()); err != nil {
			return fmt.Errorf("cannot unpack %s: %w", f.Name, err)
		}
	}
	return nil
}

// labels returns the image's labels about its packages.
func (b *imageBuild) labels() (packages, modules string) {
	var list, more []string // requested packages come first
	for _, p := range b.pins {
		if slices.ContainsFunc(b.options.With, func(text string) bool { return nameOf(text) == p.Name }) {
			list = append(list, p.Name+"=="+p.Version)
		} else {
			more = append(more, p.Name+"=="+p.Version)
		}
	}
	list = append(list, more...)
	isPlain := func(name string) bool { return plainName.MatchString(name) }
	plain := slices.DeleteFunc(slices.Clone(b.modules), func(name string) bool { return !isPlain(name) })
	return strings.Join(list, " "), strings.Join(plain, " ")
}
