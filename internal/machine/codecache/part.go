package codecache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/attached"
)

// partAbout describes code that was appended to a program: the compressed content of a cache file.
// Two checksums detect damage: wazero's checksum of the code, and the compression's. Changing the
// code requires the right to change the program itself.
type partAbout struct {
	Key     string
	Name    string
	Hollow  int64
	Content artefact.Artefact
}

// partName names the part with the code of a module.
func partName(id string) string { return "module " + id }

// Part returns the code of a module, which Compile has cached, as a part of a program. The part
// works with this version of wazero, on processors with the same features as this one.
func (c *Cache) Part(id string) (attached.New, error) {
	if c.seal == nil {
		return attached.New{}, errNoCache
	}
	desk := c.newDesk()
	if desk == nil {
		return attached.New{}, errors.New("there is no folder for a copy")
	}
	defer desk.remove()
	key := desk.codeKey(id)
	part := attached.New{Name: partName(id)}

	packed := c.codePath(key) + "-packed"
	if c.Fetch(packed, key, func(f *File) (err error) {
		part.About = f.Head.About
		part.Data, err = f.readAll()
		return err
	}) {
		return part, nil
	}

	about := partAbout{Key: key}
	var content []byte
	if !c.Fetch(c.codePath(key), key, func(f *File) (err error) {
		about.Name, about.Hollow = f.Head.Name, f.Head.Hollow
		content, err = f.readAll()
		return err
	}) {
		return part, errors.New("the cache directory has no code to attach")
	}

	var err error
	if about.Content, part.Data, err = artefact.Compress(filepath.Base(packed), content); err != nil {
		return part, err
	}
	encoded, err := json.Marshal(about)
	if err != nil {
		return part, err
	}
	part.About = json.RawMessage(encoded)
	c.Store(packed, Head{Key: key, About: encoded}, part.Data) // compressing takes seconds
	return part, nil
}

// unpack copies the code that was appended to this program to the desk, and into the cache for the
// next process, which loads it faster. It reports whether there was code for this processor.
func (c *Cache) unpack(d *desk, id, key string) bool {
	var about partAbout
	content, err := readPart(id, key, &about)
	if err == nil {
		err = d.place(about.Name, content, about.Hollow)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.Log.Warn("the code in the program's file is not used", "error", err)
		}
		return false
	}

	c.Store(c.codePath(key), Head{Key: key, Name: about.Name, Hollow: about.Hollow}, content)
	return true
}

// readPart returns an error that is fs.ErrNotExist if the program has no code for the key.
func readPart(id, key string, about *partAbout) ([]byte, error) {
	file, part, err := attached.Find(partName(id), about)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if about.Key != key {
		return nil, fmt.Errorf("%w: it has code for other processors", fs.ErrNotExist)
	}

	packed := make([]byte, part.Size)
	if _, err := file.ReadAt(packed, part.Offset); err != nil {
		return nil, err
	}
	return about.Content.Decompress(packed)
}

// place puts a hollow module and its code on the desk.
func (d *desk) place(name string, content []byte, hollow int64) error {
	if hollow < 0 || hollow > int64(len(content)) {
		return errChanged
	}
	if err := d.create(name); err != nil {
		return err
	}
	d.hollow = content[:hollow]
	_, err := d.copied.Write(content[hollow:])
	if err != nil {
		_ = os.Remove(d.path(name)) // wazero would refuse half a file
	}
	return err
}
