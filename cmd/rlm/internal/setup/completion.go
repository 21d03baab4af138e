package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/reflect"
)

// CompleteValues makes shells complete the values of all flags below a command, and arguments that
// are names in the store.
func CompleteValues(e *cli.Env, cmd *cobra.Command) { (&completer{e}).completeValues(cmd) }

// completer suggests continuations of a command line.
type completer struct{ e *cli.Env }

func (c *completer) completeValues(cmd *cobra.Command) {
	complete := func(flag *pflag.Flag) {
		if suggest := c.suggestValues(flag); suggest != nil {
			if err := cmd.RegisterFlagCompletionFunc(flag.Name, suggest); err != nil {
				panic(fmt.Sprintf("--%s of %s: %v", flag.Name, cmd.CommandPath(), err)) // registered twice
			}
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(complete)
	cmd.PersistentFlags().VisitAll(complete)
	if suggest := c.suggestArguments(cmd); suggest != nil {
		cmd.ValidArgsFunction = suggest
	}

	for _, child := range cmd.Commands() {
		c.completeValues(child)
	}
}

// suggestValues returns the completion of a flag's value, or nil if the value is a file or the flag
// has no value.
func (c *completer) suggestValues(flag *pflag.Flag) cobra.CompletionFunc {
	if flag.Name == "session" {
		return c.suggestSessions
	}
	if _, isKept := flag.Value.(*wiring.GivenName); isKept { // names a run to continue or begin
		return c.suggestRuns
	}
	if words := config.WordsOf(flag); words != nil {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	if suggest := suggestions[flag.Name]; suggest != nil {
		return suggest
	}

	value, _ := pflag.UnquoteUsage(flag)
	if flag.NoOptDefVal != "" || slices.Contains(fileValues, value) || slices.Contains(fileFlags, flag.Name) {
		return nil
	}
	if value == "folder" {
		return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	}
	return cobra.NoFileCompletions
}

// The flags whose values are files, given by the name of the value in the help, or by the name of
// the flag.
var (
	fileValues = []string{"file", "program", "SRC:DST"}
	fileFlags  = []string{
		"record", "replay", "prices", "python", "trace", "cache-dir", "local-folder", "evidence",
		"graph", "graph-write", "remember", "store", "openapi",
	}
)

// suggestions maps flags with special values to their completions.
var suggestions = map[string]cobra.CompletionFunc{
	"lang":             suggestWords("auto", "python", "go", "sql"),
	"tier":             suggestWords("auto", "interp", "wasm", "docker", "local"),
	"format":           suggestFormats,
	"output-type":      suggestWords("bool", "int", "float", "str", "list[str]", "list[int]", "dict[str, str]"),
	"encoding":         suggestWords("utf-8", "utf-16", "latin-1", "windows-1252", "shift_jis", "gb18030", "euc-kr"),
	"model":            suggestModels,
	"sub-model":        suggestModels,
	"depth-models":     suggestModels,
	"image":            suggestImages,
	"max-unpacked":     suggestSizes,
	"memory":           suggestSizes,
	"max-output":       suggestSizes,
	"reasoning-effort": suggestWords("minimal", "low", "medium", "high"),
}

func suggestWords(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

var suggestSizes = suggestWords("64KiB", "1MiB", "16MiB", "512MiB", "1GiB", "4GiB")

// suggestFormats suggests the formats of graphs or of traces.
func suggestFormats(
	cmd *cobra.Command, args []string, begun string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if cmd.Parent().Name() == "graph" {
		return suggestWords(wiring.DumpFormats...)(cmd, args, begun)
	}
	return suggestWords(reflect.TraceFormats()...)(cmd, args, begun)
}

// suggestModels suggests only providers, because their servers have the lists of models.
func suggestModels(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var words []string
	for _, provider := range append(providers.Names(), "scripted", "acp") {
		words = append(words, provider+"/")
	}
	return words, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// suggestImages suggests the images with packages that this program built. It suggests none if the
// daemon does not answer immediately.
func suggestImages(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	list, err := images.List(ctx, wiring.DockerHost())
	if err != nil {
		cobra.CompDebugln("--image: "+err.Error(), false)
	}

	var words []string
	for _, image := range list {
		if !image.Used || len(image.Packages) == 0 {
			continue
		}
		for _, name := range image.Names {
			name, _, _ = strings.Cut(name, ":")
			words = append(words, strings.TrimPrefix(name, "rlm/python-"))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
