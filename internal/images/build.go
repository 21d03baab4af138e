package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/rlmhq/rlm/internal/dockerapi"
)

// Options say how to build. The zero value works.
type Options struct {
	// Host is the Docker daemon, a URL as in DOCKER_HOST. Empty means the system's own
	// socket.
	Host string
	// Again builds an image that is there already.
	Again bool
	// Latest builds from the packages that Debian offers now, not from the locked ones. It
	// builds an image that is there already, too.
	Latest bool
	// WorkDir keeps downloads, to be used again. Empty means a temporary folder.
	WorkDir string
	// Mirror is where Debian's packages come from, without the path "/debian". They are
	// verified by the hashes of the lock, or with Latest by Debian's keys. Empty means
	// Debian's own. Go's toolchain comes from where the go command takes modules.
	Mirror string
	// Progress receives the messages of the build.
	Progress io.Writer
}

// Build makes the image of a recipe, unless it is there already. The error wraps
// errors.ErrUnsupported if Options.Host cannot be used.
func Build(ctx context.Context, r Recipe, options Options) (Image, error) {
	docker, err := dockerapi.New(options.Host)
	if err != nil {
		return Image{}, err
	}
	defer docker.Close()

	if !options.Again && !options.Latest {
		if there, err := docker.Image(ctx, r.Name); err == nil {
			return describeOne(there), nil
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
	return (&imageBuild{docker: docker, recipe: r, options: options}).run(ctx)
}

// imageBuild is one build of an image.
type imageBuild struct {
	docker  *dockerapi.Client
	recipe  Recipe
	options Options
}

// run fetches, finishes and tidies up.
func (b *imageBuild) run(ctx context.Context) (Image, error) {
	began := time.Now()
	facts, err := b.docker.Check(ctx)
	if err != nil {
		return Image{}, err
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

// importLayer makes an image of what write writes.
func (b *imageBuild) importLayer(
	ctx context.Context, spec dockerapi.ImageSpec, write func(*layer) error,
) (string, error) {
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

	id, err := b.docker.Import(ctx, in, spec)
	in.CloseWithError(errors.New("the daemon stopped reading the image"))
	if written := <-done; written != nil && err != nil {
		return "", errors.Join(written, err)
	}
	return id, err
}

// finishSpec is the container in which an image is finished.
func (b *imageBuild) finishSpec(draft string, facts dockerapi.Facts) (dockerapi.Spec, error) {
	command, env, err := b.recipe.finishCommand()
	return dockerapi.Spec{
		Image:     draft,
		Command:   command,
		Env:       env,
		Labels:    map[string]string{"rlm.image": b.recipe.Kind, "rlm.build": "yes"},
		Memory:    2 << 30,
		CPUs:      int64(1000 * runtime.NumCPU()),
		Processes: 256,
		Root:      true,
		Systemd:   facts.Systemd,
	}, err
}
