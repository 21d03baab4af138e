package sessions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/snapshot"
)

// Info describes a session that is kept.
type Info struct {
	Name      string    `json:"name"`
	Changed   time.Time `json:"changed"`
	Bytes     int64     `json:"bytes"` // on the disk
	Contexts  []string  `json:"contexts"`
	Questions int       `json:"questions"`
	// Damage says why the session cannot be continued, empty if it can.
	Damage string `json:"damage,omitempty"`
}

// List describes the sessions that are kept, sorted by name.
func List() ([]Info, error) {
	var list []Info
	for _, name := range Names() {
		path, err := Path(name)
		if err != nil {
			return nil, err
		}
		state, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was just deleted
		}
		if err != nil {
			return nil, err
		}

		info := Info{Name: name, Changed: state.ModTime(), Bytes: state.Size(), Contexts: []string{}}
		f, err := Open(name)
		if err != nil {
			info.Damage = err.Error()
			list = append(list, info)
			continue
		}

		for i := range f.Contexts {
			info.Contexts = append(info.Contexts, f.Contexts[i].String())
		}
		info.Questions = len(f.Histories)
		list = append(list, info)
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// String names the context.
func (c *Context) String() string {
	switch {
	case c.Path != "":
		return c.Path
	case len(c.Paths) > 0:
		return strings.Join(c.Paths, ", ")
	}
	return "a copy of " + c.Name
}

// Fork copies a session to a new name.
func Fork(name, as string) error {
	path, err := Path(name)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot fork session %s: %w", name, err)
	}
	defer file.Close()

	return Import(file, as, true)
}

// Export writes the file of a session.
func Export(name string, w io.Writer) error {
	f, err := Open(name) // not a damaged one
	if err != nil {
		return err
	}
	defer f.Close()

	if f.file == nil {
		return fmt.Errorf("there is no session %s", name)
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(w, f.file)
	return err
}

// maxFile bounds the file of a session, in bytes.
const maxFile = maxHeader + MaxState + 1<<20

// Import keeps what Export has written under a new name. The file may come from someone else, who
// must not choose which files of this machine snippets read: without allowPaths, a session
// whose contexts are files is refused.
func Import(r io.Reader, name string, allowPaths bool) (err error) {
	path, err := Path(name)
	if err != nil {
		return err
	}

	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close(), os.Remove(temp.Name())) }()

	n, err := io.Copy(temp, io.LimitReader(r, maxFile+1))
	if err == nil && n > maxFile {
		err = fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	if err == nil {
		err = checkImport(temp, allowPaths)
	}
	if err == nil {
		err = temp.Sync()
	}
	if err == nil {
		err = os.Link(temp.Name(), path)
	}

	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("there is a session %s already: choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("cannot keep session %s: %w", name, err)
	}
	return nil
}

// checkImport refuses a file that is no session, or whose contexts are files.
func checkImport(file *os.File, allowPaths bool) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	f := &File{file: file}
	if err := f.load(); err != nil {
		return err
	}
	if err := f.checkSnapshot(); err != nil || allowPaths {
		return err
	}

	c := f.Conversation
	for i := range c.Contexts {
		if c.Contexts[i].Path != "" || len(c.Contexts[i].Paths) > 0 {
			return fmt.Errorf("its code would read %s of this machine: pass --allow-paths if it may",
				c.Contexts[i].String())
		}
	}
	return nil
}

// checkSnapshot reads the snapshot to its end. No session can be restored from a damaged one.
func (f *File) checkSnapshot() error {
	if f.expand != nil {
		defer f.expand.Close()
	}
	_, _, err := snapshot.Read(io.LimitReader(f.Snapshot(), MaxState+1))
	if err != nil {
		return fmt.Errorf("cannot read its variables: %w", err)
	}
	return nil
}

// Remove deletes a session.
func Remove(name string) error {
	path, err := Path(name)
	if err != nil {
		return err
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no session %s", name)
	}
	return err
}
