package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"golang.org/x/term"

	"github.com/rlmhq/rlm/repl/ledger"
)

// view shows a run on stderr as it goes: a line for each thing that happened, and
// on a terminal below them the loops that are at work, redrawn as they change.
// Its methods are safe for concurrent use.
type view struct {
	mu     sync.Mutex
	w      io.Writer
	quiet  bool
	screen *os.File // nil if there is no terminal
	begun  time.Time
	nodes  map[string]*liveNode
	spent  ledger.Spending
	drawn  int // lines of the block below
	beat   int
	stop   chan struct{}
	done   chan struct{}
}

// liveNode is a loop at work.
type liveNode struct {
	model, tier, doing    string
	depth, turn           int
	flying, calls, failed int
	writing               string // the line of a reply that is not whole yet
}

// redraw is the pause between two drawings, shown is how many loops are drawn.
const (
	redraw = 100 * time.Millisecond
	shown  = 12
)

func newView(e *env, quiet bool) *view {
	v := &view{w: e.stderr, quiet: quiet, begun: time.Now(), nodes: map[string]*liveNode{}}
	if f, ok := e.stderr.(*os.File); ok && !quiet && isTerminal(f) && runtime.GOOS != "windows" &&
		os.Getenv("TERM") != "dumb" {
		v.screen, v.stop, v.done = f, make(chan struct{}), make(chan struct{})
		go v.animate()
	}
	return v
}

// animate redraws until close.
func (v *view) animate() {
	defer close(v.done)
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-v.stop:
			return
		case <-ticker.C:
			v.mu.Lock()
			v.beat++
			v.draw()
			v.mu.Unlock()
		}
	}
}

// close takes the block away. It may be called again.
func (v *view) close() {
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
	v.screen = nil
}

// note writes a line of the command's own.
func (v *view) note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line("rlm: " + fmt.Sprintf(format, args...))
}

// line writes a line above the block.
func (v *view) line(text string) {
	if v.quiet {
		return
	}
	v.erase()
	_, _ = fmt.Fprintln(v.w, text)
}

// event takes what happened into the picture.
func (v *view) event(e ledger.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Spent != nil && e.Spent.Calls >= v.spent.Calls {
		v.spent = *e.Spent
	}
	n := v.node(e)
	for _, text := range n.written(e) {
		v.line("rlm: " + strings.Repeat("  ", e.Depth) + e.Node + " | " + text)
	}

	if text := n.take(e); text != "" {
		v.line("rlm: " + strings.Repeat("  ", e.Depth) + e.Node + " " + text)
	}
	if e.Kind == ledger.EventLoopEnded || e.Kind == ledger.EventRunEnded {
		delete(v.nodes, e.Node)
	}
}

func (v *view) node(e ledger.Event) *liveNode {
	n := v.nodes[e.Node]
	if n == nil {
		n = &liveNode{depth: e.Depth, doing: "begins"}
		v.nodes[e.Node] = n
	}
	return n
}

// maxWriting bounds a line that is shown as it is written, in bytes.
const maxWriting = 4_000

// written returns the lines of a reply that have become whole: a stream's pieces end
// anywhere, and the reply's own event ends the last line.
func (n *liveNode) written(e ledger.Event) []string {
	if e.Kind == ledger.EventDelta {
		n.writing += e.Text
	}
	var whole []string
	for {
		line, rest, found := strings.Cut(n.writing, "\n")
		if !found &&
			(n.writing == "" || e.Kind == ledger.EventDelta && len(n.writing) < maxWriting) {
			return whole
		}
		n.writing = rest
		whole = append(whole, printableLines(strings.TrimSuffix(line, "\r")))
	}
}

// take notes an event of the loop, and returns a line if it is worth one.
func (n *liveNode) take(e ledger.Event) string {
	took := func() string { return e.Elapsed.Round(time.Millisecond).String() }
	switch e.Kind {
	case ledger.EventRunStarted, ledger.EventLoopStarted:
		if n.model = e.Model; n.model == "" {
			return "begins: " + short(e.Text, 100)
		}
		return fmt.Sprintf("%s: %s", printable(e.Model), short(e.Text, 100))
	case ledger.EventTurnStarted:
		if n.turn, n.doing = e.Turn, "works"; e.Model != "" {
			n.doing = "asks " + printable(e.Model)
		}
	case ledger.EventReply:
		what := "reply"
		n.doing = "runs the reply"
		switch e.Purpose {
		case "draft", "revision", "critique":
			what, n.doing = e.Purpose, "has the draft judged"
		}
		if e.Error != "" {
			return turnText(e) + fmt.Sprintf("no reply (%s): %s", e.Purpose, short(e.Error, 300))
		}
		return turnText(e) + fmt.Sprintf("%s in %s%s", what, took(), usedText(e))
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
			text += ": " + short(e.Error, 200)
		}
		return text
	case ledger.EventLoopEnded:
		return fmt.Sprintf("%s in %s: %s", e.Status, took(), short(e.Text+e.Error, 100))
	case ledger.EventRunEnded:
		return fmt.Sprintf("%s in %s%s", e.Status, took(), usedText(e))
	case ledger.EventRetry,
		ledger.EventForesight,
		ledger.EventRefusal,
		ledger.EventCompaction,
		ledger.EventWarning,
		ledger.EventVerdict:
		return turnText(e) + between(e)
	case ledger.EventAnswer,
		ledger.EventDelta: // the end of the run says it, or it is too small for a line
	}

	return ""
}

// between is what happened between calls and snippets.
func between(e ledger.Event) string {
	switch e.Kind { //nolint:exhaustive // the others have lines of their own
	case ledger.EventRetry:
		return "the answer breaks its contract and is asked for again: " + short(e.Error, 200)
	case ledger.EventForesight:
		return "about to take" + usedText(e)
	case ledger.EventRefusal:
		return "refused: " + short(e.Error, 200)
	case ledger.EventCompaction:
		return "the conversation was summed up"
	case ledger.EventVerdict:
		return short(e.Status, 400)
	}

	return short(e.Error, 300)
}

// turnText begins a line about a turn; what is outside of any begins without it.
func turnText(e ledger.Event) string {
	if e.Turn == 0 {
		return ""
	}
	return fmt.Sprintf("turn %d: ", e.Turn)
}

// usedText is what an event used, or what the run did until its end.
func usedText(e ledger.Event) string {
	used := e.Used
	if used == nil {
		used = e.Spent
	}
	if used == nil {
		return ""
	}

	return ", " + spentText(*used)
}

// spentText is a spending for people.
func spentText(s ledger.Spending) string {
	return fmt.Sprintf("%s, %s tokens in and %s out, $%.4f",
		english.Plural(int(s.Calls), "call", ""), humanize.Comma(s.InputTokens),
		humanize.Comma(s.OutputTokens), s.USD)
}

// callsText is what a snippet asked of models.
func (n *liveNode) callsText() string {
	if n.calls == 0 {
		return ""
	}
	text := ", " + english.Plural(n.calls, "model call", "")
	if n.failed > 0 {
		text += fmt.Sprintf(" (%d failed)", n.failed)
	}

	return text
}

// erase takes the block off the screen, and leaves the cursor where it began.
func (v *view) erase() {
	if v.drawn > 0 {
		_, _ = fmt.Fprintf(v.w, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

// draw puts the block onto the screen.
func (v *view) draw() {
	if v.screen == nil || len(v.nodes) == 0 {
		return
	}
	width, height, err := term.GetSize(int(v.screen.Fd()))
	if err != nil || width < 20 || height < 5 {
		return
	}

	lines := v.block(min(shown, height-3))
	v.erase()
	for _, line := range lines {
		_, _ = fmt.Fprintf(v.w, "\x1b[2m%s\x1b[0m\n", short(line, width-1))
	}
	v.drawn = len(lines)
}

// block are the lines of the loops at work, the tree in order, and of what the run
// has used.
func (v *view) block(most int) []string {
	names := slices.SortedFunc(maps.Keys(v.nodes),
		func(a, b string) int { return slices.Compare(pathOf(a), pathOf(b)) })
	var lines []string
	for i, name := range names {
		if i == most {
			lines = append(lines, fmt.Sprintf("… and %d more loops", len(names)-most))
			break
		}
		n := v.nodes[name]
		text := fmt.Sprintf("%s%s%s turn %d, %s", strings.Repeat("│ ", n.depth), "├─ ", name,
			n.turn, n.doing)

		if n.tier != "" {
			text += ", tier " + n.tier
		}
		if n.flying > 0 {
			text += fmt.Sprintf(", %d calls in flight", n.flying)
		}

		lines = append(lines, text+n.callsText())
	}

	spinner := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	return append(
		lines,
		fmt.Sprintf("%c %v, %s", spinner[v.beat%len(spinner)],
			time.Since(v.begun).Round(time.Second), spentText(v.spent)),
	)
}

// pathOf is a node's name in pieces that sort as numbers do.
func pathOf(name string) []int {
	var path []int
	for piece := range strings.SplitSeq(name, ".") {
		n := 0
		for _, digit := range piece {
			n = n*10 + int(digit-'0')
		}
		path = append(path, n)
	}

	return path
}
