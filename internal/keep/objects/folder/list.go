package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

// The files that Put writes before they have a digest are in the folder itself, not in a subfolder.
const (
	tempPrefix = ".new-"
	// leftOver is the age from which such a file is assumed to have no writer.
	leftOver = 24 * time.Hour
)

// List implements [objects.Store]. An object with a damaged header has the size -1, so that damage
// does not hide the other objects. What is not a regular file is no object.
//
// List also removes the remains of writers that crashed more than a day ago. Whoever collects
// unused objects lists them first, without knowing what kind of store it is, so no other method
// would be called.
func (s *Store) List(ctx context.Context, each func(objects.Object) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("cannot list the objects in %q: %w", s.dir, err)
	}

	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), tempPrefix) {
			s.removeLeftOver(entry)
		}
		if !entry.IsDir() || len(entry.Name()) != 2 {
			continue
		}
		if err := s.listShard(ctx, entry.Name(), each); err != nil {
			return err
		}
	}
	return nil
}

// listShard lists the objects of a subfolder.
func (s *Store) listShard(ctx context.Context, name string, each func(objects.Object) error) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, name))
	if err != nil {
		return fmt.Errorf("cannot list the objects in %q: %w", s.dir, err)
	}

	for _, entry := range entries {
		digest := entry.Name()
		if !entry.Type().IsRegular() || !objects.IsDigest(digest) || digest[:2] != name {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		o, err := s.stat(digest)
		if errors.Is(err, objects.ErrDamaged) {
			o, err = describeDamaged(entry)
		}
		if errors.Is(err, fs.ErrNotExist) { // removed in the meantime
			continue
		}
		if err != nil {
			return s.explain("list", digest, err)
		}
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

// describeDamaged describes an object whose file tells no size.
func describeDamaged(entry fs.DirEntry) (objects.Object, error) {
	info, err := entry.Info()
	if err != nil {
		return objects.Object{}, err
	}
	return objects.Object{Digest: entry.Name(), Size: -1, Stored: info.ModTime()}, nil
}

// removeLeftOver removes a file that no process writes any more. Without success, the next List
// tries again.
func (s *Store) removeLeftOver(entry fs.DirEntry) {
	info, err := entry.Info()
	if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftOver {
		_ = os.Remove(filepath.Join(s.dir, entry.Name()))
	}
}
