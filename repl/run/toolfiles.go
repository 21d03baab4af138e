package run

import (
	"context"
	_ "embed" // the Python that describes functions
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/tiers"
)

// ToolFile is a Python file whose public functions become tools. It runs inside the sandbox, at the
// start of each session, so its functions have the same rights as a snippet.
type ToolFile struct {
	// Name is the file's name in messages, such as its path.
	Name string
	// Source is Python code.
	Source string
}

// toolFile is a tool file together with its functions.
type toolFile struct {
	ToolFile
	functions []fileFunction
}

// fileFunction is a public function or class of a tool file.
type fileFunction struct {
	Name      string `json:"name"`
	Signature string `json:"signature"`
	Doc       string `json:"doc"`
}

// Bounds of tool files: the functions of one file, and the description of one function in
// bytes.
const (
	maxFileFunctions = 200
	maxFunctionDoc   = 500
)

//go:embed toolfile.py
var describeFunctions string

// readToolFile runs a file once, in its own session, to find its functions.
func (r *tree) readToolFile(ctx context.Context, file ToolFile) (known toolFile, err error) {
	s, err := loopsession.Open(ctx, loopsession.Config{Open: r.cfg.Open, Limits: r.cfg.Limits})
	if err != nil {
		return known, err
	}
	defer s.Close()

	value, err := runOwn(ctx, s, file.Source)
	if err != nil {
		return known, err
	}
	if value != nil {
		return known, errors.New("it calls FINAL, which ends a run: only define functions")
	}

	names, err := json.Marshal(slices.Sorted(maps.Keys(s.Variables())))
	if err != nil {
		return known, err
	}
	describe := fmt.Sprintf("%s\nFINAL(describe(%s))", describeFunctions, names)
	if value, err = runOwn(ctx, s, describe); err != nil {
		return known, err
	}

	known.ToolFile = file
	if err := json.Unmarshal(value, &known.functions); err != nil {
		return known, fmt.Errorf("the description of its functions: %w", err)
	}
	err = known.check()
	return known, err
}

// check bounds the descriptions and rejects names that snippets rely on.
func (f *toolFile) check() error {
	switch n := len(f.functions); {
	case n == 0:
		return errors.New("it defines no public function")
	case n > maxFileFunctions:
		return fmt.Errorf("it has %d public functions, more than %d: begin the names of helpers with _",
			n, maxFileFunctions)
	}

	for i := range f.functions {
		f := &f.functions[i]
		_, taken := protocol.Lookup(f.Name)
		if taken || protocol.CheckName(f.Name) != nil {
			return fmt.Errorf("it defines %s, which is a reserved name", f.Name)
		}
		f.Signature = texts.Truncate(f.Signature, maxFunctionDoc)
		f.Doc = texts.Truncate(strings.Join(strings.Fields(f.Doc), " "), maxFunctionDoc)
	}
	return nil
}

// load runs the file in the session of a loop.
func (f *toolFile) load(ctx context.Context, s *loopsession.Session) error {
	if _, err := runOwn(ctx, s, f.Source); err != nil {
		return fmt.Errorf("cannot load tool file %s: %w", f.Name, err)
	}
	return nil
}

// runOwn runs Python code of the run's owner and returns the value passed to FINAL, or nil if there
// is none. Any other ending is an error.
func runOwn(ctx context.Context, s *loopsession.Session, source string) (tiers.Value, error) {
	ran, err := s.Run(ctx, loopsession.Block{Language: tiers.Python, Source: source})
	switch {
	case err != nil:
		return nil, err
	case ran.Exception != nil:
		return nil, fmt.Errorf("%s: %s", ran.Exception.Type,
			texts.Truncate(ran.Exception.Message, maxFunctionDoc))
	case ran.Status != tiers.StatusOK:
		return nil, fmt.Errorf("it ended as %s %s", ran.Status, ran.Limit)
	case ran.Final != nil:
		return ran.Final.Value, nil
	}
	return nil, nil //nolint:nilnil // documented: no value
}
