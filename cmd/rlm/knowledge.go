package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/graph/memory"
	"github.com/rlmhq/rlm/repl"
)

// knowledge is the graph of a command, and the file in which it remembers its findings. Nil is
// a command without both.
type knowledge struct {
	graph  *graph.Graph
	box    *graph.Toolbox
	memory *memory.File // nil without --remember
}

// openKnowledge loads the graphs of the settings. It returns nil if they name none. Close the
// knowledge after the command.
func (e *env) openKnowledge(
	ctx context.Context, note func(string, ...any),
) (_ *knowledge, err error) {
	s := e.settings
	if len(s.Graph) == 0 && s.Remember == "" {
		return nil, nil //nolint:nilnil // documented: no graph
	}
	k := &knowledge{}
	defer func() {
		if err != nil {
			err = &exitError{exitUsage, errors.Join(err, k.Close())}
		}
	}()

	if s.Remember != "" {
		if k.memory, err = memory.Open(s.Remember); err != nil {
			return nil, err
		}
	}
	if k.graph, err = e.openGraph(ctx, note); err != nil {
		return nil, err
	}
	if err := loadGraphs(ctx, k.graph, s.Graph); err != nil {
		return nil, err
	}
	if k.memory != nil {
		if err := k.memory.Load(ctx, k.graph); err != nil {
			return nil, err
		}
	}

	k.box, err = graph.NewToolbox(ctx, k.graph, graph.ToolOptions{
		RaiseErrors: s.GraphErrors == "raise",
	})
	return k, err
}

// openGraph returns an empty graph within the bounds of the settings.
func (e *env) openGraph(ctx context.Context, note func(string, ...any)) (*graph.Graph, error) {
	s := e.settings
	return graph.Open(ctx, graph.Config{
		MaxRows: int(s.GraphRows), MaxBytes: int(s.GraphBytes), MaxMemory: s.GraphMemory,
		Timeout: s.GraphTimeout, CacheDir: e.graphCache(), Logger: e.log,
		Progress: func(what string) { note("%s", what) },
	})
}

// graphCache returns the folder for the compiled code of graphs, empty for none.
func (e *env) graphCache() string {
	dir := e.settings.CacheDir
	if dir == "none" {
		return ""
	}
	user, err := os.UserCacheDir()
	if dir == "" && err == nil {
		dir = filepath.Join(user, "rlm")
	}
	return dir
}

// tools are the functions over the graph.
func (k *knowledge) tools() []repl.Tool {
	if k == nil {
		return nil
	}
	return k.box.Tools()
}

// addTo returns tools with the functions over the graph.
func (k *knowledge) addTo(tools *repl.Tools) (*repl.Tools, error) {
	if k == nil {
		return tools, nil
	}
	all, err := tools.With(k.tools()...)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return all, nil
}

// Close frees the graph.
func (k *knowledge) Close() error {
	if k == nil || k.graph == nil {
		return nil
	}
	var err error
	if k.box != nil {
		err = k.box.Close()
	}
	return errors.Join(err, k.graph.Close())
}

// rememberRun adds the outcome of a run to the memory. A run that could not begin has none.
func (k *knowledge) rememberRun(question string, o rlm.AnswerOutcome) error {
	if k == nil || k.memory == nil || o.Status == "" {
		return nil
	}
	return broken(k.memory.AddRun(question, o))
}

func (k *knowledge) rememberReflection(question string, o rlm.ReflectOutcome) error {
	if k == nil || k.memory == nil {
		return nil
	}
	return broken(k.memory.AddReflection(question, o))
}

func (k *knowledge) rememberClusters(o rlm.DistillOutcome) error {
	if k == nil || k.memory == nil || len(o.Clusters) == 0 {
		return nil
	}
	return broken(k.memory.AddClusters(o))
}

// broken gives an error the exit code of a failure during the work.
func broken(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitBroken, err}
}

// joinExit adds an error to that of a command, whose exit code stays.
func joinExit(err, more error) error {
	var exit *exitError
	switch {
	case more == nil:
		return err
	case err == nil:
		return more
	case errors.As(err, &exit):
		return &exitError{exit.code, errors.Join(exit.err, more)}
	}
	return errors.Join(err, more)
}

// rdfNames are the endings of the names of RDF files, with their formats.
var rdfNames = map[string]string{
	".ttl": "turtle", ".nt": "ntriples", ".nq": "nquads", ".trig": "trig", ".rdf": "rdfxml",
	".owl": "rdfxml", ".jsonld": "jsonld",
}

// memoryName is the ending of the names of property graphs: a memory is one.
const memoryName = ".jsonl"

// loadGraphs loads files, and folders with the graph files in them. A name decides on the
// format. The graph takes each file wholly or not at all.
func loadGraphs(ctx context.Context, g *graph.Graph, paths []string) error {
	for _, path := range paths {
		files, err := findGraphs(path)
		if err != nil {
			return fmt.Errorf("cannot load the graph: %w", err)
		}
		for _, file := range files {
			if err := loadGraph(ctx, g, file); err != nil {
				return fmt.Errorf("cannot load the graph %s: %w", file, err)
			}
		}
	}
	return nil
}

// findGraphs returns a file itself, and the graph files in a folder and below. Links in a
// folder are not followed.
func findGraphs(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}

	var files []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && isGraphName(name) {
			files = append(files, name)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the folder %s has no file whose name ends in %s", path, graphNames())
	}
	return files, err
}

func isGraphName(path string) bool {
	ending := filepath.Ext(path)
	return rdfNames[ending] != "" || ending == memoryName
}

func graphNames() string {
	names := []string{memoryName}
	for name := range rdfNames {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func loadGraph(ctx context.Context, g *graph.Graph, path string) error {
	if !isGraphName(path) {
		return fmt.Errorf("its format is not known: its name must end in one of %s", graphNames())
	}
	if filepath.Ext(path) == memoryName {
		file, err := memory.Open(path)
		if err != nil {
			return err
		}
		return file.Load(ctx, g)
	}

	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	base := "file://" + (&url.URL{Path: filepath.ToSlash(absolute)}).EscapedPath()
	return g.LoadRDF(ctx, file, rdfNames[filepath.Ext(path)], base)
}
