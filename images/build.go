package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/dockerapi"
)

// The packages' source.
const (
	suite         = "trixie"
	defaultMirror = "http://deb.debian.org"
)

// BuildOptions say how to build. The zero value works.
type BuildOptions struct {
	// WorkDir keeps what was downloaded, to be used again. Empty means a temporary
	// folder.
	WorkDir string
	// Mirror is where Debian's packages come from, without the path "/debian";
	// they are verified by Debian's keys. Empty means Debian's own. Go's toolchain
	// comes from where the go command takes modules.
	Mirror string
	// Progress receives what the build says.
	Progress io.Writer
}

// Built is what a build gave.
type Built struct {
	// ID is the image's digest, to pin it by; Name its reference.
	ID, Name string
	// Version is of what runs in it.
	Version string
	// Took is how long it took; zero if the image was there already.
	Took time.Duration
}

// Build makes the image of a recipe with a daemon.
func Build(ctx context.Context, docker *dockerapi.Client, r Recipe, options BuildOptions) (Built, error) {
	begun := time.Now()
	if options.Mirror == "" {
		options.Mirror = defaultMirror
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	if options.WorkDir == "" {
		dir, err := os.MkdirTemp("", "rlm-images-")
		if err != nil {
			return Built{}, fmt.Errorf("cannot make a folder to build in: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // it is temporary
		options.WorkDir = dir
	}
	facts, err := docker.Check(ctx)
	if err != nil {
		return Built{}, err
	}
	draft, err := fetch(ctx, docker, r, options)
	if err != nil {
		return Built{}, err
	}
	built, err := finish(ctx, docker, r, draft, facts, options.Progress)
	built.Took = time.Since(begun)
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return built, errors.Join(err, docker.RemoveImage(own, draft))
}

// fetching is the script that fetches what an image is made of, and its arguments.
func (r Recipe) fetching(work, mirror string) (script string, args []string, err error) {
	switch {
	case r.Kind == Python:
		return "fetch.sh", append([]string{work, suite, runtime.GOARCH, mirror}, r.Packages...), nil
	case r.Sum == "":
		return "", nil, fmt.Errorf("cannot fetch Go's toolchain: images/go/toolchain.txt has no sum for %s", runtime.GOARCH)
	}
	return "go/fetch.sh", []string{work, runtime.GOARCH, r.Toolchain, r.Sum}, nil
}

// fetch makes an image of what is fetched as it is, and returns its ID.
func fetch(ctx context.Context, docker *dockerapi.Client, r Recipe, options BuildOptions) (string, error) {
	work, err := filepath.Abs(options.WorkDir)
	if err != nil {
		return "", fmt.Errorf("cannot build in %s: %w", options.WorkDir, err)
	}
	name, args, err := r.fetching(work, options.Mirror)
	if err != nil {
		return "", err
	}
	script, err := recipes.ReadFile(name)
	if err != nil {
		return "", err
	}
	own, err := extras(r.Kind)
	if err != nil {
		return "", err
	}
	//nolint:forbidigo // apt or go, by our own script: no snippet is near
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-s"}, args...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(script), options.Progress
	files, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("cannot fetch what the image %s is made of: %w", r.Kind, err)
	}
	id, err := importLayer(ctx, docker, "", nil, func(l *layer) error {
		if err := l.extras(append(skeleton(), own...)); err != nil {
			return err
		}
		return l.add(files, wantedFile(r.Kind))
	})
	_, _ = io.Copy(io.Discard, files) // so that the script ends, after an error too
	if waited := cmd.Wait(); waited != nil {
		err = errors.Join(fmt.Errorf("cannot fetch what the image %s is made of: %w", r.Kind, waited), err)
	}
	return id, err
}

// importLayer makes an image of what write writes.
func importLayer(ctx context.Context, docker *dockerapi.Client, name string, changes []string, write func(*layer) error) (string, error) {
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
	id, err := docker.Import(ctx, in, name, changes)
	in.CloseWithError(errors.New("the daemon does not take any more"))
	if written := <-done; written != nil && err != nil {
		return "", errors.Join(written, err)
	}
	return id, err
}

// inventory is what the finishing command says of an image.
type inventory struct {
	Version string   `json:"version"`
	Modules []string `json:"modules"`
}

// finishIn bounds the work of the finishing command.
const finishIn = 15 * time.Minute

// finishing is the command that finishes an image in a container of the draft, and
// its environment.
func (r Recipe) finishing() (command, env []string, err error) {
	if r.Kind == Go {
		return []string{"/usr/lib/go/bin/go", "run", "-C", "/" + goFolder, "./images/go/finish"}, []string{
			"HOME=/build", "GOCACHE=/build/build", "PATH=/usr/bin", "CGO_ENABLED=0", "GOENV=off", "GOFLAGS=-mod=mod", "GOPROXY=off",
			"GOTELEMETRY=off", "GOTOOLCHAIN=local",
		}, nil
	}
	script, err := recipes.ReadFile("python/finish.py")
	return []string{"/usr/bin/python3", "-I", "-c", string(script)}, []string{"LANG=C.UTF-8", "PYTHONHASHSEED=0"}, err
}

// entry is the program of an image, for whoever starts it by hand.
func (r Recipe) entry() string {
	if r.Kind == Go {
		return GoGuest
	}
	return "/usr/bin/python3"
}

// GoGuest is the first process of containers of the image go.
const GoGuest = "/usr/lib/rlm/guest"

// finish runs the finishing command in the draft and makes the image of what is
// there then.
func finish(ctx context.Context, docker *dockerapi.Client, r Recipe, draft string, facts dockerapi.Facts, progress io.Writer) (built Built, err error) {
	command, env, err := r.finishing()
	if err != nil {
		return Built{}, err
	}
	_, _ = fmt.Fprintln(progress, "compiling what the image is to have")
	ctx, cancel := context.WithTimeout(ctx, finishIn)
	defer cancel()
	box, err := docker.Start(ctx, dockerapi.Spec{
		Image: draft, Command: command, Env: env,
		Labels: map[string]string{Label: r.Kind, "rlm.build": "yes"},
		Memory: 2 << 30, CPUs: int64(1000 * runtime.NumCPU()), Processes: 256, Root: true, Systemd: facts.Systemd,
	}, func(said []byte) { _, _ = progress.Write(said) })
	if err != nil {
		return Built{}, err
	}
	defer func() { err = errors.Join(err, box.End(context.WithoutCancel(ctx))) }()
	defer context.AfterFunc(ctx, func() { _ = box.Close() })() // ends the reading; its own end is reported
	said, err := io.ReadAll(io.LimitReader(box, 1<<20))
	if err != nil {
		return Built{}, fmt.Errorf("cannot finish the image: %w", errors.Join(err, ctx.Err()))
	}
	if code, err := box.Wait(ctx); err != nil || code != 0 {
		return Built{}, errors.Join(fmt.Errorf("cannot finish the image: its script ended with code %d: %.2000s", code, said), err)
	}
	var has inventory
	if err := json.Unmarshal(said, &has); err != nil {
		return Built{}, fmt.Errorf("cannot finish the image: its script said %.200q: %w", said, err)
	}
	if err := r.matches(has); err != nil {
		return Built{}, err
	}
	built = Built{Name: r.Name(), Version: has.Version}
	built.ID, err = importLayer(ctx, docker, built.Name, []string{
		fmt.Sprintf("USER %d:%d", dockerapi.User, dockerapi.User), "WORKDIR /sandbox", fmt.Sprintf("ENTRYPOINT [%q]", r.entry()),
		fmt.Sprintf("LABEL %s=%s %s=%s %s=%s", Label, r.Kind, RecipeLabel, r.Hash, VersionLabel, has.Version),
	}, func(l *layer) error {
		files, err := box.Export(ctx)
		if err != nil {
			return err
		}
		defer files.Close()
		return l.add(files, finished)
	})
	return built, err
}

// matches reports modules that the program promises and the image lacks.
func (r Recipe) matches(has inventory) error {
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
		return fmt.Errorf("the image %s lacks modules that it should have: %s", r.Name(), strings.Join(lacks, ", "))
	}
	return nil
}
