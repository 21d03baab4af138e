package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/memory"
	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/reflect"
)

// Knowledge is the graph of a command, and the files for its findings and changes. Nil means that
// the command has no graph.
type Knowledge struct {
	Graph  *graph.Graph
	box    *graph.Toolbox
	memory *memory.File // nil without --remember
	out    string       // the file of --graph-write
	note   func(string, ...any)
}

// OpenKnowledge loads the configured graphs, or returns nil if there are none. Close the knowledge
// after the command.
func OpenKnowledge(
	ctx context.Context, e *cli.Env, note func(string, ...any),
) (_ *Knowledge, err error) {
	s := e.Settings
	if len(s.Graph) == 0 && s.Remember == "" && s.GraphWrite == "" {
		return nil, nil //nolint:nilnil // documented: no graph
	}

	k := &Knowledge{out: s.GraphWrite, note: note}
	defer func() {
		if err != nil {
			err = cli.Usage(errors.Join(err, k.Close()))
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

	if k.Graph, err = OpenGraph(ctx, e, note); err != nil {
		return nil, err
	}
	if err := LoadGraphs(ctx, k.Graph, graph.LoadOptions{}, s.Graph, note); err != nil {
		return nil, err
	}

	if k.memory != nil {
		if err := k.memory.Load(ctx, k.Graph); err != nil {
			return nil, err
		}
	}

	k.box, err = graph.NewToolbox(ctx, k.Graph, graph.ToolOptions{
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
	if _, err := DumpFormat(path); err != nil {
		return fmt.Errorf("--graph-write: %w", err)
	}
	return cli.CheckFolder("graph-write", path)
}

// Keep writes the graph to the file of --graph-write, even after a failure or an interrupt, because
// the changes made before may have cost money.
func (k *Knowledge) Keep(ctx context.Context) error {
	if k == nil || k.out == "" {
		return nil
	}
	format, err := DumpFormat(k.out)
	if err == nil {
		err = cli.ReplaceFile(k.out, func(w io.Writer) error {
			notes, err := k.Graph.Dump(context.WithoutCancel(ctx), w, format)
			for _, lost := range notes {
				k.note("%s: %s", k.out, lost)
			}
			return err
		})
	}
	if err != nil {
		return cli.Broken(fmt.Errorf("cannot write the graph to %s: %w", k.out, err))
	}
	return nil
}

// OpenGraph returns an empty graph with the configured limits.
func OpenGraph(ctx context.Context, e *cli.Env, note func(string, ...any)) (*graph.Graph, error) {
	s := e.Settings
	return graph.Open(ctx, graph.Config{
		MaxRows: int(s.GraphRows), MaxBytes: int(s.GraphBytes), MaxMemory: s.GraphMemory,
		Timeout: s.GraphTimeout, CacheDir: cacheFolder(e), Logger: e.Log,
		Progress: func(what string) { note("%s", what) },
	})
}

// tools returns the functions over the graph.
func (k *Knowledge) tools() []repl.Tool {
	if k == nil {
		return nil
	}
	return k.box.Tools()
}

// AddTo returns the tools together with the functions over the graph.
func (k *Knowledge) AddTo(tools *repl.Tools) (*repl.Tools, error) {
	if k == nil {
		return tools, nil
	}
	all, err := tools.With(k.tools()...)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return all, nil
}

// Close frees the graph.
func (k *Knowledge) Close() error {
	if k == nil || k.Graph == nil {
		return nil
	}
	var err error
	if k.box != nil {
		err = k.box.Close()
	}
	return errors.Join(err, k.Graph.Close())
}

// RememberRun adds the outcome of a run to the memory. It does nothing for a run that could not
// begin.
func (k *Knowledge) RememberRun(question string, o rlm.Outcome) error {
	if k == nil || k.memory == nil || o.Status == "" {
		return nil
	}
	return cli.Broken(k.memory.AddRun(question, o))
}

// RememberReflection adds the outcome of a reflection to the memory.
func (k *Knowledge) RememberReflection(question string, o reflect.Outcome) error {
	if k == nil || k.memory == nil {
		return nil
	}
	return cli.Broken(k.memory.AddReflection(question, o))
}

// RememberClusters adds the failures that a distillation grouped to the memory.
func (k *Knowledge) RememberClusters(o distill.Outcome) error {
	if k == nil || k.memory == nil || len(o.Clusters) == 0 {
		return nil
	}
	return cli.Broken(k.memory.AddClusters(o))
}

// LoadGraphs loads files, and the graph files in folders. If one of them fails, the graph stays
// unchanged. The notes report what the graph cannot represent.
func LoadGraphs(
	ctx context.Context, g *graph.Graph, options graph.LoadOptions, paths []string,
	note func(string, ...any),
) error {
	if len(paths) == 0 {
		return nil
	}
	loaded, err := g.Load(ctx, options, paths...)
	for _, what := range loaded.Notes {
		note("%s", cli.Escape(what))
	}
	return err
}

// DumpFormat returns the format that a file's name implies.
func DumpFormat(path string) (string, error) {
	format, ok := dumpNames[filepath.Ext(path)]
	if !ok {
		return "", fmt.Errorf("cannot write %q: its name must end in one of %s", path,
			strings.Join(slices.Sorted(maps.Keys(dumpNames)), ", "))
	}
	return format, nil
}

// DumpFormats are the formats in which a graph can be written; the second list has the
// corresponding file extensions.
var (
	DumpFormats = []string{
		"turtle", "ntriples", "nquads", "trig", "rdfxml", "jsonld", "jsonl", "json", "graphml",
	}
	dumpNames = map[string]string{
		".ttl": "turtle", ".nt": "ntriples", ".nq": "nquads", ".trig": "trig", ".rdf": "rdfxml",
		".jsonld": "jsonld", ".jsonl": "jsonl", ".json": "json", ".graphml": "graphml",
	}
)
