package stored

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/loops"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
)

// readSpec returns how a run was started.
func readSpec(ctx context.Context, engine *rlm.Engine, name string) (spec loops.RunSpec, err error) {
	known, err := engine.ShowRun(ctx, name)
	if err != nil {
		return spec, err
	}
	if len(known.Begun) == 0 {
		return spec, fmt.Errorf("run %s was begun by a program, which alone can continue it", name)
	}
	decoder := json.NewDecoder(bytes.NewReader(known.Begun))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return spec, fmt.Errorf("cannot read how run %s was begun: %w", name, err)
	}
	return spec, nil
}

// laterFlags accepts the flags of other loops. The command that continues the run parses them.
var laterFlags = cobra.FParseErrWhitelist{UnknownFlags: true}

func newRunsResume(e *cli.Env, newRoot func(e *cli.Env, args []string) *cobra.Command) *cobra.Command {
	var unused loops.RunFlags
	cmd := &cobra.Command{
		Use: "resume NAME [flags of rlm ask]", Args: oneName, FParseErrWhitelist: laterFlags,
		Short: "Continue a named run from its last turn",
		Long: `Continue a named run from its last turn, in the directory where it was begun.

New flags override the run's first flags. For example, pass --max-usd after the budget has
run out.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return resumeRun(cmd.Context(), e, args[0], newRoot)
		},
	}
	unused.AddTo(cmd.Flags(), &cli.Env{}) // a new command will parse the flags
	return cmd
}

// resumeRun again runs the command that started a run.
func resumeRun(
	ctx context.Context, e *cli.Env, name string, newRoot func(e *cli.Env, args []string) *cobra.Command,
) error {
	further, err := argsBehind(e, name)
	if err != nil {
		return cli.Usage(err)
	}
	var spec loops.RunSpec
	err = wiring.WithRuns(e, func(engine *rlm.Engine) (err error) {
		spec, err = readSpec(ctx, engine, name)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return cli.Usage(fmt.Errorf("cannot continue run %s where it was begun: %w", name, err))
	}

	args := spec.With(append(further, "--name="+name)...)
	root := newRoot(e, args)
	root.SetArgs(args)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	return root.ExecuteContext(ctx)
}

// argsBehind returns the command-line arguments after the name of a run.
func argsBehind(e *cli.Env, name string) ([]string, error) {
	for i := 1; i < len(e.Args); i++ {
		if e.Args[i] == name && (e.Args[i-1] == "resume" || e.Args[i-1] == "fork") {
			return e.Args[i+1:], nil
		}
	}
	return nil, errors.New("give the name of the run before the flags")
}

func newRunsRewind(e *cli.Env) *cobra.Command {
	turn := -1
	cmd := &cobra.Command{
		Use: "rewind NAME --turn N", Args: oneName,
		Short: "Take back the turns of a named run after a turn",
		Long: `Take back the turns of a named run after a turn. "rlm runs resume NAME" continues from
there, and asks the models again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if turn < 0 {
				return errors.New("give the last turn to keep: --turn N, or 0 to keep none")
			}
			err := wiring.WithRuns(e, func(engine *rlm.Engine) error {
				return engine.RewindRun(cmd.Context(), args[0], turn)
			})
			if err == nil {
				loops.TellResume(e, args[0], "")
			}
			return err
		},
	}
	cmd.Flags().IntVar(&turn, "turn", -1, "last `turn` that stays, 0 for none")
	return cmd
}

func newRunsFork(e *cli.Env) *cobra.Command {
	var unused loops.RunFlags
	turn, question := 0, ""
	cmd := &cobra.Command{
		Use:   "fork NAME [flags of rlm ask] --as NEW --turn N",
		Short: "Branch a new run from a turn of a named run",
		Long: `Branch a new run from a turn of a named run. The new run has the turns up to this one, and
their variables. Flags override those of the first run, such as --model; the contexts stay
the same. "rlm runs resume NEW" continues the new run.`,
		Args: oneName, FParseErrWhitelist: laterFlags,
		RunE: func(cmd *cobra.Command, args []string) error {
			return forkRun(cmd.Context(), e, args[0], unused.Name, turn, question)
		},
	}
	flags := cmd.Flags()
	unused.AddTo(flags, &cli.Env{})
	flags.Lookup("name").Hidden = true
	flags.StringVar(&unused.Name, "as", "", "`name` of the new run")
	flags.IntVar(&turn, "turn", 0, "`turn` after which the new run branches, from 1")
	flags.StringVar(&question, "question", "", "another `question` for the new run")
	return cmd
}

// ownForkFlags are the flags of rlm runs fork that rlm ask does not have.
var ownForkFlags = []string{"--as", "--turn", "--question"}

func forkRun(ctx context.Context, e *cli.Env, name, fork string, turn int, question string) error {
	further, err := argsBehind(e, name)
	if err != nil {
		return cli.Usage(err)
	}
	if fork == "" {
		return cli.Usage(errors.New("name the new run with --as"))
	}

	for i := 0; i < len(further); {
		flag, _, hasValue := strings.Cut(further[i], "=")
		if !slices.Contains(ownForkFlags, flag) {
			i++
			continue
		}
		end := i + 1
		if !hasValue {
			end++
		}
		further = slices.Delete(slices.Clone(further), i, min(end, len(further)))
	}

	err = wiring.WithRuns(e, func(engine *rlm.Engine) error {
		spec, err := readSpec(ctx, engine, name)
		if err != nil {
			return err
		}
		if hasFlag(spec.Args, "--trace") && !hasFlag(further, "--trace") {
			further = append(further, "--trace=none") // the folder belongs to the first run
		}
		if i := slices.Index(spec.Args, "--"); i >= 0 {
			spec.Args = slices.Insert(spec.Args, i, further...)
		} else {
			spec.Args = append(spec.Args, further...)
		}
		if question != "" {
			if spec.Question == "" {
				return fmt.Errorf("run %s has no question that could be another one: omit --question", name)
			}
			spec.Question = question
		}
		spec.Unnamed = false // the fork has a name
		data, err := json.Marshal(spec)
		if err != nil {
			return err
		}
		return engine.ForkRun(ctx, name, turn, rlm.StoredRun{Name: fork, Question: spec.Question, Begun: data})
	})
	if err == nil {
		loops.TellResume(e, fork, "")
	}
	return err
}

// hasFlag reports whether a command line contains a flag with a value.
func hasFlag(args []string, flag string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == flag || strings.HasPrefix(arg, flag+"=")
	})
}
