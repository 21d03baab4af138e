package loops

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl/reflect"
)

// Limits on the traces of one command.
const (
	maxTrace      = 32 << 20 // bytes of all traces of a reflection
	maxTraces     = 64 << 20 // bytes of all traces to distill
	maxTraceFiles = 10_000
)

// traceEndings are the file extensions of the traces in a folder.
var traceEndings = []string{".json", ".jsonl", ".ndjson", ".traj", ".txt"}

// traceSource is the content of a file or of a loop's record.
type traceSource struct {
	name string
	text string
}

// readTraces reads all traces, and describes them on stderr.
func (f *reflectFlags) readTraces(e *cli.Env, names []string) (reflect.Subject, error) {
	if err := checkFormat(f.format); err != nil {
		return reflect.Subject{}, err
	}
	found, err := collectTraces(e, names, maxTrace)
	if err != nil {
		return reflect.Subject{}, err
	}

	subjects := make([]reflect.Subject, len(found.sources))
	for i, source := range found.sources {
		if subjects[i], err = reflect.ParseTrace([]byte(source.text), f.format); err != nil {
			return reflect.Subject{}, fmt.Errorf("%s: %w", source.name, err)
		}
		subjects[i].Name = source.name
		found.notes = append(found.notes, source.name+": "+subjects[i].Found)
	}
	for _, note := range found.notes {
		if !f.quiet {
			_, _ = fmt.Fprintf(e.Stderr, "rlm: trace %s\n", cli.Escape(note))
		}
	}

	return reflect.Join(subjects...)
}

// checkFormat refuses an unknown format.
func checkFormat(format string) error {
	if slices.Contains(reflect.TraceFormats(), format) {
		return nil
	}
	return fmt.Errorf("unknown format %q: give one of %s",
		format, strings.Join(reflect.TraceFormats(), ", "))
}

// collectTraces reads the files and folders that a user named, once each, up to that many bytes.
func collectTraces(e *cli.Env, names []string, most int64) (c traceCollector, err error) {
	c.most = most
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return c, fmt.Errorf("the trace %s is given twice", name)
		}
		info, err := os.Stat(name)
		if name != "-" && err == nil && info.IsDir() {
			if err := c.addFolder(name); err != nil {
				return c, err
			}
			continue
		}

		text, err := cli.ReadFile(e, name, most, "the trace")
		if err == nil {
			err = c.add(name, text)
		}
		if err != nil {
			return c, err
		}
	}

	return c, nil
}

// traceCollector collects traces within the limits.
type traceCollector struct {
	sources []traceSource
	notes   []string // about what was omitted
	bytes   int64
	most    int64 // bytes
}

func (c *traceCollector) add(name, text string) error {
	c.sources = append(c.sources, traceSource{name, text})
	if c.bytes += int64(len(text)); c.bytes > c.most {
		return fmt.Errorf("the traces have more than %d MiB together: give fewer", c.most>>20)
	}
	return nil
}

// addFolder adds the traces in a folder and its subfolders, ordered by name. Links cannot lead out
// of the folder, and hidden files are ignored.
func (c *traceCollector) addFolder(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("cannot read the trace: %w", err)
	}
	defer root.Close()
	before := len(c.sources)

	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(entry.Name(), ".")
		shown := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir():
			if _, err := root.Stat(path.Join(name, trajectory.File)); err != nil {
				return nil //nolint:nilerr // it is not a record
			}
			return cmp.Or(c.addRecord(root, name, shown), fs.SkipDir)
		case hidden, !entry.Type().IsRegular(), !slices.Contains(traceEndings, path.Ext(name)):
			return nil
		case len(c.sources) >= maxTraceFiles:
			return fmt.Errorf("there are more than %d traces: give fewer", maxTraceFiles)
		}

		text, err := c.readEntry(root, name)
		if err != nil {
			return err
		}
		return c.add(shown, text)
	})
	if err != nil {
		return fmt.Errorf("cannot read the traces in %s: %w", dir, err)
	}

	if len(c.sources) == before {
		return fmt.Errorf("there is no trace in %s: the name of a trace ends with one of %s",
			dir, strings.Join(traceEndings, ", "))
	}
	return nil
}

// addRecord adds rlm's own record of a run. Its events contain the question, the turns of its loop,
// and the turns of all sub-loops.
func (c *traceCollector) addRecord(root *os.Root, folder, shown string) error {
	files := []string{path.Join(folder, trajectory.EventsFile), path.Join(folder, trajectory.File)}
	err := fs.WalkDir(root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == trajectory.File && name != files[1] {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return err
	}

	var all strings.Builder
	for _, name := range files {
		text, err := c.readEntry(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another program's record has no events
		}
		if err != nil {
			return err
		}
		if all.WriteString(c.wholeLines(shown, text)); int64(all.Len()) > c.most {
			break // add refuses this size
		}
	}

	return c.add(shown, all.String())
}

// wholeLines removes an incomplete last line, which means that the run was killed or is still
// running.
func (c *traceCollector) wholeLines(shown, text string) string {
	end := strings.LastIndexByte(text, '\n') + 1
	switch last := text[end:]; {
	case last == "":
		return text
	case json.Valid([]byte(last)):
		return text + "\n"
	}

	c.notes = append(c.notes, shown+": the last line is incomplete and was skipped")
	return text[:end]
}

// readEntry reads a regular file of a folder.
func (c *traceCollector) readEntry(root *os.Root, name string) (string, error) {
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
	return cli.ReadAll(file, c.most, "the trace "+name)
}
