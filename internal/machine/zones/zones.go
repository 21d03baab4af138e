// Package zones contains the time zones of IANA's database, for guests without files. The archive
// was copied from the Go toolchain by `make zones`; its data is in the public domain.
package zones

import (
	"archive/zip"
	"bytes"
	_ "embed" // the archive
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

//go:embed zones.zip
var archive []byte

// ErrUnknown reports a name that belongs to no zone.
var ErrUnknown = errors.New("unknown time zone")

// maxZone bounds the data of one zone, in bytes. The largest has 4 KiB.
const maxZone = 64 << 10

// zones contains the zones of the archive.
type zones struct {
	files map[string]*zip.File
	names []string // sorted
}

// open reads the archive's directory.
var open = sync.OnceValue(func() zones {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic("zones: the embedded archive: " + err.Error())
	}

	z := zones{files: make(map[string]*zip.File, len(r.File))}
	for _, f := range r.File {
		if !strings.HasSuffix(f.Name, "/") { // a folder
			z.files[f.Name] = f
			z.names = append(z.names, f.Name)
		}
	}
	slices.Sort(z.names)
	return z
})

// Names returns the sorted names of all zones, such as Europe/Berlin. The caller must not change
// the slice.
func Names() []string { return open().names }

// Read returns the data of a zone in the format TZif. The name must be one of Names, so it never
// leads to a file of the host. Any other name is an error that wraps [ErrUnknown].
func Read(name string) ([]byte, error) {
	f := open().files[name]
	if f == nil {
		return nil, fmt.Errorf("%w %.100q", ErrUnknown, name)
	}

	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("cannot read the time zone %s: %w", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxZone))
	if err != nil {
		return nil, fmt.Errorf("cannot read the time zone %s: %w", name, err)
	}
	return data, nil
}
