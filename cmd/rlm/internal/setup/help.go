package setup

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
)

// commandGroups groups the commands of the root, in the order of the help. Other commands come
// last.
var commandGroups = []struct {
	title string
	names []string
}{
	{"Run code", []string{"exec", "repl", "sessions", "connect", "explain", "graph"}},
	{"Ask models", []string{
		"ask", "runs", "chat", "reflect", "reflexion", "distill", "workflow", "trace", "view",
	}},
	{"Serve agents", []string{"serve", "mcp", "acp", "hook"}},
	{"Set up", []string{"doctor", "models", "keys", "tiers", "images", "config", "store", "completion", "man"}},
}

// The titles of the groups of flags, in the order of the help. The first is for flags without a
// group.
const (
	ownFlags     = "Flags"
	inputFlags   = "Inputs"
	outputFlags  = "Output"
	programFlags = "Global Flags"
)

var flagTitles = []string{
	ownFlags, inputFlags, outputFlags, titleOf[config.Routing], titleOf[config.Limits], titleOf[config.Models],
	titleOf[config.Run], titleOf[config.Graphs], titleOf[config.Reflect], titleOf[config.Triggers], programFlags,
}

// titleOf maps each group of settings to its title.
var titleOf = map[config.Group]string{
	config.Routing:  "Tiers and isolation",
	config.Limits:   "Limits of each snippet",
	config.Models:   "Models",
	config.Run:      "Budget and course of a run",
	config.Graphs:   "Knowledge graphs",
	config.Reflect:  "Reflection",
	config.Triggers: "Triggers",
	config.Program:  programFlags,
}

// flagTitle maps flags that are not settings to their titles.
var flagTitle = map[string]string{
	"context": inputFlags, "context-json": inputFlags, "include": inputFlags, "exclude": inputFlags,
	"no-ignore": inputFlags, "encoding": inputFlags, "csv": inputFlags, "no-convert": inputFlags,
	"max-unpacked": inputFlags, "max-ratio": inputFlags,
	"mount": inputFlags, "tool": inputFlags, "tool-command": inputFlags, "approve": inputFlags,
	"mcp": inputFlags, "openapi": inputFlags, "openapi-host": inputFlags, "inject": inputFlags,

	"json": outputFlags, "quiet": outputFlags, "verbose": outputFlags, "events": outputFlags,
	"stream": outputFlags, "out": outputFlags, "raw": outputFlags,

	"config": programFlags, "help": programFlags, "version": programFlags,
}

// ShowUsage writes the usage of a command, with its flags in groups.
func ShowUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	b.WriteString("\n")

	if cmd.HasExample() {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	writeCommands(&b, cmd)
	writeFlags(&b, cmd, widthOf(cmd.OutOrStdout()))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}

	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// writeCommands writes the subcommands of a command; those of the root are grouped.
func writeCommands(b *strings.Builder, parent *cobra.Command) {
	rest := map[string]*cobra.Command{}
	for _, cmd := range parent.Commands() {
		if cmd.IsAvailableCommand() || cmd.Name() == "help" {
			rest[cmd.Name()] = cmd
		}
	}
	write := func(title string, names []string) {
		if len(names) == 0 {
			return
		}
		b.WriteString("\n" + title + ":\n")
		for _, name := range names {
			fmt.Fprintf(b, "  %-*s  %s\n", rest[name].NamePadding(), name, rest[name].Short)
			delete(rest, name)
		}
	}

	title := "Commands"
	if !parent.HasParent() {
		for _, group := range commandGroups {
			write(group.title, group.names)
		}
		title = "More commands"
	}
	write(title, slices.Sorted(maps.Keys(rest)))
}

// writeFlags writes the flags of a command in lines of at most width columns; 0 means no limit.
func writeFlags(b *strings.Builder, cmd *cobra.Command, width int) {
	groups := map[string]*pflag.FlagSet{}
	add := func(flag *pflag.Flag) {
		title := titleOfFlag(flag)
		if groups[title] == nil {
			groups[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
		}
		groups[title].AddFlag(flag)
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)

	for _, title := range flagTitles {
		if group := groups[title]; group != nil && group.HasAvailableFlags() {
			b.WriteString("\n" + title + ":\n" + group.FlagUsagesWrapped(width))
		}
	}
}

// titleOfFlag returns the title of the group that contains the flag.
func titleOfFlag(flag *pflag.Flag) string {
	if group, ok := config.GroupOf(flag); ok {
		return titleOf[group]
	}
	if title, ok := flagTitle[flag.Name]; ok {
		return title
	}
	return ownFlags
}

// widthOf returns the number of columns of a terminal, or 0 for any other writer.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd())) //nolint:gosec // a file descriptor is small
	if err != nil {
		return 0
	}
	return width
}
