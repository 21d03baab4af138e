package wiring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/text/spelling"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tables"
)

// NewEngine returns an engine configured by the settings. It does not prepare tiers. Each function
// of change may adjust options that are not settings.
func NewEngine(
	ctx context.Context, e *cli.Env, note func(string, ...any), changes ...func(*rlm.Options),
) (*rlm.Engine, error) {
	packages, err := openPackages(ctx, e.Settings, note)
	if err == nil {
		err = CheckImageName(e.Settings.Image)
	}
	if err != nil {
		return nil, cli.Usage(err)
	}
	headers, err := mcptools.Headers(e.Inject)
	if err != nil {
		return nil, cli.Usage(err)
	}

	progress := func(what string) { note("%s", what) }
	kinds := TierOptions(e)
	kinds.Inject, kinds.Progress = headers, progress
	options := rlm.Options{
		Tiers:      standard.Tiers(kinds),
		Store:      runStore(e),
		SQL:        tables.SQL,
		CacheDir:   e.Settings.CacheDir,
		WasmEngine: e.Settings.Engine,
		Packages:   packages,
		Log:        e.Log,
		Progress:   progress,
	}
	for _, change := range changes {
		change(&options)
	}

	engine, err := rlm.New(options)
	if err != nil {
		return nil, cli.Usage(err)
	}

	if s := e.Settings; len(s.LocalFolder) > 0 && !s.AllowLocal && s.Tier != rlm.TierLocal {
		note("--local-folder has no effect without tier local: pass --allow-local")
	}
	return engine, nil
}

// OpenEngine returns an engine configured by the settings, ready for snippets.
func OpenEngine(
	ctx context.Context, e *cli.Env, note func(string, ...any), changes ...func(*rlm.Options),
) (*rlm.Engine, error) {
	engine, err := NewEngine(ctx, e, note, changes...)
	if err != nil {
		return nil, err
	}

	if err := Prepare(ctx, e, engine); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

// Prepare checks the configured tier and warms the engine. A command calls Prepare before it opens
// contexts, so that a broken tier is not reported as a bad context.
func Prepare(ctx context.Context, e *cli.Env, engine *rlm.Engine) error {
	if err := checkTier(engine, e.Settings.Tier); err != nil {
		return cli.Usage(err)
	}
	if err := checkImage(ctx, e, engine); err != nil {
		return cli.Usage(err)
	}
	if err := engine.Warm(ctx); err != nil {
		return cli.Broken(err)
	}
	return nil
}

// checkImage returns an error if the image does not exist. If the daemon does not answer, the image
// may still exist, so there is no error; tier docker then explains why it does not work, and other
// tiers remain usable.
func checkImage(ctx context.Context, e *cli.Env, engine *rlm.Engine) error {
	if e.Settings.Image == "" {
		return nil
	}
	for _, tier := range engine.Tiers() {
		if tier.Info().Name != rlm.TierDocker {
			continue
		}
		if err := tier.Probe(ctx); errors.Is(err, dockerapi.ErrNoImage) {
			return fmt.Errorf("--image %s: %w", e.Settings.Image, err)
		}
	}
	return nil
}

// checkTier returns an error if the engine has no tier with this name.
func checkTier(engine *rlm.Engine, name string) error {
	known := []string{"auto"}
	for _, tier := range engine.Tiers() {
		known = append(known, tier.Info().Name)
	}
	if slices.Contains(known, name) {
		return nil
	}

	advice := "`rlm tiers` lists all tiers"
	if meant := spelling.Nearest(name, known); meant != "" {
		advice = fmt.Sprintf("did you mean %s? %s", meant, advice)
	}
	return fmt.Errorf("--tier %q: unknown tier; %s", name, advice)
}

// TierOptions returns the tier options from the settings.
func TierOptions(e *cli.Env) standard.Options {
	return standard.Options{
		Python:       e.Settings.Python,
		LocalFolders: e.Settings.LocalFolder,
		AllowSampled: e.Settings.AllowSampled,
		Processes:    -1, // a command rarely has a second session
		DockerHost:   DockerHost(),
		DockerImage:  e.Settings.Image,
		Log:          e.Log,
	}
}

// DockerHost returns the address of the Docker daemon, from the variable that all Docker clients
// read.
func DockerHost() string { return os.Getenv("DOCKER_HOST") }

// CheckImageName checks the name of an image with additional packages, or the ID of an image.
// Empty means the default.
func CheckImageName(name string) error {
	if name == "" || strings.HasPrefix(name, "sha256:") {
		return nil
	}
	recipe, err := images.Find(images.Python)
	if err == nil {
		_, err = recipe.Extended(name)
	}
	return err
}
