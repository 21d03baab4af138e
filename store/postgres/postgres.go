// Package postgres makes the store of a fleet: any number of processes share it, on any number of
// machines.
//
//	engine, err := rlm.New(rlm.Options{Store: postgres.Database(url, postgres.Options{Objects: o})})
//
// It is a package of its own, because it links a client of PostgreSQL, which a program with a store
// in a folder does not need.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/pgstore"
)

// Options configure a store.
type Options struct {
	// Schema is the schema of the store's tables: up to 63 lower-case letters, digits and
	// underscores. The default is "rlm". Stores with different schemas may share a database.
	Schema string
	// Objects keeps contents of more than 64 KiB. It is required, and nothing else may keep
	// anything there.
	Objects Objects
}

// Objects is a place for large contents.
type Objects interface {
	// String names the place in messages.
	String() string
}

// objectsOpener is implemented by the places of this module.
type objectsOpener interface {
	OpenObjects() (objects.Store, error)
}

// Database returns the store in a database of PostgreSQL 12 or later. The URL has the form
// postgres://user@host/database and takes the parameters of libpq, such as several hosts with
// target_session_attrs=read-write. The engine opens the store at its first use, and then creates its
// tables if necessary. A standby can only be read.
func Database(address string, o Options) rlm.Store { return database{address, o} }

// database is a store that is not open.
type database struct {
	address string
	options Options
}

var _ store.Opener = database{}

// String returns the address without the password and the parameters.
func (d database) String() string {
	u, err := url.Parse(d.address)
	if err != nil || u.Host == "" {
		return "a database of PostgreSQL"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// Open implements the contract of package internal/keep/store.
func (d database) Open(reads bool) (store.Store, error) {
	if d.options.Objects == nil {
		return nil, errors.New("cannot open the store: it needs a place for large contents")
	}
	opener, ok := d.options.Objects.(objectsOpener)
	if !ok {
		return nil, fmt.Errorf("cannot keep contents in %s: pass a place of this module", d.options.Objects)
	}

	kept, err := opener.OpenObjects()
	if err != nil {
		return nil, err
	}
	s, err := pgstore.Open(context.Background(), d.address, pgstore.Options{
		Schema: d.options.Schema, Objects: kept, Reads: reads,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
