package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/texts"
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

// begin keeps how the run is begun, if it has a name. The command of a question gives the question as
// it was given, and whole. Without a name, the run may replay the journal of another.
func (n *nameFlag) begin(e *env, cmd *cobra.Command, given, question string) error {
	if n.name == "" {
		return n.replay(e, cmd)
	}
	if file := e.openReplay(); file != nil {
		_ = file.Close()
		return Usage(errors.New("a run that replays a journal keeps nothing: omit --name"))
	}
	dir, err := e.storeFolder()
	switch {
	case err == nil && dir == "":
		err = errNoStore
	case given == "" && slices.Contains(e.args, "-"):
		err = errors.New("a named run reads its files again when it continues: give a file in place of stdin")
	}
	if err != nil {
		return Usage(err)
	}

	spec := runSpec{Args: e.args, Question: question}
	if given != "" {
		spec.Args = withoutQuestion(e.args, given, cmd.Flags())
	}
	if spec.Dir, err = os.Getwd(); err == nil {
		n.begun, err = json.Marshal(spec)
	}
	if err != nil {
		return Usage(err)
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
		return Usage(err)
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

// tellResume prints the command that continues a run.
func (e *env) tellResume(name string) {
	_, _ = fmt.Fprintf(e.stderr, "rlm: continue with: rlm runs resume %s%s\n", name, e.storeFlag())
}

// storeFlag returns the flag for another command that finds the same store, empty for none.
func (e *env) storeFlag() (folder string) {
	if e.settings.Store != "" && slices.ContainsFunc(e.args, func(arg string) bool {
		return strings.HasPrefix(arg, "--store")
	}) {
		folder = " --store " + shellQuote(e.settings.Store)
	}
	return folder
}

// shellQuote returns a text as one word of a shell.
func shellQuote(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./", r)
	}) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// tellNext prints the commands that continue a run.
func (e *env) tellNext(ctx context.Context, engine *rlm.Engine, name string) {
	known, err := engine.ShowRun(context.WithoutCancel(ctx), name)
	if err != nil || len(known.Waiting) == 0 {
		if err == nil && len(known.Begun) == 0 {
			_, _ = fmt.Fprintf(e.stderr, "rlm: run %s goes on by itself if rlm serve has begun it; another program "+
				"has to continue its own\n", name)
			return
		}
		e.tellResume(name)
		return
	}
	for _, w := range known.Waiting {
		_, _ = fmt.Fprintf(e.stderr, "rlm: waits for a decision: %s\nrlm: decide with: rlm runs approve %s%s, "+
			"or rlm runs deny %s%s\n", escape(texts.Truncate(string(w.Call), maxAsked)), w.ID, e.storeFlag(),
			w.ID, e.storeFlag())
	}
}
