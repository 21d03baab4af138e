package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/rlmhq/rlm/internal/dockerapi"
)

// Where Debian's packages come from.
const (
	suite         = "trixie"
	defaultMirror = "http://deb.debian.org"
)

// fetchScript is the script that fetches what an image is made of, and its arguments.
func (r Recipe) fetchScript(work, mirror string) (script string, args []string, err error) {
	switch {
	case r.Kind == Python:
		args = append([]string{work, suite, runtime.GOARCH, mirror}, r.packages...)
		return "fetch.sh", args, nil
	case r.sum == "":
		return "", nil, fmt.Errorf("cannot fetch Go's toolchain: "+
			"images/go/toolchain.txt has no checksum for %s", runtime.GOARCH)
	}
	return "go/fetch.sh", []string{work, runtime.GOARCH, r.toolchain, r.sum}, nil
}

// fetch makes an image of what is fetched, without changes, and returns its ID.
func (b *imageBuild) fetch(ctx context.Context) (string, error) {
	cmd, err := b.fetchCommand(ctx)
	if err != nil {
		return "", err
	}
	kind := b.recipe.Kind
	own, err := extras(kind)
	if err != nil {
		return "", err
	}

	files, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("cannot fetch the files of the image %s: %w", kind, err)
	}
	id, err := b.importLayer(ctx, dockerapi.ImageSpec{}, func(l *layer) error {
		if err := l.addExtras(append(skeleton(), own...)); err != nil {
			return err
		}
		return l.addFiles(files, wantedFile(kind))
	})

	_, _ = io.Copy(io.Discard, files) // then the script ends, after an error too
	if waited := cmd.Wait(); waited != nil {
		waited = fmt.Errorf("cannot fetch the files of the image %s: %w", kind, waited)
		err = errors.Join(waited, err)
	}
	return id, err
}

// fetchCommand returns the command that fetches, ready to start.
func (b *imageBuild) fetchCommand(ctx context.Context) (*exec.Cmd, error) {
	work, err := filepath.Abs(b.options.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("cannot build in %s: %w", b.options.WorkDir, err)
	}
	name, args, err := b.recipe.fetchScript(work, b.options.Mirror)
	if err != nil {
		return nil, err
	}
	script, err := recipes.ReadFile(name)
	if err != nil {
		return nil, err
	}

	//nolint:forbidigo // apt or go, by our own script: no snippet is near
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-s"}, args...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(script), b.options.Progress
	return cmd, nil
}
