package stored

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer/traces"
)

// recordedRun is a complete record.
type recordedRun struct {
	root *traces.Loop
	// nodes maps each loop's node to its events. It is empty without an events file.
	nodes  map[string]*recordedNode
	last   *ledger.Spending
	events int // number of events in the asides
	notes  []string
}

// recordedNode is the part of a loop's events that its trajectory lacks.
type recordedNode struct {
	begun, ended *ledger.Event
	tiers        []string // where its snippets ran, in order
	asides       []ledger.Event
}

// node returns the events of a loop, or an empty node.
func (run *recordedRun) node(name string) *recordedNode {
	if n := run.nodes[name]; n != nil {
		return n
	}
	return &recordedNode{}
}

// openTrace opens a record: the folder that --trace wrote, a file from rlm runs export, or the log
// of a named run.
func openTrace(ctx context.Context, e *cli.Env, name string) (folder *traces.Folder, err error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return traces.Open(name)
	case err == nil:
		file, err := e.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return traces.OpenRunLog(file)
	}

	failed := readRunLog(ctx, e, name, func(runLog io.Reader) error {
		folder, err = traces.OpenRunLog(runLog)
		return err
	})
	if failed != nil {
		return nil, fmt.Errorf("%s is neither a file or folder nor a named run: %w", name, failed)
	}
	return folder, nil
}

func readTrace(ctx context.Context, e *cli.Env, name string) (run *recordedRun, err error) {
	folder, err := openTrace(ctx, e, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()

	run = &recordedRun{root: folder.Root, nodes: map[string]*recordedNode{}}
	run.notes, err = folder.Events(run.keepEvent)
	return run, err
}

// keepEvent stores an event if the view shows it.
func (run *recordedRun) keepEvent(e *ledger.Event) {
	if e.Spent != nil {
		run.last = e.Spent
	}
	n := run.nodes[e.Node]
	if n == nil {
		if len(run.nodes) >= traces.MaxLoops {
			return
		}
		n = &recordedNode{}
		run.nodes[e.Node] = n
	}

	switch {
	case e.Kind == ledger.EventRunStarted || e.Kind == ledger.EventLoopStarted:
		n.begun = e
	case e.Kind == ledger.EventRunEnded || e.Kind == ledger.EventLoopEnded:
		n.ended = e
	case e.Kind == ledger.EventSnippet && len(n.tiers) < traces.MaxTurns:
		n.tiers = append(n.tiers, e.Tier)
	case isAside(e) && run.events < traces.MaxTurns:
		run.events++
		n.asides = append(n.asides, *e)
	}
}

// isAside reports whether an event gets its own line outside the turns. Such an event is a model
// call that belongs to no turn, a verdict, a retry, a refusal, a warning or a wait.
func isAside(e *ledger.Event) bool {
	switch e.Kind { //nolint:exhaustive // the others are in the trajectories
	case ledger.EventReply:
		return e.Error != "" ||
			slices.Contains([]string{"critique", "embedding", "compaction", "synthesis", "bypass"}, e.Purpose)
	case ledger.EventVerdict, ledger.EventRetry, ledger.EventRefusal, ledger.EventWarning,
		ledger.EventWaiting:
		return true
	}

	return false
}
