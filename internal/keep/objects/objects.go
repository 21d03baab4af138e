// Package objects defines the storage of large bytes that outlive a process: contexts, files,
// states, and large entries of logs.
//
// An object is named by the SHA-256 of its bytes, so it never changes, and equal bytes are stored
// once. This package is the contract. Packages objects/folder and objects/s3 implement it, and
// package internal/testing/objectstest is the suite for any other implementation.
package objects

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Store keeps objects. It is safe for concurrent use, also by several processes.
type Store interface {
	// Put stores the bytes of a reader. When it returns, they survive the end of the process and of
	// the machine.
	Put(ctx context.Context, from io.Reader) (Object, error)
	// Open returns the bytes of an object, or [ErrNotFound]. The reader ends with [ErrDamaged]
	// instead of io.EOF if the bytes are not those that were stored.
	Open(ctx context.Context, digest string) (io.ReadCloser, error)
	// Stat describes an object, or returns [ErrNotFound].
	Stat(ctx context.Context, digest string) (Object, error)
	// Remove deletes an object. It is no error if there is none.
	Remove(ctx context.Context, digest string) error
	// List calls a function for each object, in the order of the digests. It ends with the first
	// error of the function.
	List(ctx context.Context, each func(Object) error) error
}

// Object describes stored bytes.
type Object struct {
	// Digest is the SHA-256 of the bytes, in lower-case hexadecimal.
	Digest string
	// Size is the number of bytes.
	Size int64
	// Stored is the time at which the bytes were last put. Put renews it if the object exists, so
	// that a collector can spare objects to which nothing refers yet.
	Stored time.Time
}

// These are the errors of a store. Test for them with errors.Is.
var (
	ErrNotFound = errors.New("the object does not exist")
	// ErrDamaged reports that bytes read differ from bytes stored.
	ErrDamaged = damage.Kind("the object is damaged")
)

var digestForm = lazyregexp.New(`^[0-9a-f]{64}$`)

// IsDigest reports whether a string can name an object.
func IsDigest(s string) bool { return digestForm.MatchString(s) }
