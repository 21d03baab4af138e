// Package store makes the stores in which engines keep named runs:
//
//	engine, err := rlm.New(rlm.Options{Store: store.Folder("runs")})
//
// It links SQLite, which a program without named runs does not need.
package store

import (
	"errors"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
)

// Folder returns the store in a folder: a SQLite database, with large contents in files next to it.
// The engine opens the store at its first use, and then creates the folder if necessary. A
// read-only folder can only be read. Several processes may use a folder at the same time.
func Folder(path string) rlm.Store { return folder(path) }

// folder is the path of a folder.
type folder string

var _ store.Opener = folder("")

func (f folder) String() string { return string(f) }

// Open implements the contract of package internal/keep/store.
func (f folder) Open(reads bool) (store.Store, error) {
	if f == "" {
		return nil, errors.New("cannot open the store: name its folder")
	}
	if reads {
		return opened(sqlitestore.OpenToRead(string(f)))
	}
	return opened(sqlitestore.Open(string(f)))
}

// opened prevents a nil pointer, returned with an error, from becoming a non-nil interface.
func opened(s *sqlitestore.Store, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
