package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/harness"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// SessionTools returns a constructor for the functions of a session outside of a loop: those of the
// protocol, for the session's inputs, or none if there is no model. Their calls share one Budget,
// which starts now. If there is an Opener, a query for a sub-loop starts one with the session's
// tools; otherwise the query goes directly to the model.
func (c Config) SessionTools() (
	func(inputs []tiers.Input, tools *repl.Tools) (*repl.Tools, error), error,
) {
	c = c.WithDefaults()
	if c.Models == nil || c.Model == "" {
		return func([]tiers.Input, *repl.Tools) (*repl.Tools, error) { return nil, nil }, nil
	}
	shared, err := newTree(c, nil, false)
	if err != nil {
		return nil, err
	}

	return func(inputs []tiers.Input, tools *repl.Tools) (*repl.Tools, error) {
		r := &tree{cfg: c, caller: shared.caller, ledger: shared.ledger, allowed: shared.allowed}
		r.cfg.Tools = tools
		l := &loop{tree: r, node: harness.Root, inputs: inputs}
		return (*repl.Tools)(nil).With(l.answerSession().Functions()...)
	}, nil
}

// answerSession returns the Answers for the calls of a session.
func (l *loop) answerSession() *answers.Answers {
	a := l.newAnswers()
	if l.cfg.Open == nil || l.cfg.MaxDepth == 0 {
		return a
	}

	read := &toolReader{tree: l.tree}
	a.Loop = func(
		ctx context.Context, q answers.Query, contract *schema.Contract,
	) (json.RawMessage, error) {
		if err := read.once(ctx); err != nil {
			return nil, err
		}
		return l.answerSub(ctx, q, contract)
	}
	return a
}

// toolReader reads the tool files of a session when its first sub-loop begins.
type toolReader struct {
	*tree

	mu   sync.Mutex
	done bool
}

// once reads the files on its first call. Sub-loops that begin during this call wait for it.
func (r *toolReader) once(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return nil
	}

	r.toolFiles = nil
	err := r.readTools(ctx)
	r.done = err == nil
	return err
}

// readTools reads the tool files and checks the tools of agents: every tool of an agent must exist,
// and names must be unique.
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

// toolNames returns the names of the host's tools.
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

// chooseTools returns the tools of a loop: all tools of the run, or those of an agent. Sub-loops
// of an agent have no more tools than the agent. Functions of a file that the loop may not call
// are not listed.
func (l *loop) chooseTools() (*repl.Tools, []toolFile) {
	if l.scope == "" {
		return l.cfg.Tools, l.toolFiles
	}

	agent := l.cfg.Agents[l.scope]

	var files []toolFile
	for _, file := range l.toolFiles {
		file.functions = slices.DeleteFunc(slices.Clone(file.functions), func(f fileFunction) bool {
			return !slices.Contains(agent.Tools, f.Name)
		})
		if len(file.functions) > 0 {
			files = append(files, file)
		}
	}
	return l.cfg.Tools.Only(agent.Tools), files
}

// listFunctions lists the functions of a session for its prompt, and the notes of its tools.
func listFunctions(tools *repl.Tools, files []toolFile) (list, notes string) {
	list, notes = tools.Prompt()
	lines := []string{list}
	for _, file := range files {
		for _, f := range file.functions {
			lines = append(lines, "- `"+f.Signature+"`: "+f.Doc)
		}
	}
	return strings.Join(lines, "\n"), notes
}

// instructions returns the additions to this loop's system prompt, or "".
func (l *loop) instructions() string {
	switch {
	case l.agent != "":
		return l.cfg.Agents[l.agent].System
	case l.depth == 0:
		return l.cfg.System
	}
	return ""
}

// checkAgents rejects contracts that cannot be parsed.
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
