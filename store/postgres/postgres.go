// Package postgres makes the store of a fleet: any number of processes share it, on any number of
// machines.
//
//	engine, err := rlm.New(rlm.Options{Store: postgres.Database(url, postgres.Options{
//		Objects: "s3://bucket/rlm",
//	})})
//
// It is a package of its own, because it links a client of PostgreSQL, which a program with a store
// in a folder does not need.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/objects/folder"
	"github.com/rlmhq/rlm/internal/keep/objects/s3"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/pgstore"
)

// Options configure a store.
type Options struct {
	// Schema is the schema of the store's tables: up to 63 lower-case letters, digits and
	// underscores. The default is "rlm". Stores with different schemas may share a database.
	Schema string
	// Objects is the place of contents of more than 64 KiB: s3://BUCKET/PREFIX, with the parameters
	// endpoint, region and style, or a folder that all processes share. It is required, and nothing
	// else may keep anything there.
	Objects string
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
	ctx := context.Background()
	kept, closeObjects, err := openObjects(ctx, d.options.Objects)
	if err != nil {
		return nil, err
	}
	s, err := pgstore.Open(ctx, d.address, pgstore.Options{
		Schema: d.options.Schema, Objects: kept, Reads: reads,
	})
	if err != nil {
		closeObjects()
		return nil, err
	}
	return &fleet{s, closeObjects}, nil
}

// fleet is a store that closes its objects, too.
type fleet struct {
	*pgstore.Store

	closeObjects func()
}

var _ store.Watcher = (*fleet)(nil)

// Close closes the store, and then its objects.
func (f *fleet) Close() error {
	defer f.closeObjects()
	return f.Store.Close()
}

// openObjects opens a place of large contents.
func openObjects(ctx context.Context, place string) (kept objects.Store, closeObjects func(), err error) {
	switch {
	case place == "":
		return nil, nil, errors.New("cannot open the store: name the place of large contents, Objects: " +
			"s3://BUCKET/PREFIX or a folder")
	case strings.HasPrefix(place, "s3://"):
		s, err := s3.Open(ctx, place, s3.Options{})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	case strings.Contains(place, "://"):
		return nil, nil, fmt.Errorf("cannot keep contents at %.200q: use s3://BUCKET/PREFIX or a folder", place)
	}
	s, err := folder.Open(place)
	if err != nil {
		return nil, nil, err
	}
	return s, func() {}, nil
}
