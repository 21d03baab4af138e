package wiring

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	runstore "github.com/rlmhq/rlm/store"
)

// StoreFolder returns the folder of the store, or "" if there is none.
func StoreFolder(e *cli.Env) (string, error) {
	switch e.Settings.Store {
	case "none":
		return "", nil
	case "":
		dir, err := sessions.UserFolder()
		if err != nil {
			return "", fmt.Errorf("cannot find the folder of the store: %w; name one with --store", err)
		}
		return filepath.Join(dir, "store"), nil
	}
	return filepath.Abs(e.Settings.Store)
}

// runStore returns the store for an engine. Without one it returns nil, and named runs fail before
// they begin.
func runStore(e *cli.Env) rlm.Store {
	dir, err := StoreFolder(e)
	if err != nil || dir == "" {
		return nil
	}
	return runstore.Folder(dir)
}

// NeedStore returns the folder of the store, or an error if there is none.
func NeedStore(e *cli.Env) (string, error) {
	dir, err := StoreFolder(e)
	if err == nil && dir == "" {
		err = ErrNoStore
	}
	return dir, err
}

// ErrNoStore is the error of a command that needs a store, if none is configured.
var ErrNoStore = errors.New("there is no store: name a folder with --store in place of none")

// WithRuns calls use with an engine that has the configured store. Errors without an exit code
// become usage errors.
func WithRuns(e *cli.Env, use func(*rlm.Engine) error) (err error) {
	dir, err := NeedStore(e)
	if err != nil {
		return cli.Usage(err)
	}
	engine, err := rlm.New(rlm.Options{Store: runstore.Folder(dir), CacheDir: e.Settings.CacheDir, Log: e.Log})
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := use(engine); err != nil {
		return cli.Usage(explainMissing(err))
	}
	return nil
}

// WithStore calls use with the configured store for reading. Errors without an exit code become
// usage errors.
func WithStore(e *cli.Env, use func(store.Store) error) (err error) {
	dir, err := NeedStore(e)
	if err != nil {
		return cli.Usage(err)
	}
	s, err := sqlitestore.OpenToRead(dir)
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return cli.AsUsage(explainMissing(use(s)))
}

// explainMissing extends the error for a run that does not exist with a hint about where to find
// the names.
func explainMissing(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: rlm runs list shows the stored runs", err)
	}
	return err
}

// DataFlag is the data folder of a server.
type DataFlag struct{ Dir string }

// Add adds the flag --data.
func (d *DataFlag) Add(flags *pflag.FlagSet) {
	flags.StringVar(&d.Dir, "data", "", "`folder` of the server's data (default: the folder serve beside the store)")
}

// Find returns the data folder.
func (d *DataFlag) Find() (string, error) {
	if d.Dir != "" {
		return filepath.Abs(d.Dir)
	}
	dir, err := sessions.UserFolder()
	if err != nil {
		return "", fmt.Errorf("cannot find the folder of the server's data: %w; name one with --data", err)
	}
	return filepath.Join(dir, "serve"), nil
}
