package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// storeFolder returns the folder of the store, empty for none.
func (e *env) storeFolder() (string, error) {
	switch e.settings.Store {
	case "none":
		return "", nil
	case "":
		dir, err := sessions.UserFolder()
		if err != nil {
			return "", fmt.Errorf("cannot find the folder of the store: %w; name one with --store", err)
		}
		return filepath.Join(dir, "store"), nil
	}
	return filepath.Abs(e.settings.Store)
}

// needStore returns the folder of the store.
func (e *env) needStore() (string, error) {
	dir, err := e.storeFolder()
	if err == nil && dir == "" {
		err = errNoStore
	}
	return dir, err
}

// errNoStore is the error of a command that needs a store, if the settings name none.
var errNoStore = errors.New("there is no store: name a folder with --store in place of none")

// withRuns calls use with an engine that has the store of the settings. Its error is one of
// usage, unless it has an exit code.
func (e *env) withRuns(use func(*rlm.Engine) error) (err error) {
	dir, err := e.needStore()
	if err != nil {
		return Usage(err)
	}
	engine, err := rlm.New(rlm.Options{Store: dir, CacheDir: e.settings.CacheDir, Log: e.log})
	if err != nil {
		return Usage(err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := use(engine); err != nil {
		return Usage(explainMissing(err))
	}
	return nil
}

// withStore calls use with the store of the settings, to read it. Its error is one of usage, unless
// it has an exit code.
func (e *env) withStore(use func(store.Store) error) (err error) {
	dir, err := e.needStore()
	if err != nil {
		return Usage(err)
	}
	s, err := store.OpenToRead(dir)
	if err != nil {
		return Usage(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return asUsage(explainMissing(use(s)))
}

// explainMissing adds to the error of a run that does not exist where the names are.
func explainMissing(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: rlm runs list shows the stored runs", err)
	}
	return err
}

// dataFlag is the data folder of a server.
type dataFlag struct{ dir string }

// add adds the flag --data.
func (d *dataFlag) add(flags *pflag.FlagSet) {
	flags.StringVar(&d.dir, "data", "", "`folder` of the server's data (default: the folder serve beside the store)")
}

// find returns the data folder.
func (d *dataFlag) find() (string, error) {
	if d.dir != "" {
		return filepath.Abs(d.dir)
	}
	dir, err := sessions.UserFolder()
	if err != nil {
		return "", fmt.Errorf("cannot find the folder of the server's data: %w; name one with --data", err)
	}
	return filepath.Join(dir, "serve"), nil
}
