package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/rlmhq/rlm/internal/python/wheels"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// Options configure a build. The zero value works.
type Options struct {
	// Host is the Docker daemon, a URL as in DOCKER_HOST. Empty means the system's own socket.
	Host string
	// Again builds an image even if it exists.
	Again bool
	// Latest builds from Debian's current packages instead of the locked ones. It also builds an
	// image that already exists.
	Latest bool
	// WorkDir keeps downloads for reuse. Empty means a temporary folder.
	WorkDir string
	// Mirror is the source of Debian's packages, without the path "/debian". They are verified by
	// the hashes of the lock, or with Latest by Debian's keys. Empty means Debian's own mirror.
	// Go's toolchain comes from the go command's source of modules.
	Mirror string
	// With are additional PyPI packages for the image python, each as NAME or NAME==VERSION. Build
	// then makes a separate image with these packages and their dependencies.
	With []string
	// Name is the name of that image. Empty means the names of With, joined.
	Name string
	// Lock is a file with the versions and digests of the packages. Build follows it if it exists,
	// and writes it otherwise. Empty means none. The image contains it, too.
	Lock string
	// Index is the URL of the package index. Empty means PyPI.
	Index string
	// Progress receives the messages of the build.
	Progress io.Writer
}

// Build makes the image of a recipe, unless it already exists. The error wraps
// errors.ErrUnsupported if Options.Host cannot be used.
func Build(ctx context.Context, r Recipe, options Options) (Image, error) {
	docker, err := dockerapi.New(options.Host)
	if err != nil {
		return Image{}, err
	}
	defer docker.Close()

	b := &imageBuild{docker: docker, recipe: r, options: options}
	if len(options.With) > 0 {
		if err := b.name(); err != nil {
			return Image{}, err
		}
	}
	if !options.Again && (!options.Latest || b.base != "") {
		if there, err := docker.Image(ctx, b.recipe.Name); err == nil {
			return describeOne(there), b.checkWanted(there.With)
		}
	}

	if options.Mirror == "" {
		options.Mirror = defaultMirror
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	if options.WorkDir == "" {
		dir, err := os.MkdirTemp("", "rlm-images-")
		if err != nil {
			return Image{}, fmt.Errorf("cannot make a folder to build in: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // it is temporary
		options.WorkDir = dir
	}
	b.options = options
	return b.run(ctx)
}

// imageBuild is one build of an image.
type imageBuild struct {
	docker  *dockerapi.Client
	recipe  Recipe
	options Options

	// For an image with additional packages: the base image, the chosen packages, and the
	// importable names.
	base    string
	pins    []wheels.Pin
	modules []string
}

// run fetches, finishes and tidies up.
func (b *imageBuild) run(ctx context.Context) (Image, error) {
	began := time.Now()
	facts, err := b.docker.Check(ctx)
	if err != nil {
		return Image{}, err
	}
	if b.base != "" {
		built, err := b.extend(ctx, facts)
		built.Took = time.Since(began)
		return built, err
	}
	draft, err := b.fetch(ctx)
	if err != nil {
		return Image{}, err
	}

	built, err := b.finish(ctx, draft, facts)
	built.Took = time.Since(began)

	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return built, errors.Join(err, b.docker.RemoveImage(own, draft))
}

// importLayer makes an image from what write writes.
func (b *imageBuild) importLayer(
	ctx context.Context, spec dockerapi.ImageSpec, write func(*layer) error,
) (id string, err error) {
	err = b.writeLayer(func(files io.Reader) (err error) {
		id, err = b.docker.Import(ctx, files, spec)
		return err
	}, write)
	return id, err
}

// writeLayer passes what write writes to the daemon.
func (*imageBuild) writeLayer(send func(io.Reader) error, write func(*layer) error) error {
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		l := newLayer(out)
		err := write(l)
		if err == nil {
			err = l.to.Close()
		}
		done <- err
		out.CloseWithError(err)
	}()

	err := send(in)
	in.CloseWithError(errors.New("the daemon stopped reading the image"))
	if written := <-done; written != nil && err != nil {
		return errors.Join(written, err)
	}
	return err
}

// finishSpec returns the container in which an image is finished.
func (b *imageBuild) finishSpec(draft string, facts dockerapi.Facts) (dockerapi.Spec, error) {
	spec := b.buildSpec(draft, facts)
	var err error
	spec.Command, spec.Env, err = b.recipe.finishCommand()
	return spec, err
}

// buildSpec returns a writable container of the build.
func (b *imageBuild) buildSpec(image string, facts dockerapi.Facts) dockerapi.Spec {
	return dockerapi.Spec{
		Image:     image,
		Labels:    map[string]string{"rlm.image": b.recipe.Kind, "rlm.build": "yes"},
		Memory:    2 << 30,
		CPUs:      int64(1000 * runtime.NumCPU()),
		Processes: 256,
		Root:      true,
		Systemd:   facts.Systemd,
	}
}
