package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// The sources of Debian's packages.
const (
	suite         = "trixie"
	defaultMirror = "http://deb.debian.org"
	snapshots     = "http://snapshot.debian.org/archive"
)

// fetchScript returns the script that fetches the parts of an image, and its arguments.
func (b *imageBuild) fetchScript(
	ctx context.Context, work string,
) (script string, args []string, err error) {
	r := b.recipe
	switch {
	case r.Kind == Python:
		lock, err := b.writeLock(ctx, work)
		return "python/fetch.sh", []string{work, lock, b.options.Mirror, snapshots}, err
	case r.sum == "":
		return "", nil, fmt.Errorf("cannot fetch Go's toolchain: "+
			"images/go/toolchain.txt has no checksum for %s", runtime.GOARCH)
	}
	return "go/fetch.sh", []string{work, runtime.GOARCH, r.toolchain, r.sum}, nil
}

// writeLock writes the lock of the packages into the work folder and returns its name.
func (b *imageBuild) writeLock(ctx context.Context, work string) (string, error) {
	lock := []byte(b.recipe.lock)
	switch {
	case b.options.Latest:
		args := append([]string{work, suite, runtime.GOARCH, b.options.Mirror}, b.recipe.packages...)
		cmd, err := b.script(ctx, "python/lock.sh", args)
		if err != nil {
			return "", err
		}
		if lock, err = cmd.Output(); err != nil {
			return "", fmt.Errorf("cannot find the latest packages of Debian: %w", err)
		}
	case len(lock) == 0:
		return "", fmt.Errorf("cannot fetch Debian's packages: no versions are locked for %s; "+
			"use --latest to build with the versions that Debian offers today", runtime.GOARCH)
	}

	name := filepath.Join(work, "packages.lock")
	if err := os.WriteFile(name, lock, 0o644); err != nil {
		return "", fmt.Errorf("cannot write the versions of Debian's packages: %w", err)
	}
	return name, nil
}

// fetch makes an image from the unchanged downloads, and returns its ID.
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
		return l.addFiles(files, b.recipe.isWanted)
	})

	_, _ = io.Copy(io.Discard, files) // lets the script end, even after an error
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
	name, args, err := b.fetchScript(ctx, work)
	if err != nil {
		return nil, err
	}
	return b.script(ctx, name, args)
}

// script returns the command that runs one of the recipes' scripts, ready to start.
func (b *imageBuild) script(ctx context.Context, name string, args []string) (*exec.Cmd, error) {
	text, err := recipes.ReadFile(name)
	if err != nil {
		return nil, err
	}

	//nolint:forbidigo // apt or go, by our own script: no snippet is near
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-s"}, args...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), b.options.Progress
	return cmd, nil
}
