package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// inventory is the finishing command's report about an image.
type inventory struct {
	Version string   `json:"version"`
	Modules []string `json:"modules"`
	// Packages are versions by name, for a build with additional packages.
	Packages map[string]string `json:"packages"`
}

// maxInventory is the maximum size of such a report, in bytes.
const maxInventory = 1 << 20

// finishIn is the maximum duration of the finishing command.
const finishIn = 15 * time.Minute

// finishCommand returns the command that finishes an image in a container of the draft, and its
// environment.
func (r Recipe) finishCommand() (command, env []string, err error) {
	if r.Kind == Go {
		command = []string{
			"/usr/lib/go/bin/go", "run", "-C", "/" + goFolder, "./images/go/finish",
		}
		env = []string{
			"HOME=/build", "GOCACHE=/build/build", "PATH=/usr/bin", "CGO_ENABLED=0",
			"GOENV=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTELEMETRY=off",
			"GOTOOLCHAIN=local",
		}
		return command, env, nil
	}

	script, err := recipes.ReadFile("python/finish.py")
	command = []string{"/usr/bin/python3", "-I", "-c", string(script)}
	return command, []string{"LANG=C.UTF-8", "PYTHONHASHSEED=0"}, err
}

// finish runs the finishing command in the draft and makes the image from the result.
func (b *imageBuild) finish(
	ctx context.Context, draft string, facts dockerapi.Facts,
) (built Image, err error) {
	spec, err := b.finishSpec(draft, facts)
	if err != nil {
		return Image{}, err
	}
	progress := b.options.Progress
	_, _ = fmt.Fprintln(progress, "compiling the contents of the image")

	ctx, cancel := context.WithTimeout(ctx, finishIn)
	defer cancel()
	box, err := b.docker.Start(ctx, spec, func(said []byte) { _, _ = progress.Write(said) })
	if err != nil {
		return Image{}, err
	}
	defer func() { err = errors.Join(err, box.End(context.WithoutCancel(ctx))) }()

	has, err := readInventory(ctx, box)
	if err != nil {
		return Image{}, err
	}
	if err := b.recipe.checkInventory(has); err != nil {
		return Image{}, err
	}
	id, err := b.importFinished(ctx, box, has.Version)
	return b.describe(id, has.Version), err
}

// describe describes the built image.
func (b *imageBuild) describe(id, version string) Image {
	packages, _ := b.labels()
	return Image{
		Kind: b.recipe.Kind, ID: id, Names: []string{b.recipe.Name}, Version: version,
		Packages: strings.Fields(packages), Used: true,
	}
}

// readInventory waits for the finishing command and reads its report.
func readInventory(ctx context.Context, box *dockerapi.Container) (has inventory, err error) {
	defer context.AfterFunc(ctx, func() { _ = box.Close() })() // ends the reading
	said, err := io.ReadAll(io.LimitReader(box, maxInventory))
	if err != nil {
		return has, fmt.Errorf("cannot finish the image: %w", errors.Join(err, ctx.Err()))
	}

	if err := checkEnd(ctx, box, said); err != nil {
		return has, err
	}
	if err := json.Unmarshal(said, &has); err != nil {
		return has, fmt.Errorf("cannot finish the image: the finishing script printed %.200q: %w",
			said, err)
	}
	return has, nil
}

// checkEnd returns an error if the script in a container failed after this output.
func checkEnd(ctx context.Context, box *dockerapi.Container, said []byte) error {
	if code, err := box.Wait(ctx); err != nil || code != 0 {
		failed := fmt.Errorf("cannot finish the image: the finishing script ended with code %d: %.2000s",
			code, said)
		return errors.Join(failed, err)
	}
	return nil
}

// importFinished makes the image from a finished container.
func (b *imageBuild) importFinished(
	ctx context.Context, box *dockerapi.Container, version string,
) (string, error) {
	spec := dockerapi.ImageSpec{
		Name:    b.recipe.Name,
		Kind:    b.recipe.Kind,
		Recipe:  b.recipe.Hash,
		Version: version,
		Program: b.recipe.Program,
	}
	spec.Packages, spec.Modules = b.labels()
	spec.With = b.wanted()
	return b.importLayer(ctx, spec, func(l *layer) error {
		files, err := box.Export(ctx)
		if err != nil {
			return err
		}
		defer files.Close()
		return l.addFiles(files, isFinished)
	})
}

// checkInventory reports modules that the program promises but the image lacks.
func (r Recipe) checkInventory(has inventory) error {
	there := map[string]bool{}
	for _, name := range has.Modules {
		there[name] = true
	}

	var lacks []string
	for _, name := range r.Modules {
		if !there[name] {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("the image %s lacks modules that it should have: %s",
			r.Name, strings.Join(lacks, ", "))
	}
	return nil
}
