// Package keyring keeps the keys of model providers for later commands: in the keyring of the
// system, or in a file that only the user can read.
//
// The file lists all keys and their places, so that looking up a provider without a key starts no
// program.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Ring is a set of keys.
type Ring struct {
	// File is the path of the file. Its folder may be missing.
	File string
}

// Entry describes a stored key, without the key itself.
type Entry struct {
	Provider string `json:"provider"`
	Place    string `json:"kept_in"` // for people
}

// MaxKey is the maximum length of a key, in bytes.
const MaxKey = 4 << 10

// Check returns an error for a string that cannot be a key. The error does not contain the string.
func Check(key string) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) > MaxKey:
		return fmt.Errorf("the key has more than %d bytes", MaxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the key contains a space or a character that is not ASCII")
	}
	return nil
}

// Get returns the key of a provider and its place, or "" if there is none.
func (r Ring) Get(ctx context.Context, provider string) (key, place string, err error) {
	all, err := r.read()
	if err != nil {
		return "", "", err
	}
	stored, ok := all[provider]
	if !ok {
		return "", "", nil
	}

	place = r.placeOf(stored)
	if stored.In == inFile {
		return stored.Key, place, nil
	}
	key, err = systemKeyring().lookUp(ctx, provider)
	if err != nil {
		return "", place, fmt.Errorf("cannot read the key of %s from %s: %w", provider, place, err)
	}
	return key, place, nil
}

// Set stores the key of a provider in place of an earlier one: in the system's keyring, if that
// works and onlyFile is not set, and otherwise in the file. It returns the place.
func (r Ring) Set(ctx context.Context, provider, key string, onlyFile bool) (place string, err error) {
	if err := Check(key); err != nil {
		return "", err
	}

	var before entry
	stored := entry{In: inFile, Key: key}
	err = r.change(func(all map[string]entry) error {
		before = all[provider]
		if !onlyFile && systemKeyring().store(ctx, provider, key) == nil {
			stored = entry{In: inSystem}
		}
		all[provider] = stored
		return ctx.Err()
	})
	if err != nil {
		return "", err
	}

	if before.In == inSystem && stored.In == inFile {
		_ = systemKeyring().remove(ctx, provider) // from now on, the key in the file is used
	}
	return r.placeOf(stored), nil
}

// Remove removes the key of a provider. It reports whether there was one. If the system's keyring
// fails to remove the key, the Ring still drops its entry, and the error reports this.
func (r Ring) Remove(ctx context.Context, provider string) (found bool, err error) {
	all, err := r.read()
	if err != nil {
		return false, err
	}
	stored, found := all[provider]
	if !found {
		return false, nil
	}

	if stored.In == inSystem {
		if err = systemKeyring().remove(ctx, provider); err != nil {
			err = fmt.Errorf("cannot remove the key of %s from %s, where it may still be: %w",
				provider, systemPlace, err)
		}
	}
	return true, errors.Join(err, r.change(func(all map[string]entry) error {
		delete(all, provider)
		return nil
	}))
}

// List returns the stored keys, sorted by provider.
func (r Ring) List() ([]Entry, error) {
	all, err := r.read()
	if err != nil {
		return nil, err
	}

	list := make([]Entry, 0, len(all))
	for _, provider := range slices.Sorted(maps.Keys(all)) {
		list = append(list, Entry{provider, r.placeOf(all[provider])})
	}
	return list, nil
}

// systemPlace names the system's keyring for people.
const systemPlace = "the system's keyring"

func (r Ring) placeOf(e entry) string {
	if e.In == inSystem {
		return systemPlace
	}
	return r.File
}
