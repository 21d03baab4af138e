package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/memory"
	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/reflect"
)

// knowledge is the graph of a command, and the files that get its findings and its changes. Nil
// is a command without a graph.
type knowledge struct {
	graph  *graph.Graph
	box    *graph.Toolbox
	memory *memory.File // nil without --remember
	out    string       // the file of --graph-write
	note   func(string, ...any)
}

// openKnowledge loads the graphs of the settings. It returns nil if they name none. Close the
// knowledge after the command.
func (e *env) openKnowledge(
	ctx context.Context, note func(string, ...any),
) (_ *knowledge, err error) {
	s := e.settings
	if len(s.Graph) == 0 && s.Remember == "" && s.GraphWrite == "" {
		return nil, nil //nolint:nilnil // documented: no graph
	}
	k := &knowledge{out: s.GraphWrite, note: note}
	defer func() {
		if err != nil {
			err = Usage(errors.Join(err, k.Close()))
		}
	}()

	if err := checkGraphWrite(s.GraphWrite, s.Remember); err != nil {
		return nil, err
	}
	if s.Remember != "" {
		if k.memory, err = memory.Open(s.Remember); err != nil {
			return nil, err
		}
	}
	if k.graph, err = e.openGraph(ctx, note); err != nil {
		return nil, err
	}
	if err := loadGraphs(ctx, k.graph, graph.LoadOptions{}, s.Graph, note); err != nil {
		return nil, err
	}
	if k.memory != nil {
		if err := k.memory.Load(ctx, k.graph); err != nil {
			return nil, err
		}
	}

	k.box, err = graph.NewToolbox(ctx, k.graph, graph.ToolOptions{
		Writable: s.GraphWrite != "", RaiseErrors: s.GraphErrors == "raise",
	})
	return k, err
}

// checkGraphWrite refuses a file that cannot be written at the end.
func checkGraphWrite(path, remember string) error {
	if path == "" {
		return nil
	}
	if path == remember {
		return fmt.Errorf("--remember and --graph-write name the same file %s: use two different files", path)
	}
	if _, err := dumpFormat(path); err != nil {
		return fmt.Errorf("--graph-write: %w", err)
	}
	return checkFolder("graph-write", path)
}

// keep writes the graph to the file of --graph-write. It does so also after a failure or an
// interrupt: the changes until then may have been paid for.
func (k *knowledge) keep(ctx context.Context) error {
	if k == nil || k.out == "" {
		return nil
	}
	format, err := dumpFormat(k.out)
	if err == nil {
		err = replaceFile(k.out, func(w io.Writer) error {
			notes, err := k.graph.Dump(context.WithoutCancel(ctx), w, format)
			for _, lost := range notes {
				k.note("%s: %s", k.out, lost)
			}
			return err
		})
	}
	if err != nil {
		return Broken(fmt.Errorf("cannot write the graph to %s: %w", k.out, err))
	}
	return nil
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
		return nil, Usage(err)
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
	return Broken(k.memory.AddRun(question, o))
}

// rememberReflection adds the outcome of a reflection to the memory.
func (k *knowledge) rememberReflection(question string, o reflect.Outcome) error {
	if k == nil || k.memory == nil {
		return nil
	}
	return Broken(k.memory.AddReflection(question, o))
}

// rememberClusters adds the failures that a distillation has grouped to the memory.
func (k *knowledge) rememberClusters(o distill.Outcome) error {
	if k == nil || k.memory == nil || len(o.Clusters) == 0 {
		return nil
	}
	return Broken(k.memory.AddClusters(o))
}

// loadGraphs loads files, and folders with the graph files in them. The graph takes all or none.
// A note says what it does not hold of them.
func loadGraphs(
	ctx context.Context, g *graph.Graph, options graph.LoadOptions, paths []string,
	note func(string, ...any),
) error {
	if len(paths) == 0 {
		return nil
	}
	loaded, err := g.Load(ctx, options, paths...)
	for _, what := range loaded.Notes {
		note("%s", escape(what))
	}
	return err
}

// dumpFormat returns the format of a file's name.
func dumpFormat(path string) (string, error) {
	format, ok := dumpNames[filepath.Ext(path)]
	if !ok {
		return "", fmt.Errorf("cannot write %q: its name must end in one of %s", path,
			strings.Join(slices.Sorted(maps.Keys(dumpNames)), ", "))
	}
	return format, nil
}

// dumpFormats are the formats that a graph can be written in, and their file names.
var (
	dumpFormats = []string{
		"turtle", "ntriples", "nquads", "trig", "rdfxml", "jsonld", "jsonl", "json", "graphml",
	}
	dumpNames = map[string]string{
		".ttl": "turtle", ".nt": "ntriples", ".nq": "nquads", ".trig": "trig", ".rdf": "rdfxml",
		".jsonld": "jsonld", ".jsonl": "jsonl", ".json": "json", ".graphml": "graphml",
	}
)
