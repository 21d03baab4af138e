package stored

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/live"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer/traces"
)

const traceLong = `Show the record of a run: the tree of loops and, for each turn, the reply, the code,
the tier, the output, the model calls and their cost. Nodes of a workflow and runs of a
distillation appear as sub-loops. Critiques of a reflexion appear with their drafts.

RUN is the folder that --trace wrote, a named run, or a file of "rlm runs export". A record
may come from an untrusted source, so unprintable characters appear as escapes. rlm cuts
long texts; --full shows them whole.`

// traceView prints a record.
type traceView struct {
	w           *bufio.Writer
	full, brief bool
}

// NewTrace makes the command rlm trace.
func NewTrace(e *cli.Env) *cobra.Command {
	var v traceView
	show := &cobra.Command{
		Use: "show RUN", Short: "Show the record of a run", Long: traceLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one run: its name, the folder that --trace wrote, or a file of rlm runs export")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if v.full && v.brief {
				return errors.New("give --full or --brief, not both")
			}
			run, err := readTrace(cmd.Context(), e, args[0])
			if err != nil {
				return cli.Usage(fmt.Errorf("cannot show the record: %w", err))
			}

			v.w = bufio.NewWriter(e.Stdout)
			v.showRun(run)
			if err := v.w.Flush(); err != nil {
				return cli.Broken(err)
			}
			return nil
		},
	}

	show.Flags().BoolVar(&v.full, "full", false, "show texts in full")
	show.Flags().BoolVar(&v.brief, "brief", false, "show only the tree, without code and texts")
	cmd := &cobra.Command{
		Use: "trace", Short: "Show records of runs",
	}

	cmd.AddCommand(show)
	return cmd
}

// The maximum sizes of texts and lists of calls without --full.
const (
	shownText  = 2_000 // characters
	shownCalls = 10
)

func (v *traceView) printf(format string, args ...any) { _, _ = fmt.Fprintf(v.w, format, args...) }

// showRun shows a record.
func (v *traceView) showRun(run *recordedRun) {
	root := run.node("0")
	if e := root.begun; e != nil {
		title := "question"
		switch run.root.Metadata.EnvironmentType {
		case "workflow":
			title = "workflow"
		case "distill":
			title = "traces"
		}

		v.printf("%s: %s\n", title, cli.Shorten(e.Text, 500))
	}

	switch e := root.ended; {
	case e != nil:
		v.printf("%s in %s%s\n", cli.Escape(e.Status), seconds(e.Elapsed.Seconds()),
			live.UsedText(ledger.Event{Spent: e.Spent}))
		if e.Error != "" {
			v.printf("reason: %s\n", cli.Shorten(e.Error, 500))
		}
		if e.Text != "" {
			v.printf("result: %s\n", cli.Shorten(e.Text, 500))
		}
	case root.begun != nil:
		v.printf("not ended: the run is still going on, or was killed%s\n",
			live.UsedText(ledger.Event{Spent: run.last}))
	}

	v.showNotes("", run.notes)
	v.showLoop(run, run.root, "0", "")
}

func (v *traceView) showNotes(indent string, notes []string) {
	for _, note := range notes {
		v.printf("%snote: %s\n", indent, cli.Escape(note))
	}
}

// showLoop shows a loop and its sub-loops. node is the loop's name in the events.
func (v *traceView) showLoop(run *recordedRun, l *traces.Loop, node, indent string) {
	events := run.node(node)
	v.showHeading(l, events, node, indent)
	v.showNotes(indent, l.Notes)
	asides := v.showAsides(events.asides, 0, indent)
	tiers := events.tiers
	for _, turn := range l.Turns {
		tiers = v.showTurn(turn, tiers, indent)
		asides = v.showAsides(asides, turn.Iteration, indent)
	}

	v.showAsides(asides, math.MaxInt, indent)
	if node != "0" && events.ended != nil { // the root's status is already shown
		e := events.ended
		v.printf("%s%s in %s", indent, cli.Escape(e.Status), seconds(e.Elapsed.Seconds()))
		if e.Error != "" {
			v.printf(": %s", cli.Shorten(e.Error, 500))
		}
		v.printf("\n")
	}

	for i, sub := range l.Subs {
		v.showLoop(run, sub, l.NodeOf(sub, i, node), indent+"  ")
	}
}

// showHeading shows the first line of a loop: its model or kind, and its question.
func (v *traceView) showHeading(l *traces.Loop, events *recordedNode, node, indent string) {
	var parts []string
	if name := live.NameLoop(node); name != "" {
		parts = append(parts, name)
	}
	model := l.Metadata.RootModel
	if model == "" && events.begun != nil { // a run of one call has no trajectory
		model = events.begun.Model
	}

	switch {
	case model != "":
		agent, _ := l.Metadata.EnvironmentKwargs["agent"].(string)
		parts = append(parts, live.AgentText(agent)+"model "+cli.Escape(model))
	case node == "0" && l.Metadata.EnvironmentType != "":
		parts = append(parts, cli.Escape(l.Metadata.EnvironmentType))
	}

	if len(l.Turns) > 0 || len(l.Subs) == 0 {
		parts = append(parts, quantity.Plural(len(l.Turns), "turn", ""))
	}
	if l.Folder != "." {
		parts = append(parts, "in "+cli.Escape(strings.TrimPrefix(l.Folder, "./")))
	}

	text := strings.Join(parts, ", ")
	if node != "0" && events.begun != nil && events.begun.Text != "" {
		text += ": " + cli.Shorten(events.begun.Text, 200)
	}
	v.printf("\n%s%s\n", indent, text)
}

// showAsides shows the events outside turns that precede the given turn, and returns the remaining
// events.
func (v *traceView) showAsides(all []ledger.Event, turn int, indent string) []ledger.Event {
	for len(all) > 0 && all[0].Turn <= turn {
		e := all[0]
		all = all[1:]
		line := fmt.Sprintf("%s: %s", e.Kind, cli.Shorten(e.Status+e.Error, 500))
		if e.Kind == ledger.EventReply {
			line = fmt.Sprintf("%s by %s, %s %s", cli.Escape(e.Purpose), cli.Escape(e.Model),
				seconds(e.Elapsed.Seconds()), cli.Shorten(e.Error, 500))
		}

		v.printf("%s│  %s\n", indent, strings.TrimSpace(line))
		v.showText(indent+"│    ", "", e.Text)
	}

	return all
}

// showTurn shows a turn, and returns the tiers of the later turns' snippets.
func (v *traceView) showTurn(t traces.Turn, tiers []string, indent string) []string {
	v.printf("%s├─ turn %d, %s\n", indent, t.Iteration, seconds(t.Seconds))
	inner := indent + "│    "
	v.showText(inner, "reply", t.Response)
	for _, block := range t.CodeBlocks {
		tier := ""
		if len(tiers) > 0 {
			tier, tiers = ", tier "+cli.Escape(tiers[0]), tiers[1:]
		}
		v.printf("%s│  code, %s%s\n", indent, seconds(block.Result.ExecutionTime), tier)
		v.showText(inner, "", block.Code)
		v.showText(inner, "stdout", block.Result.Stdout)
		v.showText(inner, "stderr", block.Result.Stderr)
		v.showCalls(indent, block.Result.RLMCalls)
	}

	if len(t.Final) > 0 && string(t.Final) != "null" {
		v.printf("%s│  answer: %s\n", indent, v.cut(finalText(t.Final)))
	}
	return tiers
}

// finalText formats an answer as a string.
func finalText(value json.RawMessage) string { return cli.Escape(texts.Show(value)) }

// showCalls shows a snippet's model calls.
func (v *traceView) showCalls(indent string, calls []trajectory.CallRecord) {
	if len(calls) == 0 {
		return
	}
	var sum float64
	for _, c := range calls {
		sum += c.ExecutionTime
	}

	v.printf("%s│  %s, %s in sum\n", indent, quantity.Plural(len(calls), "model call", ""),
		seconds(sum))

	if v.brief {
		return
	}
	for i, c := range calls {
		if i == shownCalls && !v.full {
			v.printf("%s│    and %d more\n", indent, len(calls)-i)
			break
		}
		v.printf("%s│    %s%s, %s: %s → %s\n", indent, live.AgentText(c.Agent), cli.Escape(c.RootModel),
			seconds(c.ExecutionTime), cli.Shorten(c.Prompt, 100), cli.Shorten(c.Response, 100))
	}
}

// showText shows a string, with indent before each line.
func (v *traceView) showText(indent, title, text string) {
	if text = strings.TrimRight(text, "\n"); text == "" || v.brief {
		return
	}
	if title != "" {
		v.printf("%s%s\n", strings.TrimSuffix(indent, "  "), title)
	}

	for line := range strings.SplitSeq(v.cut(cli.EscapeKeepingLines(text)), "\n") {
		v.printf("%s%s\n", indent, line)
	}
}

// cut shortens an escaped string, unless --full is set.
func (v *traceView) cut(text string) string {
	if v.full || utf8.RuneCountInString(text) <= shownText {
		return text
	}
	return texts.Truncate(text, shownText)
}

// seconds formats a duration from a record. An implausible duration is "?".
func seconds(s float64) string {
	if !(s >= 0 && s < 1e9) {
		return "?"
	}
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Microsecond * 10).String()
	}

	return d.Round(time.Millisecond * 10).String()
}
