package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server"
)

// defaultProfile is the profile of requests that do not name one.
const defaultProfile = "default"

// profileGroups are the groups of settings that a profile may contain; profileKeys are additional
// settings. All other settings apply to the whole server.
var (
	profileGroups = []config.Group{config.Limits, config.Sessions, config.Models, config.Run}
	profileKeys   = []string{"tier", "min_isolation", "allow_local", "allow_host"}
)

// profiles are the opened profiles of a server. Close their models after use.
type profiles struct {
	list   []server.Profile
	models []io.Closer
}

// close closes the models; errors do not matter, since the models hold no data.
func (p *profiles) close() {
	for _, m := range p.models {
		_ = m.Close()
	}
}

// openProfiles opens the profiles of the flags. It also opens the profile of the settings, if they
// name a model or no flag gives a profile.
func (f *serveFlags) openProfiles(e *cli.Env, flags *pflag.FlagSet, tools *wiring.Tools) (*profiles, error) {
	given := f.profiles
	if wiring.HasModel(e) || len(given) == 0 {
		given = append([]string{defaultProfile + "="}, given...)
	}

	p := &profiles{}
	for _, text := range given {
		name, file, ok := strings.Cut(text, "=")
		var err error
		if !ok || slices.ContainsFunc(p.list, func(p server.Profile) bool { return p.Name == name }) {
			err = errors.New("give NAME=FILE, each name once")
		} else {
			err = p.add(e, flags, tools, name, file)
		}
		if err != nil {
			p.close()
			return nil, fmt.Errorf("profile %s: %w", strings.TrimSuffix(text, "="), err)
		}
	}
	return p, nil
}

// add opens a profile. Without a file, it is the profile of the settings, which may lack a model.
func (p *profiles) add(e *cli.Env, flags *pflag.FlagSet, tools *wiring.Tools, name, file string) (err error) {
	own := *e
	if file != "" {
		if own.Settings, err = loadProfile(e, file, flags); err != nil {
			return err
		}
	}

	models, err := wiring.OpenModels(&own, false)
	if err != nil {
		return err
	}
	p.models = append(p.models, models)

	made := server.Profile{Name: name, Durability: own.Settings.Durability}
	made.Observe = func(ctx context.Context, next func(ledger.Event)) (func(ledger.Event), func(), error) {
		return wiring.Observe(ctx, &own, "run", "", next)
	}
	_, done, err := made.Observe(context.Background(), nil) // invalid settings fail immediately
	if err != nil {
		return err
	}
	done()
	if err := wiring.Configure(&own, &made.Task, models); err != nil {
		return err
	}

	made.Task.Config.Trace = "" // the server keeps run logs
	if file != "" || made.HasModel() {
		if err := wiring.RequireModel(&made.Task); err != nil {
			return err
		}
	}
	if made.Task.Policy, err = wiring.Policy(own.Settings); err != nil {
		return err
	}
	p.list = append(p.list, made)
	return tools.AddTo(&p.list[len(p.list)-1].Task)
}

// loadProfile returns the settings, overridden by a profile's file.
func loadProfile(e *cli.Env, file string, flags *pflag.FlagSet) (*config.Loaded, error) {
	loaded, err := config.Load(config.Sources{
		File: e.Settings.File, Environ: os.Environ(), Flags: flags, Over: file,
	})
	if err != nil {
		return nil, err
	}
	for _, s := range config.Settings(&loaded.Config) {
		isOf := slices.Contains(profileGroups, s.Group) || slices.Contains(profileKeys, s.Key)
		if origin := loaded.From(s.Key); origin.Name == file && !isOf {
			return nil, fmt.Errorf("%s: %s is a setting of the whole server: give it to rlm serve", origin, s.Key)
		}
	}
	return loaded, nil
}
