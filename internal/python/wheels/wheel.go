package wheels

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/textproto"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	version "github.com/aquasecurity/go-pep440-version"
)

// Bounds of a wheel, checked before anything is unpacked.
const (
	maxWheel    = 1 << 30  // bytes, packed
	maxUnpacked = 4 << 30  // bytes, all files
	maxFile     = 1 << 30  // bytes, each file
	maxEntries  = 50_000   // files
	maxName     = 400      // bytes of a path
	maxDepth    = 30       // nesting of folders
	maxRatio    = 200      // unpacked to packed, for a file above freeRatio
	freeRatio   = 16 << 20 // libraries have padding
	maxMetadata = 4 << 20  // bytes
	maxRequires = 2_000
)

// wheelReader is an open wheel with checked names and sizes.
type wheelReader struct {
	file     string // file name
	archive  *zip.ReadCloser
	files    map[string]*zip.File // by installed path
	name     string               // normalised, from its metadata
	version  string               // in canonical spelling
	requires []string
}

// Close closes the wheel's file.
func (w *wheelReader) Close() error { return w.archive.Close() }

// openWheel opens the wheel at a path. It unpacks only the metadata.
func openWheel(at, file string) (w *wheelReader, err error) {
	info, err := os.Stat(at)
	if err != nil {
		return nil, fmt.Errorf("cannot read the wheel %s: %w", file, err)
	}
	if info.Size() > maxWheel {
		return nil, fmt.Errorf("cannot read the wheel %s: it has more than %d MiB", file, maxWheel>>20)
	}

	archive, err := zip.OpenReader(at)
	if err != nil {
		return nil, fmt.Errorf("cannot read the wheel %s: %w", file, err)
	}

	w = &wheelReader{file: file, archive: archive, files: map[string]*zip.File{}}
	if err = w.list(); err == nil {
		err = w.readMetadata()
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot use the wheel %s: %w", file, err), archive.Close())
	}
	return w, nil
}

// list checks the names and sizes of all files, and records where each is installed.
func (w *wheelReader) list() error {
	if len(w.archive.File) > maxEntries {
		return fmt.Errorf("it has %d files, more than %d", len(w.archive.File), maxEntries)
	}
	total := uint64(0)
	for _, f := range w.archive.File {
		if strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0 {
			continue // a folder
		}

		if err := checkEntry(f); err != nil {
			return err
		}
		if total += f.UncompressedSize64; total > maxUnpacked {
			return fmt.Errorf("its files have more than %d MiB", maxUnpacked>>20)
		}

		place, isWanted := placeOf(f.Name)
		if !isWanted {
			continue
		}

		if w.files[place] != nil {
			return fmt.Errorf("it has the file %q twice", place)
		}
		w.files[place] = f
	}
	return w.checkFolders()
}

// checkFolders refuses a path that is both a file and a folder.
func (w *wheelReader) checkFolders() error {
	for name := range w.files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if w.files[dir] != nil {
				return fmt.Errorf("%q is a file and a folder", dir)
			}
		}
	}
	return nil
}

// checkEntry checks the name, the kind and the size of a file.
func checkEntry(f *zip.File) error {
	name := f.Name
	bad := func(r rune) bool { return unicode.IsControl(r) || r == '\\' || r == ':' }
	switch {
	case len(name) > maxName || strings.Count(name, "/") >= maxDepth,
		!utf8.ValidString(name) || strings.ContainsFunc(name, bad) || !fs.ValidPath(name):
		return fmt.Errorf("it has a file with the name %.100q", name)
	case !f.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file", name)
	case f.UncompressedSize64 > maxFile:
		return fmt.Errorf("%q has more than %d MiB", name, maxFile>>20)
	case f.UncompressedSize64 > freeRatio && f.UncompressedSize64/maxRatio > f.CompressedSize64:
		return fmt.Errorf("%q grows by more than %d times", name, maxRatio)
	}
	return nil
}

// placeOf returns the path at which a file is installed. From the folder NAME.data, only libraries
// are installed, because its scripts and headers are for use in a shell. Files that make Python run
// code at startup are never installed.
func placeOf(name string) (place string, isWanted bool) {
	top, rest, _ := strings.Cut(name, "/")
	if strings.HasSuffix(top, ".data") {
		kind, inside, _ := strings.Cut(rest, "/")
		if kind != "purelib" && kind != "platlib" || inside == "" {
			return "", false
		}
		name = inside
	}
	return name, !runsAtStart(name)
}

// runsAtStart reports whether Python runs a file with this name at startup.
func runsAtStart(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	module, _, _ := strings.Cut(top, ".")
	isPath := path.Ext(top) == ".pth" || path.Ext(top) == ".start"
	return isPath || module == "sitecustomize" || module == "usercustomize"
}

// readMetadata reads the name, the version and the requirements.
func (w *wheelReader) readMetadata() error {
	folder, err := w.infoFolder()
	if err != nil {
		return err
	}

	f := w.files[folder+"/METADATA"]
	if f == nil || f.UncompressedSize64 > maxMetadata {
		return errors.New("its METADATA is missing or too large")
	}

	data, err := readEntry(f)
	if err != nil {
		return err
	}

	head := textproto.NewReader(bufio.NewReader(strings.NewReader(data + "\n\n")))
	fields, err := head.ReadMIMEHeader()
	if err != nil {
		return errors.New("its METADATA cannot be read")
	}

	v, err := version.Parse(fields.Get("Version"))
	if err != nil {
		return fmt.Errorf("its METADATA has the invalid version %.50q", fields.Get("Version"))
	}
	w.name, w.version = Normalise(fields.Get("Name")), v.String()
	if w.requires = fields["Requires-Dist"]; len(w.requires) > maxRequires {
		return fmt.Errorf("it requires %d packages", len(w.requires))
	}
	return nil
}

// infoFolder returns the only folder NAME.dist-info.
func (w *wheelReader) infoFolder() (string, error) {
	found := ""
	for name := range w.files {
		top, _, _ := strings.Cut(name, "/")
		if !strings.HasSuffix(top, ".dist-info") || top == found {
			continue
		}
		if found != "" {
			return "", errors.New("it has two folders with metadata")
		}
		found = top
	}
	if found == "" {
		return "", errors.New("it has no folder with metadata")
	}
	return found, nil
}

// readEntry unpacks a file, up to its declared size.
func readEntry(f *zip.File) (string, error) {
	in, err := f.Open()
	if err != nil {
		return "", fmt.Errorf("cannot unpack %q: %w", f.Name, err)
	}
	defer in.Close()

	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(in, int64(f.UncompressedSize64)+1)) //nolint:gosec // at most maxFile
	if err != nil || n != int64(f.UncompressedSize64) {                      //nolint:gosec // as above
		return "", fmt.Errorf("cannot unpack %q: its size is not what the wheel says", f.Name)
	}
	return b.String(), nil
}
