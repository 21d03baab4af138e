package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/trajectory"
	"github.com/rlmhq/rlm/repl/reflect"
)

// Bounds of the traces of one command.
const (
	maxTrace      = 32 << 20 // bytes of all traces together
	maxTraceFiles = 10_000
)

// traceEndings are the ends of names by which a folder's traces are known.
var traceEndings = []string{".json", ".jsonl", ".ndjson", ".traj", ".txt"}

// traceSource is the content of a file, or of the record of a loop.
type traceSource struct {
	name string
	text string
}

// readTraces reads all traces, and says on stderr what was found.
func (f *reflectFlags) readTraces(e *env, names []string) (reflect.Subject, error) {
	if !slices.Contains(reflect.TraceFormats(), f.format) {
		return reflect.Subject{}, fmt.Errorf("unknown format %q: give one of %s",
			f.format, strings.Join(reflect.TraceFormats(), ", "))
	}
	sources, err := collectTraces(e, names)
	if err != nil {
		return reflect.Subject{}, err
	}

	subjects := make([]reflect.Subject, len(sources))
	for i, source := range sources {
		if subjects[i], err = reflect.ParseTrace([]byte(source.text), f.format); err != nil {
			return reflect.Subject{}, fmt.Errorf("%s: %w", source.name, err)
		}
		subjects[i].Name = source.name
		if !f.quiet {
			_, _ = fmt.Fprintf(e.stderr, "rlm: trace %s: %s\n", escape(source.name), escape(subjects[i].Found))
		}
	}

	return reflect.Join(subjects...)
}

// collectTraces reads the files and folders that a user named, once each.
func collectTraces(e *env, names []string) ([]traceSource, error) {
	var c traceCollector
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("the trace %s is given twice", name)
		}
		info, err := os.Stat(name)
		if name != "-" && err == nil && info.IsDir() {
			if err := c.addFolder(name); err != nil {
				return nil, err
			}
			continue
		}

		text, err := readFile(e, name, maxTrace, "the trace")
		if err == nil {
			err = c.add(name, text)
		}
		if err != nil {
			return nil, err
		}
	}

	return c.sources, nil
}

// traceCollector collects traces within the bounds.
type traceCollector struct {
	sources []traceSource
	bytes   int
}

func (c *traceCollector) add(name, text string) error {
	c.sources = append(c.sources, traceSource{name, text})
	if c.bytes += len(text); c.bytes > maxTrace {
		return fmt.Errorf("the traces have more than %d MiB together: give fewer", maxTrace>>20)
	}
	return nil
}

// addFolder adds the traces in a folder and the folders in it, by their names. Links cannot
// lead out of it, and hidden files are no traces.
func (c *traceCollector) addFolder(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("cannot read the trace: %w", err)
	}
	defer root.Close()
	before := len(c.sources)

	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || !slices.Contains(traceEndings, path.Ext(name)):
			return nil
		case len(c.sources) >= maxTraceFiles:
			return fmt.Errorf("there are more than %d traces: give fewer", maxTraceFiles)
		}

		return c.addEntry(root, dir, name)
	})
	if err != nil {
		return fmt.Errorf("cannot read the traces in %s: %w", dir, err)
	}

	if len(c.sources) == before {
		return fmt.Errorf("there is no trace in %s: its files end with none of %s",
			dir, strings.Join(traceEndings, ", "))
	}
	return nil
}

// addEntry adds a file of a folder. Our own record of a loop is one trace: the turns, and
// before them the events, which have the question.
func (c *traceCollector) addEntry(root *os.Root, dir, name string) error {
	folder := path.Dir(name)
	shown := filepath.Join(dir, filepath.FromSlash(name))
	before := ""
	switch path.Base(name) {
	case trajectory.EventsFile:
		if _, err := root.Stat(path.Join(folder, trajectory.File)); err == nil {
			return nil
		}
	case trajectory.File:
		events, err := readEntry(root, path.Join(folder, trajectory.EventsFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		before = events
	}

	text, err := readEntry(root, name)
	if err != nil {
		return err
	}
	return c.add(shown, before+text)
}

// readEntry reads a regular file of a folder.
func readEntry(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}

	file, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return readAll(file, maxTrace, "the trace "+name)
}
