package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
)

// Keeper keeps conversations in a store. It also reads sessions of earlier versions, which are
// files next to the store. The first Save of such a session moves it into the store.
type Keeper struct {
	store *sqlitestore.Store // nil if the store does not exist yet
	files string             // the folder of the files
}

// Use opens the keeper of a store's folder, and makes the folder if necessary.
func Use(dir string) (*Keeper, error) {
	s, err := sqlitestore.Open(dir)
	if err != nil {
		return nil, err
	}
	return newKeeper(s)
}

// Look opens a read-only keeper. Its folder may be missing or read-only.
func Look(dir string) (*Keeper, error) {
	s, err := sqlitestore.OpenReadOnly(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return newKeeper(nil)
	}
	if err != nil {
		return Use(dir) // the store may be of an earlier version
	}
	return newKeeper(s)
}

func newKeeper(s *sqlitestore.Store) (*Keeper, error) {
	k := &Keeper{store: s}
	dir, err := UserFolder()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot find the folder of sessions: %w", err), k.Close())
	}
	k.files = filepath.Join(dir, "sessions")
	return k, nil
}

// Close closes the store.
func (k *Keeper) Close() error {
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}

// Open opens the conversation with that name in a store's folder. A conversation that does not
// exist is empty.
func Open(ctx context.Context, dir, name string) (*Kept, error) {
	keeper, err := Use(dir)
	if err != nil {
		return nil, err
	}

	lease, err := keeper.claim(ctx, name)
	if err != nil {
		return nil, errors.Join(err, keeper.Close())
	}

	kept := &Kept{keeper: keeper, lease: lease}
	if err := kept.load(ctx); err != nil {
		err = fmt.Errorf("cannot continue session %s: %w; if you do not need it, delete it: rlm sessions rm %s",
			name, err, name)
		return nil, errors.Join(err, kept.Close())
	}
	return kept, nil
}

// id returns the identity of a session's log.
func (k *Keeper) id(name string) store.ID { return store.ID{Kind: store.Session, Name: name} }

// claim takes the lease of a session, and creates its log if necessary.
func (k *Keeper) claim(ctx context.Context, name string) (store.Lease, error) {
	id := k.id(name)
	if err := k.store.Create(ctx, store.Log{ID: id}); err != nil && !errors.Is(err, store.ErrExists) {
		return store.Lease{}, err
	}
	return k.store.Acquire(ctx, id)
}

// entries returns a session's entries in the store. A session that does not exist has none.
func (k *Keeper) entries(ctx context.Context, name string, kinds ...string) ([]store.Entry, error) {
	if k.store == nil {
		return nil, nil
	}
	entries, err := k.store.Entries(ctx, k.id(name), store.Query{Kinds: kinds})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return entries, err
}

// read decodes a conversation and its snapshot from entries.
func (k *Keeper) read(ctx context.Context, entries []store.Entry) (Conversation, []byte, error) {
	return decode(entries, func(digest string) ([]byte, error) { return k.store.Blob(ctx, digest) })
}

// openFile opens the file of a session, or returns nil if there is none.
func (k *Keeper) openFile(name string) (*os.File, error) {
	if err := k.id(name).Check(); err != nil {
		return nil, err
	}
	path := filepath.Join(k.files, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // documented: there is none
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// removeFile deletes the file of a session, if it exists.
func (k *Keeper) removeFile(name string) error {
	err := os.Remove(filepath.Join(k.files, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
