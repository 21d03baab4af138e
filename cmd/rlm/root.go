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
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/code"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/loops"
	"github.com/rlmhq/rlm/cmd/rlm/internal/prompt"
	"github.com/rlmhq/rlm/cmd/rlm/internal/services"
	"github.com/rlmhq/rlm/cmd/rlm/internal/setup"
	"github.com/rlmhq/rlm/cmd/rlm/internal/stored"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/spelling"
)

// linked is the version that the linker sets. The linker cannot set a variable that the program
// initialises, so linked has no initial value.
var linked string

// version returns linked if that is set, and otherwise the module's version, which go install
// writes into a binary.
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

// functions are additional host functions for snippets. Only tests set them.
var functions []rlm.Function

// run is main, with its environment as parameters. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, in := cli.Listen(ctx)
	defer in.Stop()
	e := &cli.Env{
		Life:       ctx,
		Stdin:      cli.MakeInterruptible(ctx, stdin),
		Terminal:   cli.IsTerminal(stdin),
		Stdout:     stdout,
		Stderr:     stderr,
		Interrupts: in,
		Args:       args,
		Version:    version(),
		Functions:  functions,
	}

	e.Input, _ = stdin.(*os.File)

	root := newRoot(e, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		setup.CompleteValues(e, root)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return exitCode(ctx, e, root.ExecuteContext(ctx))
}

func exitCode(ctx context.Context, e *cli.Env, err error) int {
	if err == nil {
		return cli.ExitOK
	}
	var exit *cli.ExitError
	if !errors.As(err, &exit) {
		exit = &cli.ExitError{Code: cli.ExitUsage, Err: err} // an error of cobra, such as an unknown flag
	}

	if ctx.Err() != nil {
		e.EndEcho()
		_, _ = fmt.Fprintln(e.Stderr, "rlm: interrupted")
		return cli.ExitInterrupted
	}
	if exit.Err != nil {
		_, _ = fmt.Fprintln(e.Stderr, "rlm:", cli.EscapeKeepingLines(adviseRepair(exit.Err)))
	}

	return exit.Code
}

// adviseRepair returns the message of an error, with advice if the store is damaged.
func adviseRepair(err error) string {
	const command = "rlm store check"
	text := err.Error()
	if !errors.Is(err, store.ErrDamaged) || strings.Contains(text, command) {
		return text
	}
	return text + ": " + command + " says what is lost, and with --repair saves the rest"
}

// subCommand is a sub-command that has not been created yet.
type subCommand struct {
	name string
	make func(e *cli.Env) *cobra.Command
}

// aliases are alternative names of commands.
var aliases = map[string]string{"run": "ask"}

// listCommands returns the sub-commands. It is a function because one of them, runs resume, creates
// others.
func listCommands() []subCommand {
	return []subCommand{
		{"ask", loops.NewRun},
		{"reflect", loops.NewReflect},
		{"reflexion", loops.NewReflexion},
		{"distill", loops.NewDistill},
		{"workflow", loops.NewWorkflow},
		{"runs", func(e *cli.Env) *cobra.Command { return stored.NewRuns(e, newRoot) }},
		{"sessions", stored.NewSessions},
		{"exec", code.NewExec},
		{"connect", services.NewConnect},
		{"repl", prompt.NewRepl},
		{"graph", code.NewGraph},
		{"chat", prompt.NewChat},
		{"hook", loops.NewHook},
		{"mcp", services.NewMCP},
		{"acp", services.NewACP},
		{"serve", services.NewServe},
		{"keys", services.NewKeys},
		{"store", stored.NewStore},
		{"trace", stored.NewTrace},
		{"view", stored.NewViewer},
		{"explain", code.NewExplain},
		{"models", setup.NewModels},
		{"tiers", setup.NewTiers},
		{"doctor", setup.NewDoctor},
		{"images", setup.NewImages},
		{"config", setup.NewConfig},
		{setup.Manual, setup.NewMan},
		{"version", newVersion},
	}
}

// makeCommands creates the sub-command that the arguments begin with, because creating the flags of
// all sub-commands takes a tenth of the time of a short command. It creates all sub-commands if
// none matches, and for a manual.
func makeCommands(e *cli.Env, args []string) []*cobra.Command {
	commands := listCommands()
	if len(args) > 0 && args[0] != setup.Manual {
		for _, c := range commands {
			if c.name == args[0] || aliases[args[0]] == c.name {
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

// newRoot creates the command rlm, with the sub-commands that the arguments need.
func newRoot(e *cli.Env, args []string) *cobra.Command {
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
			e.Settings, e.Log = settings, newLog(e.Stderr, levels[settings.LogLevel])
			return nil
		},
	}

	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&file, "config", "",
		"configuration `file`, or none to read no file "+
			"(default: rlm/config.yaml in the user's configuration directory)")
	config.AddFlags(flags, func(s config.Setting) bool {
		return config.In(config.Program)(s) && !config.Named("no_keep")(s) // only loops have no_keep
	})
	root.AddCommand(makeCommands(e, args)...)
	root.InitDefaultCompletionCmd()
	root.SetUsageFunc(setup.ShowUsage)
	for _, cmd := range root.Commands() {
		if cmd.RunE == nil {
			cmd.Args = refuseUnknownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}

	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = refuseUnknownTopic
		}
	}
	return root
}

// refuseUnknownTopic is for the command help, which would otherwise accept any name.
func refuseUnknownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		return refuseUnknownCommand(found, rest)
	}
	return err
}

// refuseUnknownCommand is for commands that only have subcommands, because cobra suggests names
// only at the root.
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

// newVersion creates a command that prints the same as --version, because many users try it. It
// loads no configuration, so it works even if the configuration is broken.
func newVersion(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Args:              cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.Stdout, "rlm version", version())
			return err
		},
	}
}

// flagError adds advice to a flag's error, which is the accepted values, or the flag that the user
// probably meant. A setting's flag has its own message.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if long := strings.TrimLeft(unknown.GetSpecifiedShortnames(), "-"); len(long) > 1 {
			name, _, _ := strings.Cut(long, "=")
			if cmd.Flags().Lookup(name) != nil {
				return fmt.Errorf("%w; did you mean --%s, with two hyphens?", err, name)
			}
		}
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
		"duration": "a duration such as 30m or 24h",
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

// newLog returns a log that is readable text on a terminal and JSON elsewhere.
func newLog(w io.Writer, level zerolog.Level) *slog.Logger {
	if cli.IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w}
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(w).Level(level)))
}
