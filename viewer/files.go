package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/viewer/traces"
)

// Limits on folders.
const (
	maxFiles   = 10_000
	maxFolders = 8 // levels
	poll       = 500 * time.Millisecond
)

// Files is the source of the traces in files and folders. Their IDs are their paths.
type Files struct {
	paths []string // the paths that the caller gave
}

// FindTraces returns the traces in files and folders: records of --trace, trajectories and run
// logs. A path without any trace is an error.
func FindTraces(paths ...string) (*Files, error) {
	f := &Files{paths}
	for _, path := range paths {
		items, err := findTraces(path)
		if err == nil && len(items) == 0 {
			err = fmt.Errorf("%s has no traces: no folder with %s and no file that ends with .jsonl",
				path, trajectory.File)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// List implements [Source].
func (f *Files) List(context.Context) ([]Item, error) {
	var all []Item
	for _, path := range f.paths {
		items, err := findTraces(path)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	slices.SortStableFunc(all, func(a, b Item) int { return b.Changed.Compare(a.Changed) })
	return all, nil
}

// findTraces returns the traces at a path. A folder that contains a trace is one item; in other
// folders, findTraces searches the subfolders.
func findTraces(path string) (items []Item, err error) {
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == path:
			return err
		case err != nil || strings.HasPrefix(entry.Name(), ".") && name != path:
			return skip(entry)
		case entry.IsDir() && deeper(path, name) > maxFolders:
			return fs.SkipDir
		case len(items) >= maxFiles:
			return fmt.Errorf("%s has more than %d traces: name a folder below it", path, maxFiles)
		case entry.IsDir():
			changed, ok := lastChange(name)
			if !ok {
				return nil
			}

			items = append(items, Item{ID: name, Changed: changed})
			return fs.SkipDir
		case entry.Type().IsRegular() && (name == path || strings.HasSuffix(name, ".jsonl")):
			info, err := entry.Info()
			if err == nil {
				items = append(items, Item{ID: name, Changed: info.ModTime()})
			}
			return nil // or the file was deleted meanwhile
		}
		return nil
	})
	return items, err
}

func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func deeper(path, name string) int {
	rest, err := filepath.Rel(path, name)
	if err != nil || rest == "." {
		return 0
	}
	return strings.Count(rest, string(filepath.Separator)) + 1
}

// lastChange returns when a record last changed, or false if the folder is not a record.
func lastChange(dir string) (changed time.Time, ok bool) {
	for _, name := range []string{trajectory.File, trajectory.EventsFile} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() {
			if name == trajectory.File {
				return changed, false
			}
			continue
		}

		if info.ModTime().After(changed) {
			changed = info.ModTime()
		}
	}
	return changed, true
}

// Open implements [Source].
func (f *Files) Open(ctx context.Context, id string) (*Run, error) {
	items, err := f.List(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(items, func(i Item) bool { return i.ID == id }) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	}

	stamp := stampOf(id)
	run, err := ReadPath(id)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", id, err)
	}
	run.Title = cmp.Or(run.Title, id)
	run.Stamp = stamp
	if run.Status == StatusRunning && !traces.IsWritten(id) {
		run.Status, run.Nodes[0].Status = StatusInterrupted, StatusInterrupted
	}
	return run, nil
}

// ReadPath reads the trace in a folder or a file.
func ReadPath(path string) (*Run, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return ReadTrace(path)
	}

	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readFile(file)
}

// readFile reads a trajectory or a run log, which it recognises by its first bytes.
func readFile(file io.ReadSeeker) (*Run, error) {
	begin := make([]byte, 4096)
	n, err := io.ReadFull(file, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}

	if trajectory.IsRunLog(begin[:n]) {
		return ReadRunLog(file)
	}
	return ReadTrajectory(file)
}

// stampOf returns a string that changes when a trace changes. It is empty while there is no trace.
func stampOf(path string) string {
	stamp := ""
	for _, name := range []string{"", trajectory.File, trajectory.EventsFile} {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil && info.Mode().IsRegular() {
			stamp += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), " ")
		}
	}
	if stamp == "" {
		return ""
	}
	return stamp + fmt.Sprint(traces.IsWritten(path))
}

// Wait implements [Source]. It checks the files periodically.
func (f *Files) Wait(ctx context.Context, id string, run *Run) error {
	return Poll(ctx, run, func() (bool, error) {
		stamp := stampOf(id) // an active run changes its folder
		return stamp != "" && stamp != run.Stamp, nil
	})
}

// Poll waits until changed returns true. It returns [ErrEnded] immediately for a run that has
// ended. A parked run has not ended, and an interrupted run may continue in another process.
func Poll(ctx context.Context, run *Run, changed func() (bool, error)) error {
	if !slices.Contains([]string{StatusRunning, StatusParked, StatusInterrupted}, run.Status) {
		return ErrEnded
	}

	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if done, err := changed(); done || err != nil {
			return err
		}
	}
}
