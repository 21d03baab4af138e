package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/spelling"
)

// linked is the version that the linker sets. The linker cannot set a variable that the
// program initialises, so this one has no initial value.
var linked string

// version returns that version, or the module's, which go install writes into a binary.
var version = sync.OnceValue(func() string {
	if linked != "" {
		return linked
	}

	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
})

// functions are host functions for snippets, besides those of the protocol. Only tests set
// them.
var functions []rlm.Function

// run is main with its environment as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, in := listen(ctx)
	defer in.stop()
	e := &env{
		life:       ctx,
		stdin:      makeInterruptible(ctx, stdin),
		terminal:   isTerminal(stdin),
		stdout:     stdout,
		stderr:     stderr,
		interrupts: in,
		args:       args,
		version:    version(),
		functions:  functions,
	}

	e.input, _ = stdin.(*os.File)

	root := newRoot(e, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(e, root)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return exitCode(ctx, stderr, root.ExecuteContext(ctx))
}

func exitCode(ctx context.Context, stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{code: exitUsage, err: err} // an error of cobra, such as an unknown flag
	}

	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(stderr, "rlm: interrupted")
		return exitInterrupted
	}
	if exit.err != nil {
		_, _ = fmt.Fprintln(stderr, "rlm:", escapeKeepingLines(adviseRepair(exit.err)))
	}

	return exit.code
}

// adviseRepair returns the text of an error, and what to do if the store is damaged.
func adviseRepair(err error) string {
	const command = "rlm store check"
	text := err.Error()
	if !errors.Is(err, store.ErrDamaged) || strings.Contains(text, command) {
		return text
	}
	return text + ": " + command + " says what is lost, and with --repair saves the rest"
}

// subCommand is a sub-command that is not made yet.
type subCommand struct {
	name string
	make func(e *env) *cobra.Command
}

// listCommands returns the sub-commands. One of them, runs resume, makes others.
func listCommands() []subCommand {
	return []subCommand{
		{"run", newRun},
		{"reflect", newReflect},
		{"reflexion", newReflexion},
		{"distill", newDistill},
		{"workflow", newWorkflow},
		{"runs", func(e *env) *cobra.Command { return newRuns(e, newRoot) }},
		{"sessions", newSessions},
		{"exec", newExec},
		{"connect", newConnect},
		{"repl", newRepl},
		{"graph", newGraph},
		{"chat", newChat},
		{"hook", newHook},
		{"mcp", newMCP},
		{"serve", newServe},
		{"keys", newKeys},
		{"store", newStore},
		{"trace", newTrace},
		{"view", newViewer},
		{"explain", newExplain},
		{"tiers", newTiers},
		{"doctor", newDoctor},
		{"images", newImages},
		{"config", newConfig},
		{manual, newMan},
		{"version", newVersion},
	}
}

// makeCommands makes the sub-command that the arguments begin with, or all of them: their flags
// take a tenth of the time of a short command. A manual is one of all commands.
func makeCommands(e *env, args []string) []*cobra.Command {
	commands := listCommands()
	if len(args) > 0 && args[0] != manual {
		for _, c := range commands {
			if c.name == args[0] {
				return []*cobra.Command{c.make(e)}
			}
		}
	}

	all := make([]*cobra.Command, len(commands))
	for i, c := range commands {
		all[i] = c.make(e)
	}
	return all
}

// newRoot makes the command rlm, with the sub-commands that the arguments need.
func newRoot(e *env, args []string) *cobra.Command {
	var file string
	root := &cobra.Command{
		Use:           "rlm",
		Short:         "Run model-written code safely, over inputs of any size",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := config.Load(config.Sources{
				File:     file,
				UserFile: config.UserFile(),
				Environ:  os.Environ(),
				Flags:    cmd.Flags(),
			})
			if err != nil {
				return err
			}
			e.settings, e.log = settings, newLog(e.stderr, levels[settings.LogLevel])
			return nil
		},
	}

	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&file, "config", "",
		"configuration `file`, or none to read no file "+
			"(default: rlm/config.yaml in the user's configuration directory)")
	config.AddFlags(flags, config.In(config.Program))
	root.AddCommand(makeCommands(e, args)...)
	root.InitDefaultCompletionCmd()
	root.SetUsageFunc(showUsage)
	for _, cmd := range root.Commands() {
		if cmd.RunE == nil {
			cmd.Args = refuseUnknownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}

	return root
}

// refuseUnknownCommand is for commands that only have subcommands: cobra suggests a name
// at the root, but not below.
func refuseUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}

	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2 // as at the root
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += fmt.Sprintf("\n\nDid you mean this?\n\t%s\n", strings.Join(similar, "\n\t"))
	}
	return errors.New(text)
}

// newVersion makes a command that prints the same as --version, because many users try it.
// It loads no configuration, so it works with a broken one.
func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Args:              cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.stdout, "rlm version", version())
			return err
		},
	}
}

// flagError adds to an error of a flag: the values that it takes, or the flag that may have
// been meant. The flag of a setting has its own message.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if meant := spelling.Nearest(unknown.GetSpecifiedName(), names); meant != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, meant)
		}
	}

	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	if _, ours := flag.Value.(config.Value); ours {
		return fmt.Errorf("--%s %w", flag.Name, invalid.Unwrap())
	}

	wants := map[string]string{
		"int": "a whole number", "bool": "true or false", "stringToString": "NAME=VALUE",
	}[flag.Value.Type()]
	if wants == "" {
		return err
	}
	return fmt.Errorf("--%s %q: give %s", flag.Name, invalid.GetValue(), wants)
}

var levels = map[string]zerolog.Level{
	"trace": zerolog.TraceLevel, "debug": zerolog.DebugLevel, "info": zerolog.InfoLevel,
	"warn": zerolog.WarnLevel, "error": zerolog.ErrorLevel,
}

// newLog returns a log that is readable text on a terminal, and JSON elsewhere.
func newLog(w io.Writer, level zerolog.Level) *slog.Logger {
	if isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w}
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(w).Level(level)))
}
