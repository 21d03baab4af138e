package wheels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	version "github.com/aquasecurity/go-pep440-version"
)

// Bounds of a resolution.
const (
	maxPackages = 300
	maxPasses   = 60
)

// Options configure the source of packages and the folder in which they are kept.
type Options struct {
	// Index is the URL of the index. Empty means PyPI.
	Index string
	// CacheDir keeps wheels by digest. It should be in the user's cache.
	CacheDir string
	// Progress receives a line before each download. It may be nil.
	Progress io.Writer
}

// Pin is one version of a package, and the wheel that contains it.
type Pin struct {
	// Name is normalised, File the file name of the wheel, and SHA256 its digest in hex.
	Name, Version, File, URL, SHA256 string
	// Path is the path of the wheel in the cache.
	Path string
}

// resolver finds the versions that satisfy all requirements.
type resolver struct {
	Options

	target *Target
	index  *index
	files  map[string][]file       // by package, as listed by the index
	opened map[string]*wheelReader // by digest; closed by close
	paths  map[string]string       // by digest
}

// Resolve finds and fetches the packages that the requirements in texts name, and their
// dependencies. The pins are sorted by name. Packages that the target has in an allowed version are
// left out.
func Resolve(ctx context.Context, target Target, texts []string, options Options) ([]Pin, error) {
	x, err := openIndex(options.Index)
	if err != nil {
		return nil, err
	}
	r := &resolver{
		Options: options, target: &target, index: x, files: map[string][]file{},
		opened: map[string]*wheelReader{}, paths: map[string]string{},
	}
	defer r.close()

	var roots []requirement
	for _, text := range texts {
		root, err := parseRequirement(text)
		if err != nil {
			return nil, err
		}
		if root.marker != "" {
			return nil, fmt.Errorf("cannot read the requirement %q: give it without a condition", text)
		}

		roots = append(roots, root)
	}
	return r.resolve(ctx, roots)
}

// wish combines all requirements for one package.
type wish struct {
	specs  []string
	extras map[string]bool
	by     []string // each spec with its origin
}

// wishes holds all wishes, by package.
type wishes map[string]*wish

// add adds a requirement. It reports whether the package or one of its extras is new.
func (w wishes) add(wanted *requirement, by string) (isNew bool) {
	one := w[wanted.name]
	if one == nil {
		one = &wish{extras: map[string]bool{}}
		w[wanted.name], isNew = one, true
	}
	for _, extra := range wanted.extras {
		isNew = isNew || !one.extras[extra]
		one.extras[extra] = true
	}

	if note := wanted.name + wanted.spec + " for " + by; !slices.Contains(one.by, note) {
		one.specs = append(one.specs, wanted.spec)
		one.by = append(one.by, note)
	}
	return isNew
}

// resolve chooses packages, repeatedly until the chosen packages require no further ones.
func (r *resolver) resolve(ctx context.Context, roots []requirement) ([]Pin, error) {
	chosen := map[string]file{}
	for range maxPasses {
		wishes, err := r.gather(ctx, roots, chosen)
		if err != nil {
			return nil, err
		}

		next, err := r.chooseAll(ctx, wishes)
		if err != nil {
			return nil, err
		}

		isSame := func(a, b file) bool { return a.sha256 == b.sha256 && a.url.String() == b.url.String() }
		if maps.EqualFunc(chosen, next, isSame) {
			return r.pins(chosen), nil
		}
		chosen = next
	}
	return nil, errors.New("cannot find compatible versions: give some versions yourself, as NAME==VERSION")
}

// gather collects the requirements of the roots and of the chosen packages.
func (r *resolver) gather(
	ctx context.Context, roots []requirement, chosen map[string]file,
) (wishes, error) {
	wishes := wishes{}
	type job struct {
		wanted requirement
		by     string
	}
	var queue []job
	for _, root := range roots {
		queue = append(queue, job{root, "--with"})
	}

	for len(queue) > 0 {
		if len(wishes) > maxPackages || len(queue) > 100*maxPackages {
			return nil, fmt.Errorf("more than %d packages are required", maxPackages)
		}
		next := queue[0]
		queue = queue[1:]

		isNew := wishes.add(&next.wanted, next.by)
		f, isChosen := chosen[next.wanted.name]
		if !isNew || !isChosen {
			continue
		}

		wanted, err := r.requirementsOf(ctx, &f, slices.Sorted(maps.Keys(wishes[f.name].extras)))
		if err != nil {
			return nil, err
		}
		for _, w := range wanted {
			queue = append(queue, job{w, f.name + " " + f.wheelName.version})
		}
	}
	return wishes, nil
}

// requirementsOf returns the requirements of a chosen package, for the target and with the given
// extras.
func (r *resolver) requirementsOf(
	ctx context.Context, f *file, extras []string,
) ([]requirement, error) {
	w, err := r.open(ctx, f)
	if err != nil {
		return nil, err
	}

	var list []requirement
	for _, text := range w.requires {
		wanted, err := parseRequirement(text)
		if err != nil {
			return nil, fmt.Errorf("cannot use the package %s: %w", f.name, err)
		}
		applies, err := holds(wanted.marker, r.target.facts(), extras)
		if err != nil {
			return nil, fmt.Errorf("cannot use the package %s: %w", f.name, err)
		}

		if applies {
			list = append(list, wanted)
		}
	}
	return list, nil
}

// open fetches a wheel and reads its metadata.
func (r *resolver) open(ctx context.Context, f *file) (*wheelReader, error) {
	if w := r.opened[f.sha256]; w != nil {
		return w, nil
	}
	path, err := r.fetch(ctx, f.base, f.url, f.sha256)
	if err != nil {
		return nil, err
	}

	w, err := openWheel(path, f.base)
	if err != nil {
		return nil, err
	}

	if w.name != f.name || w.version != f.version.String() {
		return nil, errors.Join(w.Close(), fmt.Errorf(
			"cannot use the wheel %s: it says that it is %s %s", f.base, w.name, w.version))
	}

	r.opened[f.sha256], r.paths[f.sha256] = w, path
	return w, nil
}

// chooseAll chooses a release for each wish. Packages that the target has need no release.
func (r *resolver) chooseAll(ctx context.Context, wanted wishes) (map[string]file, error) {
	chosen := map[string]file{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		wish := wanted[name]
		if v, err := version.Parse(r.target.Has[name]); err == nil && allowed(v, wish.specs) {
			continue
		}

		files, known := r.files[name]
		if !known {
			var err error
			if files, err = r.index.find(ctx, name); err != nil {
				return nil, fmt.Errorf("%w (required: %s)", err, strings.Join(wish.by, ", "))
			}
			r.files[name] = files
		}

		f, err := r.target.choose(files, name, wish.specs)
		if err != nil {
			return nil, fmt.Errorf("%w (required: %s)", err, strings.Join(wish.by, ", "))
		}
		chosen[name] = f
	}
	return chosen, nil
}

// pins describes the chosen packages, all of which are in the cache.
func (r *resolver) pins(chosen map[string]file) []Pin {
	var list []Pin
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		f := chosen[name]
		list = append(list, Pin{
			Name: name, Version: f.version.String(), File: f.base, URL: withoutUser(f.url),
			SHA256: f.sha256, Path: r.paths[f.sha256],
		})
	}
	return list
}

func (r *resolver) say(format string, args ...any) {
	if r.Progress != nil {
		_, _ = fmt.Fprintf(r.Progress, format+"\n", args...)
	}
}

func (r *resolver) close() {
	for _, w := range r.opened {
		_ = w.Close() // only read from
	}
}
