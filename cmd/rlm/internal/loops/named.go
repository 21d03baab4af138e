package loops

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
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
)

// nameFlag makes the run of a command durable.
type nameFlag struct {
	Name  string
	kept  string // the generated name of a run that is kept without --name; empty if there is none
	begun json.RawMessage

	replayed func() // ends the replay of a run log, nil if there is none
	more     string // flags without which a continued run would end as before
	quiet    bool   // a run without --name does not print how to continue it
}

func (n *nameFlag) addName(flags *pflag.FlagSet) {
	flags.Var((*wiring.GivenName)(&n.Name), "name",
		"begin or continue a run that outlives its process, under this `name`; see rlm runs")
	config.AddFlags(flags, config.Named("no_keep"))
}

// begin records how a named run was started. A command that takes a question passes it both as
// given and in full. Without a name, the run may replay another run's log.
func (n *nameFlag) begin(e *cli.Env, cmd *cobra.Command, given, question string) error {
	if n.Name == "" {
		if err := n.replay(e, cmd); err != nil || n.replayed != nil {
			return err
		}
		return n.beginUnnamed(e, cmd, given, question)
	}
	if err := (store.ID{Kind: store.Run, Name: n.Name}).Check(); err != nil {
		return cli.Usage(fmt.Errorf("--name: %w", err))
	}
	if file := openReplay(e); file != nil {
		_ = file.Close()
		return cli.Usage(errors.New("a run that replays a run log keeps nothing: omit --name"))
	}
	dir, err := wiring.StoreFolder(e)
	switch {
	case err == nil && dir == "":
		err = wiring.ErrNoStore
	case given == "" && slices.Contains(e.Args, "-"):
		err = errors.New("a named run reads its files again when it continues: give a file in place of stdin")
	}
	if err != nil {
		return cli.Usage(err)
	}

	return cli.AsUsage(n.describe(e, cmd, given, RunSpec{Question: question}))
}

// describe completes the record of how a run was started.
func (n *nameFlag) describe(e *cli.Env, cmd *cobra.Command, given string, spec RunSpec) (err error) {
	spec.Args = e.Args
	if given != "" {
		spec.Args = withoutQuestion(e.Args, given, cmd.Flags())
	}
	if spec.Dir, err = os.Getwd(); err == nil {
		n.begun, err = json.Marshal(spec)
	}
	return err
}

// replay answers the calls of a run from a run log, if --replay names one.
func (n *nameFlag) replay(e *cli.Env, cmd *cobra.Command) error {
	file := openReplay(e)
	if file == nil {
		return nil
	}
	defer file.Close()
	j, err := runlog.Replay(file)
	if err != nil {
		return cli.Usage(err)
	}

	var ctx context.Context
	ctx, n.replayed = runlog.With(cmd.Context(), j)
	cmd.SetContext(ctx)
	return nil
}

// openReplay opens the run log that --replay names. It returns nil for any other file, such as a
// call log, which is opened with the models; these also report a file that cannot be read.
func openReplay(e *cli.Env) *os.File {
	if e.Settings.Replay == "" {
		return nil
	}
	file, err := os.Open(e.Settings.Replay)
	if err != nil {
		return nil
	}
	begin := make([]byte, 16)
	n, _ := io.ReadFull(file, begin)
	if _, err := file.Seek(0, io.SeekStart); err != nil || !trajectory.IsRunLog(begin[:n]) {
		_ = file.Close()
		return nil
	}
	return file
}

// keep makes the run of a task durable. It immediately prints how to continue a named run, because
// end cannot do that if the process is killed.
func (n *nameFlag) keep(e *cli.Env, task *repl.Task, note func(string, ...any)) {
	task.Name, task.Begun = n.Name, n.begun
	switch {
	case n.Name != "":
		note("if this is killed, continue with: rlm runs resume %s%s", n.Name, StoreFlag(e))
	case n.kept != "":
		task.Name, task.NotKept = n.kept, func(err error) {
			n.kept = ""
			note("the run is not kept, which --no-keep also does: %v", err)
		}
	}
}

// end prints how to continue an incomplete run.
func (n *nameFlag) end(ctx context.Context, e *cli.Env, engine *rlm.Engine, reached bool) {
	if n.Name != "" && !reached {
		TellNext(ctx, e, engine, n.Name, n.more)
	}
	if n.kept != "" {
		n.endUnnamed(ctx, e, engine, reached)
	}
	if n.replayed != nil {
		n.replayed()
	}
}

// TellResume prints the command that continues a run, with additional flags.
func TellResume(e *cli.Env, name, more string) {
	_, _ = fmt.Fprintf(e.Stderr, "rlm: continue with: rlm runs resume %s%s%s\n", name, more, StoreFlag(e))
}

// StoreFlag returns the flag that makes another command use the same store, or "" if none is
// needed.
func StoreFlag(e *cli.Env) (folder string) {
	if e.Settings.Store != "" && slices.ContainsFunc(e.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "--store")
	}) {
		folder = " --store " + shellQuote(e.Settings.Store)
	}
	return folder
}

// shellQuote quotes a string as a single shell word.
func shellQuote(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./", r)
	}) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// TellNext prints the commands that continue a run, with additional flags.
func TellNext(ctx context.Context, e *cli.Env, engine *rlm.Engine, name, more string) {
	known, err := engine.ShowRun(context.WithoutCancel(ctx), name)
	if err != nil || len(known.Waiting) == 0 {
		if err == nil && len(known.Begun) == 0 {
			_, _ = fmt.Fprintf(e.Stderr, "rlm: run %s goes on by itself if rlm serve has begun it; another program "+
				"has to continue its own\n", name)
			return
		}
		TellResume(e, name, more)
		return
	}
	for _, w := range known.Waiting {
		_, _ = fmt.Fprintf(e.Stderr, "rlm: waits for a decision: %s\nrlm: decide with: rlm runs approve %s%s, "+
			"or rlm runs deny %s%s\n", cli.Escape(texts.Truncate(string(w.Call), wiring.MaxAsked)), w.ID, StoreFlag(e),
			w.ID, StoreFlag(e))
	}
}
