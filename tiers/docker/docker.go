// Package docker is the tier that runs CPython, and compiled Go, in hardened
// containers.
//
// It offers native speed and the packages of its image: NumPy, pandas, SciPy and more, and Go's
// whole standard library. A container has no network, no capabilities, a read-only file tree, a
// seccomp profile, and limits. Its first process attests the wall from inside, and the tier never
// uses a container whose attestation shows a gap. Package dockerapi defines every setting of a
// container.
//
// The runtime in the guest is that of package pykernel, as in the tiers wasm and local. The host
// sends the runtime over the container's standard streams, so the image cannot contain another
// version of it. A container serves one session and is then destroyed; the pool keeps some ready. A
// separate image compiles and runs Go, and package golang drives it, as in tier local.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/golang/features"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

// Name is the tier's name.
const Name = "docker"

// Options configure the tier. The zero value works.
type Options struct {
	// Host is the daemon's address, as in DOCKER_HOST. Empty means the system's socket.
	Host string
	// Image is the name of an image with further packages, or an ID, "sha256:…", which pins an
	// image. Empty means the image that this program's recipe built. GoImage pins the image
	// for Go.
	Image, GoImage string
	// Warm is the number of containers kept ready for sessions with the default limits.
	// Zero means one, -1 none.
	Warm int
	// CPUs is the share of processors for one container, in thousandths of a processor. Zero
	// means one whole processor.
	CPUs int64
	// Inject holds the headers that are added to snippets' requests to a host, by HOST:PORT.
	// Snippets cannot read these headers: see docs/why/egress.md.
	Inject map[string]http.Header
	// Log receives diagnostics for developers of the tier.
	Log *slog.Logger
}

// tier runs CPython and Go in containers.
type tier struct {
	options Options
	reach   egress.Options    // where proxies go; a test can change it
	off     []dockerapi.Layer // left out by a test
	docker  *dockerapi.Client
	broken  error // why the tier has no client
	recipe  images.Recipe
	golang  images.Recipe

	mu       sync.Mutex // guards the fields below
	setup    *setup
	swept    bool
	verified bool
	closed   bool
	left     map[string]struct{} // containers that could not be removed
	pool     pool
}

// setup holds the facts about the tier's daemon.
type setup struct {
	facts  dockerapi.Facts
	image  dockerapi.Image // the image with Python
	golang dockerapi.Image
	lacks  map[tiers.Language]error // why the language has no image
}

// New returns the tier. It starts nothing yet: see Warm.
func New(options Options) tiers.Tier {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if options.Warm == 0 {
		options.Warm = 1
	}
	if options.CPUs == 0 {
		options.CPUs = 1000
	}

	t := &tier{
		options: options, reach: egress.Options{Inject: options.Inject}, left: map[string]struct{}{},
	}
	// The recipes are known without a daemon.
	if t.recipe, t.broken = images.Find(images.Python); t.broken == nil {
		t.golang, t.broken = images.Find(images.Go)
	}
	if t.broken == nil {
		t.docker, t.broken = dockerapi.New(options.Host)
	}

	t.pool.init(max(0, options.Warm))
	return t
}

// Info describes the tier. `make bench` measures Cost: see docs/reference/performance.md.
func (t *tier) Info() tiers.Info {
	info := tiers.Info{
		Name:      Name,
		Languages: []tiers.Language{tiers.Python, tiers.Go},
		Features: append([]tiers.Feature{
			tiers.FeatureAsync, tiers.FeatureClasses, tiers.FeatureGenerators, tiers.FeatureDynamic,
			tiers.FeatureThreads, tiers.FeatureProcesses, tiers.FeatureSockets, tiers.FeatureFiles,
			tiers.FeatureOut, tiers.FeaturePackages,
			tiers.FeatureNative, tiers.FeatureMove, tiers.FeatureHugeContext,
		}, features.All()...),
		Modules:   t.modules(),
		Isolation: tiers.IsolationContainer,
		Cost:      tiers.Cost{Start: 600 * time.Millisecond, Snippet: 4 * time.Millisecond},
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.setup == nil {
		return info
	}
	info.Version = t.setup.version()
	info.Modules = tiers.ModuleSet(slices.Concat(t.recipe.Modules, strings.Fields(t.setup.image.Modules))...)
	if t.setup.facts.GVisor {
		info.Isolation = tiers.IsolationKernel
	}

	info.Lacks = map[tiers.Language]string{}
	for language, err := range t.setup.lacks {
		info.Lacks[language] = err.Error()
		info.Languages = slices.DeleteFunc(
			info.Languages, func(l tiers.Language) bool { return l == language },
		)
	}

	return info
}

// modules returns the modules that are known before any query to the daemon. The modules of an
// image with further packages are not known by then.
func (t *tier) modules() map[string]bool {
	if t.options.Image != "" {
		return nil
	}
	return tiers.ModuleSet(t.recipe.Modules...)
}

// Probe checks whether the daemon can build the wall and whether the images exist. The tier runs
// each language whose image exists; one is enough.
func (t *tier) Probe(ctx context.Context) error {
	t.mu.Lock()
	t.setup, t.verified = nil, false // the daemon may have changed
	t.mu.Unlock()
	_, err := t.ready(ctx)
	return err
}

// ready returns the facts about the daemon and the images. It queries the daemon only once.
func (t *tier) ready(ctx context.Context) (setup, error) {
	t.mu.Lock()
	known := t.setup
	t.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	if t.broken != nil {
		return setup{}, t.broken
	}

	facts, err := t.docker.Check(ctx)
	if err != nil {
		return setup{}, err
	}
	found := setup{facts: facts, lacks: map[tiers.Language]error{}}
	if found.image, err = t.image(ctx, t.recipe, t.options.Image); err != nil {
		found.lacks[tiers.Python] = err
	}
	if found.golang, err = t.image(ctx, t.golang, t.options.GoImage); err != nil {
		found.lacks[tiers.Go] = err
	}

	for language, pin := range map[tiers.Language]string{
		tiers.Python: t.options.Image,
		tiers.Go:     t.options.GoImage,
	} {
		// An image that was never built disables its language. Any other failure is an error.
		if err := found.lacks[language]; err != nil &&
			(pin != "" || !errors.Is(err, dockerapi.ErrNoImage)) {
			return setup{}, err
		}
	}

	if len(found.lacks) == 2 {
		return setup{}, found.lacks[tiers.Python]
	}
	t.mu.Lock()
	t.setup = &found
	t.mu.Unlock()

	return found, nil
}

// image finds the image of a recipe, or the pinned image.
func (t *tier) image(
	ctx context.Context, recipe images.Recipe, pin string,
) (dockerapi.Image, error) {
	name, build := recipe.Name, "rlm images build"
	if recipe.Kind != images.Python {
		build += " " + recipe.Kind
	}

	isID := strings.HasPrefix(pin, "sha256:")
	if isID {
		name = pin
	} else if pin != "" {
		var err error
		if name, err = recipe.Extended(pin); err != nil {
			return dockerapi.Image{}, err
		}
		build += fmt.Sprintf(" --name %s --with PACKAGE", pin)
	}
	image, err := t.docker.Image(ctx, name)

	switch {
	case errors.Is(err, dockerapi.ErrNoImage):
		return dockerapi.Image{}, fmt.Errorf(
			"tier docker has no image %s: build it with %s: %w", name, build, err,
		)
	case err != nil:
		return dockerapi.Image{}, err
	case isID && image.ID != pin:
		return dockerapi.Image{}, fmt.Errorf(
			"tier docker is pinned to the image %s, but the daemon's image has the ID %s: pin that ID",
			name, image.ID,
		)
	case image.Kind != recipe.Kind:
		return dockerapi.Image{}, fmt.Errorf(
			"tier docker cannot use the image %s: it was not built by %s", name, build,
		)
	}

	return image, nil
}

// forget makes the next start query the daemon again.
func (t *tier) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setup, t.verified = nil, false
}

// version returns the versions of the languages, the daemon and the wall.
func (s *setup) version() string {
	wall := "runc " + s.facts.Runc
	if s.facts.GVisor {
		wall = "runsc"
	}

	python, golang := "CPython "+s.image.Version, s.golang.Version
	if err := s.lacks[tiers.Python]; err != nil {
		python = "no Python: " + err.Error()
	}
	if err := s.lacks[tiers.Go]; err != nil {
		golang = "no Go: " + err.Error()
	}

	return fmt.Sprintf(
		"%s, Docker %s, %s, cgroup v%s; %s", python, s.facts.Version, wall, s.facts.CgroupVersion,
		golang,
	)
}

// Open starts a sandbox.
func (t *tier) Open(ctx context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := session.RejectNative(Name, cfg); err != nil {
		return nil, err
	}

	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return nil, errors.New("the docker tier is closed")
	}

	return open(ctx, t, cfg)
}

// Close ends the pooled containers and removes any that could not be removed earlier. Close all
// sandboxes first.
func (t *tier) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	errs := []error{t.pool.close(), t.removeLeft(context.Background())}
	if t.docker != nil {
		errs = append(errs, t.docker.Close())
	}

	return errors.Join(errs...)
}
