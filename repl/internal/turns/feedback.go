package turns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// FeedbackOptions bound the part of a turn that a model sees.
type FeedbackOptions struct {
	// Cap bounds the characters of output and tracebacks.
	Cap int
	// Turn is the number of the turn, from 1, and Turns the maximum.
	Turn, Turns int
	// Header is the first line. If it is empty, the first line names the turn, and a last line
	// warns when turns run out.
	Header string
	// Kept is the variable that holds the output that the session kept; the feedback names it if
	// the cap truncated the output.
	Kept string
	// Notes are further sentences, one per line.
	Notes []string
}

// DefaultFeedback bounds a turn's output in the feedback, in characters.
const DefaultFeedback = 20_000

// JoinOutput returns all output of a turn, as the session keeps it for later snippets.
func JoinOutput(ran []ledger.Snippet) string {
	var out strings.Builder
	for i := range ran {
		out.WriteString(ran[i].Stdout)
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD")
}

// writeFeedback writes the message that reports the outcome of a model's code.
func writeFeedback(ran []ledger.Snippet, skipped int, o FeedbackOptions) string {
	var b strings.Builder
	end := ""
	if o.Header == "" {
		o.Header, end = fmt.Sprintf("[turn %d/%d]", o.Turn, o.Turns), endNote(o.Turn, o.Turns)
	}
	b.WriteString(o.Header + "\n")

	left := o.Cap
	for i := range ran {
		describe(&b, &ran[i], i, len(ran), &left)
	}
	switch {
	case o.Kept == "":
	case slices.ContainsFunc(ran, func(r ledger.Snippet) bool { return r.Dropped > 0 }):
		fmt.Fprintf(&b, "The variable %s has what was kept of the output: the end is missing.\n", o.Kept)
	default:
		fmt.Fprintf(&b, "The whole output is in the variable %s.\n", o.Kept)
	}
	if skipped > 0 {
		fmt.Fprintf(&b, "%d further block(s) of code were not run, because of the above.\n",
			skipped)
	}

	for _, note := range o.Notes {
		b.WriteString(note + "\n")
	}
	if end != "" {
		b.WriteString(end + "\n")
	}

	return strings.TrimRight(b.String(), "\n")
}

// describe writes one block's outcome and subtracts its length from left.
func describe(b *strings.Builder, r *ledger.Snippet, i, n int, left *int) {
	if n > 1 {
		fmt.Fprintf(b, "Block %d of %d:\n", i+1, n)
	}
	silent := true
	for _, part := range []struct{ label, text string }{
		{"stdout", r.Stdout}, {"stderr", r.Stderr}, {"error", record.FormatTraceback(r)},
	} {
		text := strings.TrimRight(strings.ToValidUTF8(part.text, "\uFFFD"), "\n")
		if text == "" {
			continue
		}
		silent = false
		least := 0
		if record.HasFailed(r) {
			least = minShown
		}

		shown := texts.Truncate(text, max(*left, least))
		*left -= len(shown)
		line := fence(shown)
		fmt.Fprintf(b, "%s:\n%s\n%s\n%s\n", part.label, line, shown, line)
	}

	for _, a := range r.Artefacts {
		silent = false
		fmt.Fprintf(b, "Made %s (%s, %d bytes).\n", a.Name, a.Type, len(a.Data))
	}
	if silent && r.Status == tiers.StatusOK {
		b.WriteString("(no output)\n")
	}
	if r.Dropped > 0 {
		fmt.Fprintf(b, "%d bytes of output beyond the limit were not kept.\n", r.Dropped)
	}

	describeCircumstances(b, r)
	if len(r.New) > 0 {
		fmt.Fprintf(b, "New variables: %s\n", joinNames(r.New))
	}
}

// minShown is the minimum part of each stream of failed code that is shown once the cap is used up,
// in characters, so that a flood of output does not hide the reason for a failure.
const minShown = 1_000

// describeCircumstances describes other events in the session.
func describeCircumstances(b *strings.Builder, r *ledger.Snippet) {
	switch r.Status {
	case tiers.StatusLimit:
		fmt.Fprintf(b, "The code was stopped: it used up its limit of %s.\n", limitName(r.Limit))
	case tiers.StatusCrashed:
		b.WriteString("The code brought its interpreter down.\n")
	case tiers.StatusExited:
		b.WriteString("The code called exit; the session goes on.\n")
	case tiers.StatusOK, tiers.StatusRaised:
	}

	if r.Lost != nil {
		fmt.Fprintf(b, "Variables may be gone: %s\n", r.Lost.Reason)
	}
	if r.Moved == nil {
		return
	}

	for i, left := range r.Moved.Report.Left {
		if i == mostNamed {
			fmt.Fprintf(b, "%d more were left behind.\n", len(r.Moved.Report.Left)-i)
			break
		}
		fmt.Fprintf(b, "The session moved to another sandbox; %s was left behind: %s\n",
			showName(left.Name), onOneLine(left.Reason))
	}
}

// mostNamed bounds the variables named in one list.
const mostNamed = 30

func limitName(l tiers.Limit) string {
	switch l {
	case tiers.LimitWall:
		return "time"
	case tiers.LimitActive:
		return "computing time"
	case tiers.LimitHostCalls:
		return "host calls"
	case tiers.LimitMemory, tiers.LimitOutput, tiers.LimitFuel:
	}

	return string(l)
}

func joinNames(list []string) string {
	var shown []string
	for _, name := range list[:min(len(list), mostNamed)] {
		shown = append(shown, showName(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(list) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// fence returns a line that text does not contain, to delimit it, so that printed text cannot pass
// for a line of this program.
func fence(text string) string {
	line := "```"
	for strings.Contains(text, line) {
		line += "`"
	}
	return line
}

// plainName matches a name that is valid in Python code.
var plainName = lazyregexp.New(`^[\pL_][\pL\pN\pM_]*$`)

// showName returns a name in the namespace, quoted if it is not valid in code, because code can put
// any string into globals().
func showName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// onOneLine returns text from the guest with line ends and control characters escaped.
func onOneLine(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// ReplyCut tells a model that the token limit truncated its reply.
const ReplyCut = "Your reply was cut at the limit of tokens, so code and answers without their end do not count. " +
	"Write less in one turn."

// ToolCalled is the feedback to a model that calls a tool instead of answering, although it has no
// tools.
const ToolCalled = "You called a tool of your chat interface, but there are none, so nothing happened. " +
	"Write code in a ```repl block, or give your answer with FINAL(...)."

// endNote warns a model when its turns are running out; until then it is empty.
func endNote(turn, turns int) string {
	switch left := turns - turn; {
	case left <= 0 || turns <= 2:
		return ""
	case left == 1:
		return "(approaching limit: this is the last turn; give your final answer now)"
	case left == 2:
		return "(approaching limit: finalize soon)"
	}

	return ""
}

// isCut reports whether feedback with this cap omits output.
func isCut(ran []ledger.Snippet, limit int) bool {
	total := 0
	for i := range ran {
		total += len([]rune(ran[i].Stdout))
	}
	return total > limit
}
