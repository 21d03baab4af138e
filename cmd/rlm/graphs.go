package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/graph/memory"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/reflect"
	loop "github.com/rlmhq/rlm/repl/run"
)

// knowledge is the graph of a command, and the file in which it remembers its findings.
type knowledge struct {
	graph  *graph.Graph // nil without --graph, --graph-write and --remember
	tools  graph.ToolOptions
	memory *memory.File // nil without --remember
}

// openKnowledge loads the graphs of the settings. Close it after the command.
func (e *env) openKnowledge(ctx context.Context, note func(string, ...any)) (k *knowledge, err error) {
	s := e.settings
	k = &knowledge{tools: graph.ToolOptions{
		Writable: s.GraphWrite != "", RaiseErrors: s.GraphErrors == "raise",
	}}
	if len(s.Graph) == 0 && s.GraphWrite == "" && s.Remember == "" {
		return k, nil
	}
	defer func() {
		if err != nil {
			err = &exitError{exitUsage, errors.Join(err, k.Close())}
		}
	}()

	if s.Remember != "" && s.Remember == s.GraphWrite {
		return nil, fmt.Errorf("--remember and --graph-write name the same file %s: use two", s.Remember)
	}
	if err := checkGraphWrite(s.GraphWrite); err != nil {
		return nil, err
	}
	if s.Remember != "" {
		if k.memory, err = memory.Open(s.Remember); err != nil {
			return nil, err
		}
	}
	if k.graph, err = e.newGraph(ctx, note); err != nil {
		return nil, err
	}
	if err := loadGraphs(ctx, k.graph, s.Graph, note); err != nil {
		return nil, err
	}
	if k.memory != nil {
		err = k.memory.Load(ctx, k.graph)
	}
	return k, err
}

// newGraph returns an empty graph.
func (e *env) newGraph(ctx context.Context, note func(string, ...any)) (*graph.Graph, error) {
	return graph.Open(ctx, graph.Config{
		CacheDir: e.graphCache(), Logger: e.log, Progress: func(what string) { note("%s", what) },
	})
}

// graphCache returns the folder for the compiled code of graphs, empty for none.
func (e *env) graphCache() string {
	switch e.settings.CacheDir {
	case "none":
		return ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "rlm")
	}
	return e.settings.CacheDir
}

// loadGraphs loads files and folders, and notes what the graph does not hold of them.
func loadGraphs(
	ctx context.Context, g *graph.Graph, paths []string, note func(string, ...any),
) error {
	if len(paths) == 0 {
		return nil
	}
	loaded, err := g.Load(ctx, graph.LoadOptions{}, paths...)
	for _, text := range loaded.Notes {
		note("%s", text)
	}
	return err
}

// checkGraphWrite refuses a file that cannot be written at the end.
func checkGraphWrite(path string) error {
	if path == "" {
		return nil
	}
	if _, err := dumpFormat(path); err != nil {
		return fmt.Errorf("--graph-write: %w", err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("--graph-write %s: its folder does not exist", path)
	}
	return nil
}

// Close writes the graph to the file of --graph-write and frees it.
func (k *knowledge) Close() error {
	if k.graph == nil {
		return nil
	}
	return k.graph.Close()
}

// keep writes the graph that snippets may have changed to the file of --graph-write. It does so
// also after a failed run, whose changes may have been paid for.
func (k *knowledge) keep(ctx context.Context, e *env) error {
	path := e.settings.GraphWrite
	if k.graph == nil || path == "" {
		return nil
	}
	format, err := dumpFormat(path)
	if err == nil {
		err = replaceFile(path, func(w io.Writer) error {
			return k.graph.Dump(context.WithoutCancel(ctx), w, format)
		})
	}
	if err != nil {
		return &exitError{exitBroken, fmt.Errorf("cannot write the graph: %w", err)}
	}
	return nil
}

// replaceFile replaces a file by what write writes, whole or not at all.
func replaceFile(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".graph-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // it is gone after the renaming
	if info, err := os.Stat(path); err == nil {
		_ = temp.Chmod(info.Mode().Perm()) // otherwise only the user can read it
	}

	if err = write(temp); err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// rememberRun adds the outcome of a run to the memory.
func (k *knowledge) rememberRun(question string, o loop.Outcome) error {
	if k.memory == nil || o.Status == "" {
		return nil
	}
	return k.remembered(k.memory.AddRun(question, o))
}

func (k *knowledge) rememberReflection(question string, o reflect.Outcome) error {
	if k.memory == nil {
		return nil
	}
	return k.remembered(k.memory.AddReflection(question, o))
}

func (k *knowledge) rememberClusters(r distill.Result) error {
	if k.memory == nil || len(r.Clusters) == 0 {
		return nil
	}
	return k.remembered(k.memory.AddClusters(r))
}

// joinExit adds errors to that of a command, and keeps its exit code.
func joinExit(err error, more ...error) error {
	failed := errors.Join(more...)
	var exit *exitError
	if failed != nil && errors.As(err, &exit) {
		return &exitError{exit.code, errors.Join(exit.err, failed)}
	}
	return errors.Join(err, failed)
}

// remembered returns an error with the exit code.
func (*knowledge) remembered(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitBroken, err}
}

// rememberAnswers returns asks, which also adds each outcome to the memory.
func (k *knowledge) rememberAnswers(
	asks func(context.Context, string) (loop.Outcome, error),
) func(context.Context, string) (loop.Outcome, error) {
	return func(ctx context.Context, question string) (loop.Outcome, error) {
		outcome, err := asks(ctx, question)
		return outcome, errors.Join(err, k.rememberRun(question, outcome))
	}
}
