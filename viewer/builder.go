package viewer

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Limits on the data of a run in the viewer.
const (
	maxNodes = 250_000
	maxText  = 1 << 20   // bytes of one text
	maxTexts = 256 << 20 // bytes of all texts
	maxTitle = 160       // characters
	maxOpen  = 1_024     // calls in flight of one loop
)

// Builder builds a run from the events of its loops, in order. The zero value is a run that has not
// begun. Only one goroutine may use it.
type Builder struct {
	run   Run
	began time.Time
	last  time.Time        // time of the last event
	loops map[string]*loop // by their names in events
	bytes int
	left  int // number of nodes left out
	short int // number of texts shortened or left out
}

// loop records the nodes to which a loop's next events belong. A node number of -1 means none.
type loop struct {
	begun               bool
	node, turn, snippet int
	open                []int // calls in flight
}

// Run returns the run that was built from the events until now. The builder continues with a copy
// of the nodes.
func (b *Builder) Run() *Run {
	run := b.run
	run.Began = b.began
	run.Nodes = append([]Node{}, b.run.Nodes...)
	run.Texts = append([][]Text{}, b.run.Texts...)
	b.note(&run)
	return &run
}

// note adds the omissions to the notes of a run.
func (b *Builder) note(run *Run) {
	run.Notes = append([]string{}, b.run.Notes...)
	if b.left > 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("%d parts of the run are left out: a run has at most %d here",
			b.left, maxNodes))
	}

	if b.short > 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("%d texts are shortened: one has at most %d MiB, and all have %d MiB",
			b.short, maxText>>20, maxTexts>>20))
	}
}

// add adds a node and returns its number, or -1 if there are too many nodes.
func (b *Builder) add(n Node) int {
	if len(b.run.Nodes) >= maxNodes {
		b.left++
		return -1
	}

	n.Title = shorten(n.Title)
	b.run.Nodes = append(b.run.Nodes, n)
	b.run.Texts = append(b.run.Texts, nil)
	return len(b.run.Nodes) - 1
}

// addText adds a text to a node, unless it is empty.
func (b *Builder) addText(node int, name string, form Form, text string) {
	if node < 0 || strings.TrimSpace(text) == "" {
		return
	}

	text = strings.ToValidUTF8(text, "\uFFFD")
	if room := min(maxText, maxTexts-b.bytes); len(text) > room {
		b.short++
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:max(room, 0)]
	}

	b.bytes += len(text)
	b.run.Texts[node] = append(b.run.Texts[node], Text{name, form, text})
	b.run.Nodes[node].Texts = len(b.run.Texts[node])
}

// shorten shortens a text to one line.
func shorten(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(texts.Truncate(text, 4*maxTitle)), "\uFFFD")
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxTitle {
		text = string([]rune(text)[:maxTitle]) + "…"
	}
	return text
}

// at converts a time to milliseconds since the run began.
func (b *Builder) at(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	if b.began.IsZero() {
		b.began = t
	}
	return max(float64(t.Sub(b.began).Microseconds())/1000, 0)
}

// span returns the start and the duration of a step from the event at its end.
func (b *Builder) span(e *ledger.Event) (start, elapsed float64) {
	elapsed = max(float64(e.Elapsed.Microseconds())/1000, 0)
	if end := b.at(e.Time); end >= 0 {
		return max(end-elapsed, 0), elapsed
	}
	return -1, elapsed
}

// Event adds an event. If the event has the fields Ran, Call, Request or Response, they contain the
// complete texts.
func (b *Builder) Event(e *ledger.Event) {
	if l := b.loops[shorten(e.Node)]; l != nil && l.begun && e.Kind == ledger.EventLoopStarted {
		delete(b.loops, shorten(e.Node)) // a repeated turn begins its sub-loops again
	}
	l := b.loop(e)
	if l == nil {
		return
	}
	if e.Time.After(b.last) {
		b.last = e.Time
	}

	switch e.Kind {
	case ledger.EventRunStarted, ledger.EventLoopStarted:
		b.beginLoop(l, e)
	case ledger.EventTurnStarted:
		b.beginTurn(l, e)
	case ledger.EventReply:
		b.addReply(l, e)
	case ledger.EventCallStarted:
		b.beginCall(l, e)
	case ledger.EventCall:
		b.endCall(l, e)
	case ledger.EventTool:
		b.addTool(l, e)
	case ledger.EventSnippet:
		b.endSnippet(l, e)
	case ledger.EventLoopEnded, ledger.EventRunEnded:
		b.endLoop(l, e)
	case ledger.EventDelta:
	case ledger.EventRetry, ledger.EventForesight, ledger.EventCompaction, ledger.EventRefusal,
		ledger.EventWarning, ledger.EventWaiting, ledger.EventAnswer, ledger.EventVerdict:
		b.addNote(l, e)
	default:
		b.addNote(l, e) // the event is from a later version
	}
}

// loop returns the loop of an event. If the beginning of the loop is unknown, the loop begins now.
func (b *Builder) loop(e *ledger.Event) *loop {
	name := shorten(e.Node)
	if l := b.loops[name]; l != nil {
		return l
	}
	if b.loops == nil {
		b.loops = map[string]*loop{}
	}

	parent := -1
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		if above := b.loops[name[:i]]; above != nil {
			parent = b.place(above, e.Time)
		}
	}
	if parent < 0 && len(b.run.Nodes) > 0 {
		parent = 0
	}

	node := b.add(Node{Parent: parent, Kind: KindLoop, Status: StatusRunning, Start: b.at(e.Time), Elapsed: -1})
	if node < 0 {
		return nil
	}

	l := &loop{node: node, turn: -1, snippet: -1}
	b.loops[name] = l
	return l
}

// place returns the node of a loop under which its next calls are placed. This is the current
// snippet, which begins with its first call.
func (b *Builder) place(l *loop, at time.Time) int {
	if l.turn < 0 {
		return l.node
	}
	if l.snippet < 0 {
		l.snippet = b.add(Node{
			Parent: l.turn, Kind: KindSnippet, Status: StatusRunning, Start: b.at(at), Elapsed: -1,
		})
	}

	if l.snippet < 0 {
		return l.turn
	}
	return l.snippet
}

func (b *Builder) beginTurn(l *loop, e *ledger.Event) {
	b.endTurn(l, e.Time)
	l.turn = b.add(Node{
		Parent: l.node, Kind: KindTurn, Title: fmt.Sprintf("Turn %d", e.Turn),
		Status: StatusRunning, Start: b.at(e.Time), Elapsed: -1,
	})
}

// endTurn ends the turn of a loop, if there is one.
func (b *Builder) endTurn(l *loop, at time.Time) {
	for _, node := range append(l.open, l.turn, l.snippet) {
		if node < 0 {
			continue
		}

		if n := &b.run.Nodes[node]; n.Status == StatusRunning {
			n.Status = ""
			if end := b.at(at); end >= 0 && n.Start >= 0 {
				n.Elapsed = max(end-n.Start, 0)
			}
		}
	}
	l.turn, l.snippet, l.open = -1, -1, nil
}

// inTurn returns the parent node for a step of a loop outside of snippets.
func (l *loop) inTurn() int {
	if l.turn >= 0 {
		return l.turn
	}
	return l.node
}

func (b *Builder) addReply(l *loop, e *ledger.Event) {
	n := Node{Parent: l.inTurn(), Kind: KindReply}
	b.fillCall(&n, e)
	reply := e.Text
	if e.Response != nil {
		reply = e.Response.Text
	}
	node := b.add(n)
	b.addCallTexts(node, e)
	b.nameTurn(l.turn, reply)
}

// nameTurn adds the beginning of a turn's first reply to the turn's title.
func (b *Builder) nameTurn(turn int, reply string) {
	if turn < 0 {
		return
	}
	if t := &b.run.Nodes[turn]; !strings.Contains(t.Title, " · ") {
		t.Title = shorten(t.Title + " · " + withoutFences(reply))
	}
}

// withoutFences returns a reply without the fence lines around its code.
func withoutFences(reply string) string {
	var b strings.Builder
	for line := range strings.Lines(texts.Truncate(reply, 4*maxTitle)) {
		if !isFence(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func isFence(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "```") }

// fillCall copies an event's data about a model call to a node.
func (b *Builder) fillCall(n *Node, e *ledger.Event) {
	n.Model, n.Agent, n.Reason = shorten(e.Model), shorten(e.Agent), shorten(e.Purpose)
	n.Start, n.Elapsed = b.span(e)
	n.Status = ""
	if e.Error != "" {
		n.Status = StatusFailed
		n.Title = e.Error
	}

	if u := e.Used; u != nil {
		n.Calls, n.InputTokens, n.OutputTokens = u.Calls, u.InputTokens, u.OutputTokens
		n.USD, n.Unpriced, n.ToolCalls = u.USD, u.Unpriced, u.ToolCalls
	}
}

// addCallTexts adds the prompt and the reply of a model call.
func (b *Builder) addCallTexts(node int, e *ledger.Event) {
	reply := e.Text
	switch {
	case e.Call != nil:
		b.addText(node, "prompt", FormText, e.Call.Prompt)
		reply = e.Call.Response
	case e.Request != nil && len(e.Request.Messages) > 0:
		last := e.Request.Messages[len(e.Request.Messages)-1]
		b.addText(node, "last message of the prompt", FormText, last.Content)
	}
	if e.Call == nil && e.Response != nil {
		reply = e.Response.Text
	}

	b.addText(node, "reply", FormReply, reply)
	b.addText(node, "error", FormText, e.Error)
}

func (b *Builder) beginCall(l *loop, e *ledger.Event) {
	node := b.add(Node{
		Parent: b.place(l, e.Time), Kind: KindCall, Status: StatusRunning, Model: shorten(e.Model),
		Agent: shorten(e.Agent), Reason: shorten(e.Purpose), Start: b.at(e.Time), Elapsed: -1,
	})
	if node >= 0 && len(l.open) < maxOpen {
		l.open = append(l.open, node)
	}
}

// endCall ends the call in flight whose start matches the event. A call whose reply was already
// known has no start.
func (b *Builder) endCall(l *loop, e *ledger.Event) {
	start, _ := b.span(e)
	model, purpose := shorten(e.Model), shorten(e.Purpose)
	found, least := -1, 0.0
	for i, node := range l.open {
		n := &b.run.Nodes[node]
		if n.Model != model || n.Reason != purpose {
			continue
		}
		if away := max(n.Start-start, start-n.Start); found < 0 || away < least {
			found, least = i, away
		}
	}

	var node int
	if found >= 0 {
		node = l.open[found]
		l.open = append(l.open[:found], l.open[found+1:]...)
	} else {
		node = b.add(Node{Parent: b.place(l, e.Time), Kind: KindCall})
	}
	if node < 0 {
		return
	}

	n := &b.run.Nodes[node]
	n.Title = e.Text
	if e.Call != nil {
		n.Title = e.Call.Prompt
	}

	b.fillCall(n, e)
	n.Title = shorten(n.Title)
	b.addCallTexts(node, e)
}

// addTool adds a completed tool call.
func (b *Builder) addTool(l *loop, e *ledger.Event) {
	n := Node{Parent: b.place(l, e.Time), Kind: KindTool}
	b.fillCall(&n, e)
	n.Title = e.Text
	node := b.add(n)
	b.addText(node, "call", FormCode, e.Text)
	b.addText(node, "error", FormText, e.Error)
}

func (b *Builder) endSnippet(l *loop, e *ledger.Event) {
	node := l.snippet
	if node < 0 {
		node = b.add(Node{Parent: l.inTurn(), Kind: KindSnippet})
	}
	l.snippet = -1
	if node < 0 {
		return
	}

	n := &b.run.Nodes[node]
	code := e.Text
	if e.Ran != nil {
		code = e.Ran.Source
	}
	n.Title, n.Tier, n.Status = shorten(code), shorten(e.Tier), shorten(e.Status)
	n.Start, n.Elapsed = b.span(e)
	if n.Status == "ok" {
		n.Status = ""
	}

	b.addText(node, "code", FormCode, code)
	if ran := e.Ran; ran != nil {
		b.addText(node, "output", FormText, ran.Stdout)
		b.addText(node, "errors and warnings", FormText, ran.Stderr)
		if ran.Exception != nil {
			b.addText(node, "exception", FormText, ran.Exception.Traceback)
		}
		b.addText(node, "new variables", FormText, strings.Join(ran.New, ", "))
		if ran.Final != nil {
			b.addText(node, "answer", FormText, texts.Show(ran.Final.Value))
		}
	}
	if n.Status != "" {
		b.addText(node, "error", FormText, e.Error)
	}
}

// addNote adds a node for an event that is neither a call nor a snippet.
func (b *Builder) addNote(l *loop, e *ledger.Event) {
	parent := l.inTurn()
	if l.snippet >= 0 && e.Kind != ledger.EventAnswer {
		parent = l.snippet
	}
	title := strings.TrimSpace(strings.Join([]string{e.Status, e.Error, e.Text}, " "))
	kind := Kind(shorten(string(e.Kind)))
	if e.Kind == ledger.EventWarning && e.Purpose == "models" {
		kind = KindNote
	}
	node := b.add(Node{
		Parent: parent, Kind: kind, Title: title, Model: shorten(e.Model),
		Start: b.at(e.Time), Elapsed: max(float64(e.Elapsed.Microseconds())/1000, 0),
	})
	b.addText(node, "error", FormText, e.Error)
	b.addText(node, "text", FormText, e.Text)
}
