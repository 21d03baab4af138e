package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tiers"
)

// newEngine returns an engine with the settings. It prepares no tier. Each change may set what is
// not a setting.
func (e *env) newEngine(
	ctx context.Context, note func(string, ...any), changes ...func(*rlm.Options),
) (*rlm.Engine, error) {
	packages, err := openPackages(ctx, e.settings, note)
	if err == nil {
		err = checkImageName(e.settings.Image)
	}
	if err != nil {
		return nil, Usage(err)
	}
	headers, err := mcptools.Headers(e.inject)
	if err != nil {
		return nil, Usage(err)
	}
	folder, _ := e.storeFolder() // without it, named runs fail before this
	progress := func(what string) { note("%s", what) }
	kinds := e.tierOptions()
	kinds.Inject, kinds.Progress = headers, progress
	options := rlm.Options{
		Tiers:      standard.Tiers(kinds),
		Store:      folder,
		CacheDir:   e.settings.CacheDir,
		WasmEngine: e.settings.Engine,
		Packages:   packages,
		Log:        e.log,
		Progress:   progress,
	}
	for _, change := range changes {
		change(&options)
	}

	engine, err := rlm.New(options)
	if err != nil {
		return nil, Usage(err)
	}
	if s := e.settings; len(s.LocalFolder) > 0 && !s.AllowLocal && s.Tier != rlm.TierLocal {
		note("--local-folder has no effect without tier local: pass --allow-local")
	}
	return engine, nil
}

// engine returns an engine with the settings, ready for snippets.
func (e *env) engine(
	ctx context.Context, note func(string, ...any), changes ...func(*rlm.Options),
) (*rlm.Engine, error) {
	engine, err := e.newEngine(ctx, note, changes...)
	if err != nil {
		return nil, err
	}

	if err := e.prepare(ctx, engine); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

// prepare checks the tier of the settings and warms the engine. A command calls it before it
// opens contexts, so that a broken tier is not reported as a bad context.
func (e *env) prepare(ctx context.Context, engine *rlm.Engine) error {
	if name := e.settings.Tier; name != "auto" && !hasTier(engine, name) {
		return Usage(fmt.Errorf("--tier %q: unknown tier; `rlm tiers` lists all tiers", name))
	}
	if err := e.checkImage(ctx, engine); err != nil {
		return Usage(err)
	}
	if err := engine.Warm(ctx); err != nil {
		return Broken(err)
	}
	return nil
}

// checkImage reports an image that does not exist. If the daemon does not answer, the image may
// well exist: then tier docker tells why it cannot work, and other tiers run what they can.
func (e *env) checkImage(ctx context.Context, engine *rlm.Engine) error {
	if e.settings.Image == "" {
		return nil
	}
	for _, tier := range engine.Tiers() {
		if tier.Info().Name != rlm.TierDocker {
			continue
		}
		if err := tier.Probe(ctx); errors.Is(err, dockerapi.ErrNoImage) {
			return fmt.Errorf("--image %s: %w", e.settings.Image, err)
		}
	}
	return nil
}

func hasTier(engine *rlm.Engine, name string) bool {
	return slices.ContainsFunc(engine.Tiers(),
		func(t tiers.Tier) bool { return t.Info().Name == name })
}

// tierOptions returns the options of the tiers according to the settings.
func (e *env) tierOptions() standard.Options {
	return standard.Options{
		Python:       e.settings.Python,
		LocalFolders: e.settings.LocalFolder,
		AllowSampled: e.settings.AllowSampled,
		Processes:    -1, // a command seldom has a second session
		DockerHost:   dockerHost(),
		DockerImage:  e.settings.Image,
		Log:          e.log,
	}
}

// dockerHost returns the address of the Docker daemon, from the variable that all its
// clients read.
func dockerHost() string { return os.Getenv("DOCKER_HOST") }

// checkImageName checks the name of an image with further packages, empty for the default, or
// an image's ID.
func checkImageName(name string) error {
	if name == "" || strings.HasPrefix(name, "sha256:") {
		return nil
	}
	recipe, err := images.Find(images.Python)
	if err == nil {
		_, err = recipe.Extended(name)
	}
	return err
}
