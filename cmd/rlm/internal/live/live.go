package live

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// View shows the progress of a run on stderr, one line per event. On a terminal, a block below the
// lines shows the active loops, and is redrawn as they change. Its methods are safe for concurrent
// use.
type View struct {
	mu    sync.Mutex
	w     io.Writer
	quiet bool
	// Verbose also shows the code of snippets and their output.
	Verbose bool
	screen  *os.File // nil without a terminal
	begun   time.Time
	nodes   map[string]*liveNode
	spent   ledger.Spending
	drawn   int // number of lines in the block below
	beat    int
	paused  bool
	stop    chan struct{}
	done    chan struct{}
}

// liveNode is an active loop.
type liveNode struct {
	name                  string // for display; empty for the root
	model, tier, doing    string
	depth, turn           int
	flying, calls, failed int
	writing               string // the unfinished line of a reply
	waits                 string // the reason for waiting; empty if the loop does not wait
	waitBegun             time.Time
	waitLimit             time.Duration
}

// redraw is the interval between drawings. maxLoops is the maximum number of loops in a drawing.
const (
	redraw   = 100 * time.Millisecond
	maxLoops = 12
)

// New returns a view on stderr. A quiet view shows nothing. Close it after the run.
func New(e *cli.Env, quiet bool) *View {
	v := &View{w: e.Stderr, quiet: quiet, begun: time.Now(), nodes: map[string]*liveNode{}}

	mayDraw := !quiet && runtime.GOOS != "windows" && os.Getenv("TERM") != "dumb"
	if f, ok := e.Stderr.(*os.File); ok && mayDraw && cli.IsTerminal(f) {
		v.screen, v.stop, v.done = f, make(chan struct{}), make(chan struct{})
		go v.animate(v.stop)
	}
	return v
}

// animate redraws until stop is closed.
func (v *View) animate(stop <-chan struct{}) {
	defer close(v.done)
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			v.mu.Lock()
			v.beat++
			v.draw()
			v.mu.Unlock()
		}
	}
}

// Close erases the block and stops drawing. It is idempotent.
func (v *View) Close() {
	v.mu.Lock()
	stop := v.stop
	v.stop = nil
	v.mu.Unlock()
	if stop == nil {
		return
	}

	close(stop)
	<-v.done
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	_, _ = fmt.Fprint(v.w, "\r\x1b[J") // erases what the terminal itself printed, such as ^C
	v.screen = nil
}

// Pause erases the block until resume is called.
func (v *View) Pause() (resume func()) {
	set := func(paused bool) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.erase()
		v.paused = paused
	}
	set(true)
	return func() { set(false) }
}

// IsLive reports whether the view draws on a terminal.
func (v *View) IsLive() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.screen != nil
}

// Note prints a message from the command.
func (v *View) Note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writeLine("rlm: " + fmt.Sprintf(format, args...))
}

// writeLine writes a line above the block.
func (v *View) writeLine(text string) {
	if v.quiet {
		return
	}
	v.erase()
	_, _ = fmt.Fprintln(v.w, text)
}

// Event shows an event of the run.
func (v *View) Event(e ledger.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Spent != nil && e.Spent.Calls >= v.spent.Calls {
		v.spent = *e.Spent
	}
	n := v.node(e)
	for _, text := range n.takeLines(e) {
		v.writeOf(e, "reply | "+text)
	}

	if v.Verbose && e.Kind == ledger.EventSnippet && e.Ran != nil {
		v.showSnippet(e)
	}
	if text := n.apply(e); text != "" {
		v.writeOf(e, text)
	}
	if e.Kind == ledger.EventLoopEnded || e.Kind == ledger.EventRunEnded {
		delete(v.nodes, e.Node)
	}
}

// writeOf prints a line about an event's loop.
func (v *View) writeOf(e ledger.Event, text string) {
	if name := v.nodes[e.Node].name; name != "" {
		text = name + ", " + text
	}
	v.writeLine("rlm: " + strings.Repeat("  ", e.Depth) + text)
}

// showSnippet shows a snippet line by line, and its output.
func (v *View) showSnippet(e ledger.Event) {
	for _, part := range []struct{ sign, text string }{
		{"code | ", e.Ran.Source}, {"stdout | ", e.Ran.Stdout}, {"stderr | ", e.Ran.Stderr},
	} {
		text := strings.TrimRight(part.text, "\n")
		if text == "" {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			v.writeOf(e, part.sign+cli.EscapeKeepingLines(strings.TrimSuffix(line, "\r")))
		}
	}
}

func (v *View) node(e ledger.Event) *liveNode {
	n := v.nodes[e.Node]
	if n == nil {
		n = &liveNode{name: NameLoop(e.Node), depth: e.Depth, doing: "begins"}
		v.nodes[e.Node] = n
	}
	return n
}

// NameLoop returns the display name of a loop, such as "loop 2.1" for the node 0.2.1. It is empty
// for the root.
func NameLoop(node string) string {
	if path, below := strings.CutPrefix(node, "0."); below {
		return "loop " + path
	}
	return ""
}

// maxWriting bounds an unfinished line, in bytes. Longer lines are shown in pieces.
const maxWriting = 4_000

// takeLines adds an event's text to the reply, and returns the lines that are now complete. Pieces
// of a stream can end anywhere; the event of the whole reply completes the last line.
func (n *liveNode) takeLines(e ledger.Event) []string {
	var whole []string
	if e.Kind == ledger.EventDelta && e.Text == "" {
		if n.writing != "" {
			whole = append(whole, cli.EscapeKeepingLines(n.writing))
		}
		n.writing = ""
		return append(whole, "(the reply broke off here; it starts again)")
	}
	if e.Kind == ledger.EventDelta {
		n.writing += e.Text
	}
	for {
		line, rest, found := strings.Cut(n.writing, "\n")
		isWaiting := e.Kind == ledger.EventDelta && len(n.writing) < maxWriting
		if !found && (n.writing == "" || isWaiting) {
			return whole
		}
		n.writing = rest
		whole = append(whole, cli.EscapeKeepingLines(strings.TrimSuffix(line, "\r")))
	}
}

// apply updates the loop from an event, and returns a line about the event, or "" if there is
// nothing to show.
func (n *liveNode) apply(e ledger.Event) string {
	took := func() string { return e.Elapsed.Round(time.Millisecond).String() }
	if e.Kind != ledger.EventCallStarted {
		n.waits = ""
	}
	switch e.Kind {
	case ledger.EventRunStarted, ledger.EventLoopStarted:
		if n.model = e.Model; n.model == "" {
			return "begins: " + cli.Shorten(n.takeName(e), 100)
		}
		return fmt.Sprintf("begins with %s%s: %s", AgentText(e.Agent), cli.Escape(e.Model),
			cli.Shorten(e.Text, 100))
	case ledger.EventTurnStarted:
		if n.turn, n.doing = e.Turn, "works"; e.Model != "" {
			n.doing = "asks " + cli.Escape(e.Model)
		}
	case ledger.EventReply:
		what := "reply"
		n.doing = "runs the reply"
		switch e.Purpose {
		case "draft", "revision", "critique":
			what, n.doing = e.Purpose, "has the draft judged"
		case "embedding":
			what = "embedding of the evidence"
		case "bypass":
			what = "direct reply, without a loop,"
		}
		if e.Error != "" {
			return turnText(e) + fmt.Sprintf("no reply (%s): %s", e.Purpose, cli.Shorten(e.Error, 300))
		}
		return turnText(e) + fmt.Sprintf("%s in %s%s", what, took(), UsedText(e))
	case ledger.EventCallStarted:
		n.flying++
	case ledger.EventCall:
		n.flying, n.calls = max(0, n.flying-1), n.calls+1
		if e.Error != "" {
			n.failed++
		}
	case ledger.EventSnippet:
		n.tier = e.Tier
		text := turnText(e) + fmt.Sprintf("snippet in %s: %s in %s%s", e.Tier, e.Status, took(),
			n.callsText())
		n.calls, n.failed = 0, 0
		if e.Error != "" {
			text += ": " + cli.Shorten(e.Error, 200)
		}
		return text
	case ledger.EventLoopEnded:
		return fmt.Sprintf("%s in %s: %s", nameEnding(e.Status), took(), cli.Shorten(e.Text+e.Error, 100))
	case ledger.EventRunEnded:
		return fmt.Sprintf("%s in %s%s", nameEnding(e.Status), took(), UsedText(e))
	case ledger.EventWaiting:
		n.waits = fmt.Sprintf("waiting for %s: %s", cli.Escape(e.Model), cli.Shorten(e.Error, 200))
		n.waitBegun, n.waitLimit = e.Time.Add(-e.Elapsed), e.Limit
		return turnText(e) + n.waitText(e.Time)
	case ledger.EventRetry,
		ledger.EventForesight,
		ledger.EventRefusal,
		ledger.EventCompaction,
		ledger.EventWarning,
		ledger.EventVerdict:
		return turnText(e) + describeEvent(e)
	case ledger.EventAnswer, ledger.EventTool,
		ledger.EventDelta: // the answer is shown at the end of the run; pieces are too small for a line
	}

	return ""
}

// takeName names a loop after its workflow node, and returns the rest of the event's text.
func (n *liveNode) takeName(e ledger.Event) string {
	at := strings.LastIndex(e.Text, ": ") // the node's name may contain a colon, its action cannot
	if e.Kind != ledger.EventLoopStarted || at < 0 {
		return e.Text
	}
	n.name = "node " + cli.Shorten(e.Text[:at], 60)
	return e.Text[at+2:]
}

// describeEvent describes an event that is not about a call or a snippet.
func describeEvent(e ledger.Event) string {
	switch e.Kind { //nolint:exhaustive // the others have their own lines
	case ledger.EventRetry:
		if e.Status == llm.FinishLength {
			return "asking again with more room: " + cli.Shorten(e.Error, 200)
		}
		return "the answer breaks its contract; asking again: " + cli.Shorten(e.Error, 200)
	case ledger.EventForesight:
		return "forecast" + UsedText(e)
	case ledger.EventRefusal:
		return "refused: " + cli.Shorten(e.Error, 200)
	case ledger.EventCompaction:
		return "the conversation was summarised"
	case ledger.EventVerdict:
		return cli.Shorten(e.Status, 400)
	}

	return cli.Shorten(e.Error, 300)
}

// nameEnding returns the status of a run as words.
func nameEnding(status string) string {
	switch ledger.Status(status) { //nolint:exhaustive // the others are words
	case ledger.StatusNoAnswer:
		return "no answer"
	case ledger.StatusPartial:
		return "the budget ran out"
	case ledger.StatusCanceled:
		return "interrupted"
	case ledger.StatusParked:
		return "waits for a decision"
	}

	return status
}

// AgentText returns the prefix for an agent's work, or "" without an agent.
func AgentText(name string) string {
	if name == "" {
		return ""
	}
	return "agent " + cli.Shorten(name, 100) + ", "
}

// turnText returns the prefix for a turn, or "" for an event outside any turn.
func turnText(e ledger.Event) string {
	if e.Turn == 0 {
		return ""
	}
	return fmt.Sprintf("turn %d: ", e.Turn)
}

// UsedText formats the usage of an event, or the run's usage if the event has none.
func UsedText(e ledger.Event) string {
	used := e.Used
	if used == nil {
		used = e.Spent
	}
	if used == nil {
		return ""
	}

	return ", " + used.String()
}

// waitText describes why and how long the loop has waited, and the maximum wait.
func (n *liveNode) waitText(now time.Time) string {
	return fmt.Sprintf("%s, %s of %s", n.waits,
		config.ShowSpan(now.Sub(n.waitBegun).Round(time.Second)), config.ShowSpan(n.waitLimit))
}

// callsText describes the number of model calls of a snippet.
func (n *liveNode) callsText() string {
	if n.calls == 0 {
		return ""
	}
	text := ", " + quantity.Plural(n.calls, "model call", "")
	if n.failed > 0 {
		text += fmt.Sprintf(" (%d failed)", n.failed)
	}

	return text
}
