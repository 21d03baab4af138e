package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
)

// nameFlag makes the run of a command durable.
type nameFlag struct {
	name  string
	begun json.RawMessage

	replayed func() // ends the replay of a journal, nil for none
}

func (n *nameFlag) addName(flags *pflag.FlagSet) {
	flags.Var((*givenName)(&n.name), "name",
		"begin or continue a run that outlives its process, under this `name`; see rlm runs")
}

// givenName is a flag of the name under which something is kept. An empty one, such as that of a
// variable that is not set, would keep nothing.
type givenName string

// Set implements pflag.Value.
func (g *givenName) Set(name string) error {
	if name == "" {
		return errors.New("the name is empty: nothing would be kept")
	}
	*g = givenName(name)
	return nil
}

// String implements pflag.Value.
func (g *givenName) String() string { return string(*g) }

// Type implements pflag.Value.
func (g *givenName) Type() string { return "string" }

// begin keeps how the run is begun, if it has a name. The command of a question gives the question as
// it was given, and whole. Without a name, the run may replay the journal of another.
func (n *nameFlag) begin(e *env, cmd *cobra.Command, given, question string) error {
	if n.name == "" {
		return n.replay(e, cmd)
	}
	if file := e.openReplay(); file != nil {
		_ = file.Close()
		return &exitError{exitUsage, errors.New("a run that replays a journal keeps nothing: omit --name")}
	}
	dir, err := e.storeFolder()
	switch {
	case err == nil && dir == "":
		err = errNoStore
	case given == "" && slices.Contains(e.args, "-"):
		err = errors.New("a named run reads its files again when it continues: give a file in place of stdin")
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}

	spec := runSpec{Args: e.args, Question: question}
	if given != "" {
		spec.Args = withoutQuestion(e.args, given, cmd.Flags())
	}
	if spec.Dir, err = os.Getwd(); err == nil {
		n.begun, err = json.Marshal(spec)
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

// replay lets a run answer its calls from a journal, if --replay names one.
func (n *nameFlag) replay(e *env, cmd *cobra.Command) error {
	file := e.openReplay()
	if file == nil {
		return nil
	}
	defer file.Close()
	j, err := runlog.Replay(file)
	if err != nil {
		return &exitError{exitUsage, err}
	}

	var ctx context.Context
	ctx, n.replayed = runlog.With(cmd.Context(), j)
	cmd.SetContext(ctx)
	return nil
}

// openReplay opens the journal that --replay names, nil for none: a record is opened with the
// models, which say what is wrong with the file.
func (e *env) openReplay() *os.File {
	if e.settings.Replay == "" {
		return nil
	}
	file, err := os.Open(e.settings.Replay)
	if err != nil {
		return nil
	}
	begin := make([]byte, 16)
	n, _ := io.ReadFull(file, begin)
	if _, err := file.Seek(0, io.SeekStart); err != nil || !trajectory.IsJournal(begin[:n]) {
		_ = file.Close()
		return nil
	}
	return file
}

// tellKept tells how a run goes on whose process is killed: end cannot tell it then.
func (n *nameFlag) tellKept(e *env, note func(string, ...any)) {
	if n.name != "" {
		note("if this is killed, continue with: rlm runs resume %s%s", n.name, e.storeFlag())
	}
}

// end tells how a run goes on that has not reached its end.
func (n *nameFlag) end(ctx context.Context, e *env, engine *rlm.Engine, reached bool) {
	if n.name != "" && !reached {
		e.tellNext(ctx, engine, n.name)
	}
	if n.replayed != nil {
		n.replayed()
	}
}
