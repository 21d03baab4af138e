package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// SessionTools returns a constructor for the functions of a session outside of a loop:
// Tools and, if there is a model, the functions of the protocol over the session's
// inputs. All their calls share one Budget, which begins now. Queries for a sub-loop go
// directly to the model.
func (c Config) SessionTools() (func(inputs []tiers.Input) (*repl.Tools, error), error) {
	c = c.WithDefaults()
	if c.Models == nil || c.Model == "" {
		return func([]tiers.Input) (*repl.Tools, error) { return c.Tools, nil }, nil
	}

	caller, err := calls.NewCaller(calls.Caller{
		Models: c.Models, Gate: calls.NewGate(c.CallsAtOnce), MaxReply: c.MaxReply,
		Emit: c.Progress,
	}, c.Budget, nil, false)
	if err != nil {
		return nil, err
	}

	return func(inputs []tiers.Input) (*repl.Tools, error) {
		a := &answers.Answers{
			Caller: caller, Inputs: inputs, Node: "0", Turn: new(atomic.Int64),
			Model: c.SubModel, Models: []string{c.Model, c.SubModel}, Agents: c.Agents,
			CallsAtOnce: c.CallsAtOnce, Loops: calls.NewGate(c.LoopsAtOnce), Retries: c.Retries,
		}
		return c.Tools.With(a.Functions()...)
	}, nil
}

// readTools reads the tool files and checks the tools of agents: none may be unknown, and no
// two tools may have one name.
func (r *tree) readTools(ctx context.Context) error {
	known := r.cfg.toolNames()
	for _, file := range r.cfg.ToolFiles {
		read, err := r.readToolFile(ctx, file)
		if err != nil {
			return fmt.Errorf("cannot use tool file %s: %w", file.Name, err)
		}

		for _, f := range read.functions {
			if slices.Contains(known, f.Name) {
				return fmt.Errorf("cannot use tool file %s: there is another tool %s",
					file.Name, f.Name)
			}
			known = append(known, f.Name)
		}
		r.toolFiles = append(r.toolFiles, read)
	}

	for _, id := range slices.Sorted(maps.Keys(r.cfg.Agents)) {
		for _, name := range r.cfg.Agents[id].Tools {
			if !slices.Contains(known, name) {
				return fmt.Errorf("agent %q: unknown tool %q; there are: %s", id, name,
					cmp.Or(strings.Join(known, ", "), "none"))
			}
		}
	}
	return nil
}

// toolNames returns the names of the tools of the host.
func (c *Config) toolNames() []string {
	if c.Tools == nil {
		return nil
	}
	var names []string
	for _, f := range c.Tools.Functions() {
		names = append(names, f.Name)
	}
	return names
}

// chooseTools returns the tools of a loop: all of the run, or those of its agent. The
// functions of a file that the loop may not call are not among its listed ones.
func (l *loop) chooseTools() (*repl.Tools, []toolFile) {
	if l.agent == nil {
		return l.cfg.Tools, l.toolFiles
	}

	var files []toolFile
	for _, file := range l.toolFiles {
		file.functions = slices.DeleteFunc(slices.Clone(file.functions), func(f fileFunction) bool {
			return !slices.Contains(l.agent.Tools, f.Name)
		})
		if len(file.functions) > 0 {
			files = append(files, file)
		}
	}
	return l.cfg.Tools.Only(l.agent.Tools), files
}

// listFunctions lists the functions of a session for its prompt.
func listFunctions(tools *repl.Tools, files []toolFile) string {
	lines := []string{tools.Prompt()}
	for _, file := range files {
		for _, f := range file.functions {
			lines = append(lines, "- `"+f.Signature+"`: "+f.Doc)
		}
	}
	return strings.Join(lines, "\n")
}

// instructions returns what the system prompt adds for this loop, empty for nothing.
func (l *loop) instructions() string {
	switch {
	case l.agent != nil:
		return l.agent.System
	case l.depth == 0:
		return l.cfg.System
	}
	return ""
}

// checkAgents refuses contracts that cannot be parsed.
func (c *Config) checkAgents() error {
	for _, id := range slices.Sorted(maps.Keys(c.Agents)) {
		if c.Agents[id].Schema == nil {
			continue
		}
		if _, err := schema.Parse(c.Agents[id].Schema); err != nil {
			return fmt.Errorf("agent %q: its contract: %w", id, err)
		}
	}
	return nil
}
