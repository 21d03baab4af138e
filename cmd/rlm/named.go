package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
)

// nameFlag makes the run of a command durable.
type nameFlag struct {
	name  string
	begun json.RawMessage
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
// it was given, and whole.
func (n *nameFlag) begin(e *env, cmd *cobra.Command, given, question string) error {
	if n.name == "" {
		return nil
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
}
