package wheels

import (
	"archive/zip"
	"errors"
	"fmt"
)

// Tree is the folder in which wheels are installed. It implements [io/fs.FS] over the packed
// files.
type Tree struct {
	zip.Reader

	wheels []*wheelReader
}

// Open returns the tree of all pins, which must be results of Resolve or ReadLock.
func Open(pins []Pin) (*Tree, error) {
	t := &Tree{}
	owner, total := map[string]string{}, uint64(0)
	for _, pin := range pins {
		w, err := openWheel(pin.Path, pin.File)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.wheels = append(t.wheels, w)

		for place, f := range w.files {
			if other := owner[place]; other != "" {
				return nil, errors.Join(fmt.Errorf(
					"cannot install %s beside %s: both have the file %q", pin.File, other, place), t.Close())
			}
			if total += f.UncompressedSize64; total > maxUnpacked {
				return nil, errors.Join(fmt.Errorf(
					"the packages have more than %d MiB", maxUnpacked>>20), t.Close())
			}
			owner[place] = pin.File
			installed := *f
			installed.Name = place
			t.File = append(t.File, &installed)
		}
	}
	return t, nil
}

// Close closes the wheels.
func (t *Tree) Close() error {
	var errs []error
	for _, w := range t.wheels {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}
