package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rlmhq/rlm/internal/machine/filelock"
)

// These bounds apply to the file.
const (
	maxFile    = 1 << 20 // bytes
	maxEntries = 1_000
)

// In the file, these values denote the place of a key.
const (
	inFile   = "file"
	inSystem = "keyring"
)

// entry is a stored key in the file.
type entry struct {
	In  string `json:"in"`
	Key string `json:"key,omitempty"`
}

// content is the content of the file.
type content struct {
	Version int              `json:"version"`
	Keys    map[string]entry `json:"keys"`
}

// read returns the keys in the file, by provider. It refuses a file that other users can read or
// change.
func (r Ring) read() (map[string]entry, error) {
	if r.File == "" {
		return map[string]entry{}, nil
	}
	text, err := readPrivate(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]entry{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the keys in %s: %w", r.File, err)
	}

	all, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use the keys in %s: %w: remove the file, and set the keys again", r.File, err)
	}
	return all, nil
}

// readPrivate returns the content of a regular file that only its user can read.
func readPrivate(path string) ([]byte, error) {
	// A pipe would block the open.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}

	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("other users can read it (mode %04o): run chmod 600 %s, "+
			"and replace the keys if others may have read them", mode, path)
	}

	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return text, err
}

// decode decodes the file strictly. Its errors contain no content of the file.
func decode(text []byte) (map[string]entry, error) {
	var c content
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&c) != nil {
		return nil, errors.New("it is not a file of rlm keys set")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one JSON value")
	}
	if c.Version != 1 || len(c.Keys) > maxEntries {
		return nil, fmt.Errorf("it has version %d and %d keys, this rlm reads version 1 and at most %d keys",
			c.Version, len(c.Keys), maxEntries)
	}

	for provider, e := range c.Keys {
		switch {
		case e.In == inFile && Check(e.Key) == nil:
		case e.In == inSystem && e.Key == "":
		default:
			return nil, fmt.Errorf("its entry %.40q is damaged", provider)
		}
	}
	if c.Keys == nil {
		c.Keys = map[string]entry{}
	}
	return c.Keys, nil
}

// change changes the keys in the file atomically.
func (r Ring) change(edit func(all map[string]entry) error) (err error) {
	if r.File == "" {
		return errors.New("there is no folder for keys: set HOME")
	}
	if err := os.MkdirAll(filepath.Dir(r.File), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(r.File+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if got, err := filelock.Try(lock); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	} else if !got && err == nil {
		return errors.New("another rlm is changing the keys: try again")
	}

	all, err := r.read()
	if err != nil {
		return err
	}
	if err := edit(all); err != nil {
		return err
	}
	if len(all) > maxEntries {
		return fmt.Errorf("there are more than %d keys", maxEntries)
	}
	text, err := json.MarshalIndent(content{1, all}, "", "  ")
	if err != nil {
		return err
	}
	return replace(r.File, append(text, '\n'))
}

// replace replaces a file with one of mode 0600.
func replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".keys-") // with mode 0600
	if err != nil {
		return err
	}

	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
