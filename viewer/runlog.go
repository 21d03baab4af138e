package viewer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer/traces"
)

// ReadRunLog reads the log of a named run, as rlm runs export writes it.
func ReadRunLog(file io.Reader) (*Run, error) {
	var j RunLogReader
	if err := j.Add(file); err != nil {
		return nil, err
	}
	return j.Run(statusUnknown)
}

// runLogEntry is a line of a run log.
type runLogEntry struct {
	Turn int             `json:"turn"`
	Kind string          `json:"kind"`
	Key  string          `json:"key"`
	Data json.RawMessage `json:"data"`
	Text string          `json:"text"`
	Cost struct {
		Calls        int64   `json:"calls"`
		InputTokens  int64   `json:"input_tokens"`
		OutputTokens int64   `json:"output_tokens"`
		USD          float64 `json:"usd"`
		Unpriced     int64   `json:"unpriced_calls"`
		ToolCalls    int64   `json:"tool_calls"`
	} `json:"cost"`
}

// RunLogReader builds a tree from the log of a named run, which may still grow. The log contains
// the record of the committed turns. For later steps, it has no times, and only the part of the
// code's output that was shown to the model. The zero value is ready to use. Only one goroutine may
// use it.
type RunLogReader struct {
	lines   traces.Lines
	notes   []string
	isKnown bool // at least one line is an entry

	record   trajectory.Rebuilt
	recorded *Builder       // the tree of the record; nil if the record must be read again
	counts   int            // the last committed turn
	last     string         // kind of the last entry
	waits    map[string]int // nodes of calls that wait for a person, which the record omits

	question string
	build    Builder        // the tree of the steps after the committed turns
	nodes    map[string]int // by their keys
}

// Add adds more lines.
func (j *RunLogReader) Add(file io.Reader) error {
	if j.nodes == nil {
		j.waits = map[string]int{}
		j.beginSteps()
	}
	notes, err := j.lines.Each(file, func(line []byte) error {
		var e runLogEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		j.isKnown = j.isKnown || e.Kind != ""
		return j.entry(&e)
	})
	for _, note := range notes { // the same problem may be noted again with each additional line
		if len(j.notes) < maxNotes && !slices.Contains(j.notes, note) {
			j.notes = append(j.notes, note)
		}
	}
	return err
}

// maxNotes is the maximum number of notes about a run log.
const maxNotes = 40

// beginSteps begins a new tree of steps.
func (j *RunLogReader) beginSteps() {
	j.build, j.nodes = Builder{}, map[string]int{}
	j.nodes[""] = j.build.add(Node{
		Parent: -1, Kind: KindLoop, Title: shorten(j.question), Start: -1, Elapsed: -1,
	})
	j.build.addText(0, "question", FormText, j.question)
}

// Run returns the run, as far as it was read. If the log contains no status, the run gets the given
// one.
func (j *RunLogReader) Run(status string) (*Run, error) {
	if !j.isKnown {
		return nil, errors.New("it is no run log of a run")
	}
	isWhole := j.isWhole()
	if j.recorded == nil {
		j.readRecord(isWhole)
	}
	if isWhole && len(j.recorded.run.Nodes) > 0 {
		return j.recorded.Run(), nil
	}

	all := *j.recorded
	room := len(all.run.Nodes) + len(j.build.run.Nodes)
	all.run.Nodes = append(make([]Node, 0, room), all.run.Nodes...)
	all.run.Texts = append(make([][]Text, 0, room), all.run.Texts...)
	all.graft(&j.build, status)
	all.run.Title, all.run.Began = cmp.Or(all.run.Title, shorten(j.question)), all.began
	all.run.Status, all.run.Nodes[0].Status = status, strings.TrimPrefix(status, statusUnknown)
	all.note(&all.run)
	all.run.Notes = append(all.run.Notes, j.notes...)
	return &all.run, nil
}

// readRecord reads the record of the committed turns or, if all is set, of all turns.
func (j *RunLogReader) readRecord(all bool) {
	record := &j.record
	if !all {
		record = record.Until(j.counts)
	}
	j.recorded = &Builder{}
	if record.IsEmpty() {
		return
	}

	folder, err := traces.OpenRebuilt(record, j.notes)
	if err == nil {
		var read *Builder
		if read, err = readFolder(folder); err == nil {
			read.endTurns()
			j.recorded = read
			return
		}
	}
	j.recorded.run.Notes = []string{"the record is not shown: " + shorten(err.Error())}
}

// isWhole reports whether the record shows everything in the log.
func (j *RunLogReader) isWhole() bool {
	var last struct {
		Kind ledger.EventKind `json:"kind"`
	}
	return len(j.waits) == 0 && j.last == "trace" && json.Unmarshal(j.record.Last(), &last) == nil &&
		last.Kind == ledger.EventRunEnded
}

func (j *RunLogReader) entry(e *runLogEntry) error {
	if j.last == "trace" || e.Kind == "trace" {
		j.recorded = nil // it was complete, or may be complete now
	}
	j.last = e.Kind
	switch e.Kind {
	case "trace":
		return j.record.Add(e.Turn, e.Data)
	case "decision":
		j.decide(e)
	case "pin":
		if e.Key == "question" {
			j.question = e.Text
			n := &j.build.run.Nodes[0]
			n.Title = shorten(e.Text)
			j.build.run.Texts[0], n.Texts = nil, 0
			j.build.addText(0, "question", FormText, e.Text)
		}
	case "begun", "step", "lost":
		return j.step(e)
	case "commit":
		return j.commit(e)
	case "question":
		node := j.build.add(Node{
			Parent: 0, Kind: "waiting", Title: "a call waits for a decision", Start: -1, Elapsed: -1,
		})
		j.build.addText(node, "call", FormText, string(e.Data))
		j.waits[e.Key] = node
	}
	return nil
}

// decide adds the decision about a waiting call.
func (j *RunLogReader) decide(e *runLogEntry) {
	node, waits := j.waits[e.Key]
	delete(j.waits, e.Key)
	if waits && node > 0 && node < len(j.build.run.Nodes) {
		n := &j.build.run.Nodes[node]
		n.Kind, n.Title = "decision", "a person has decided"
		j.build.addText(node, "decision", FormText, string(e.Data))
	}
}

// Step contains the shortened request of a step in a run log, and the result of the step.
type Step struct{ About, Reply, Value, Problem string }

// ReadStep reads the data of a step.
func ReadStep(data json.RawMessage) (s Step, err error) {
	var entry struct {
		About  string `json:"about"`
		Ending struct {
			Response struct{ Text string } `json:"response"`
			Failed   *struct {
				Message string `json:"message"`
			} `json:"failed"`
			Error string          `json:"error"`
			Value json.RawMessage `json:"value"`
		} `json:"ending"`
	}
	if len(data) > 0 { // a lost step has no data
		err = json.Unmarshal(data, &entry)
	}

	ended := &entry.Ending
	s = Step{About: entry.About, Reply: ended.Response.Text, Value: texts.Show(ended.Value), Problem: ended.Error}
	if ended.Failed != nil {
		s.Problem = ended.Failed.Message
	}
	return s, err
}

// step adds the node of a step, or ends it.
func (j *RunLogReader) step(e *runLogEntry) error {
	data, err := ReadStep(e.Data)
	if err != nil {
		return err
	}
	node := j.find(e.Key)
	if node < 0 {
		return nil // such entries are only counted
	}

	n := &j.build.run.Nodes[node]
	n.Calls += e.Cost.Calls
	n.InputTokens += e.Cost.InputTokens
	n.OutputTokens += e.Cost.OutputTokens
	n.USD += e.Cost.USD
	n.Unpriced += e.Cost.Unpriced
	n.ToolCalls += e.Cost.ToolCalls
	if n.ToolCalls > 0 {
		n.Kind = KindTool
	}

	if n.Title == "" {
		n.Title = shorten(data.About)
		if model, _, ok := strings.Cut(data.About, ": "); ok && strings.Contains(model, "/") {
			n.Model = shorten(model)
			n.Title = shorten(data.About[len(model)+2:])
		}
		j.build.addText(node, "request, shortened", FormText, data.About)
	}
	if e.Kind == "begun" {
		n.Status = statusOpen
		return nil
	}

	n.Status = ""
	if e.Kind == "lost" || data.Problem != "" {
		n.Status = StatusFailed
	}

	j.build.addText(node, "error", FormText, data.Problem)
	j.build.addText(node, "reply", FormReply, data.Reply)
	j.build.addText(node, "value", FormText, data.Value)

	if n.Kind == KindReply && n.Parent >= 0 {
		n.Title = ""
		if j.build.run.Nodes[n.Parent].Kind == KindTurn {
			j.build.nameTurn(n.Parent, data.Reply)
		}
		j.addSnippets(e.Key[:max(strings.LastIndexByte(e.Key, '/'), 0)], data.Reply)
	}
	return nil
}

const (
	statusOpen    = "no answer" // status of a step without an end
	statusUnknown = "unknown"   // a run
)

// find returns the node of the step with a key, such as "/turn 1/snippet 1/call 2/slot 0/leaf 1".
// If necessary, it adds the node and its ancestors.
func (j *RunLogReader) find(key string) int {
	if node, ok := j.nodes[key]; ok {
		return node
	}

	parts := strings.Split(strings.TrimPrefix(key, "/"), "/")
	above, path := 0, ""
	for i, part := range parts[:len(parts)-1] {
		path += "/" + part
		word, number, _ := strings.Cut(part, " ")
		isLoop := strings.HasPrefix(parts[i+1], "turn ")
		if word != "turn" && word != "snippet" && !isLoop {
			continue // the request represents its call and slot in the tree
		}

		node, ok := j.nodes[path]
		if !ok {
			node = j.build.add(Node{Parent: above, Kind: kindOfPlace(word, isLoop), Start: -1, Elapsed: -1})
			if node < 0 {
				return -1
			}
			j.nodes[path] = node
			j.name(node, word, number)
		}
		above = node
	}

	word, _, _ := strings.Cut(parts[len(parts)-1], " ")
	kind := KindCall
	if word == "root" || word == "sub" || word == "draft" || word == "critique" || word == "revision" {
		kind = KindReply
	}
	node := j.build.add(Node{Parent: above, Kind: kind, Reason: shorten(word), Start: -1, Elapsed: -1})
	if node >= 0 {
		j.nodes[key] = node
	}
	return node
}

func kindOfPlace(word string, isLoop bool) Kind {
	switch {
	case word == "turn":
		return KindTurn
	case word == "snippet":
		return KindSnippet
	case isLoop:
		return KindLoop
	}
	return KindStep
}

// name sets the title and kind of a new node.
func (j *RunLogReader) name(node int, word, number string) {
	n := &j.build.run.Nodes[node]
	switch n.Kind {
	case KindTurn:
		n.Title = shorten("Turn " + number)
	case KindLoop:
		n.Title = "a sub-loop"
	case KindSnippet:
		n.Title = shorten("Snippet " + number)
	default:
		n.Title = shorten(word + " " + number)
	}
}

// addSnippets adds the code in a turn's reply to the nodes of its snippets.
func (j *RunLogReader) addSnippets(turn, reply string) {
	for i, code := range findCode(reply) {
		path := fmt.Sprintf("%s/snippet %d", turn, i+1)
		if _, ok := j.nodes[path]; ok {
			continue
		}
		node := j.build.add(Node{Parent: j.nodes[turn], Kind: KindSnippet, Title: code, Start: -1, Elapsed: -1})
		if node < 0 {
			return
		}

		j.nodes[path] = node
		j.build.addText(node, "code", FormCode, code)
	}
}

// commit ends a turn, which is now committed. If the record contains the turn, its steps are no
// longer needed. Otherwise, commit adds the turn's feedback to the model.
func (j *RunLogReader) commit(e *runLogEntry) error {
	j.counts, j.recorded = e.Turn, nil
	if j.record.HasUntil(e.Turn) {
		j.beginSteps()
		return nil
	}

	var data struct {
		Messages struct {
			New []struct {
				Role    string `json:"role"`
				Content string `json:"content"`
			} `json:"new"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	node := j.nodes[fmt.Sprintf("/turn %d", e.Turn)]
	if node == 0 {
		return nil
	}

	all := data.Messages.New
	if len(all) > 0 && all[len(all)-1].Role == "user" {
		j.build.addText(node, "output, as the model saw it", FormText, all[len(all)-1].Content)
	}
	return nil
}

// codeFences contains the fences that begin blocks of code that is run.
var codeFences = []string{"```repl", "```python", "```py", "```go"}

// findCode returns the code between the fences of a reply.
func findCode(reply string) (all []string) {
	var code []string
	inside := false

	for line := range strings.Lines(reply) {
		switch isFence := isFence(line); {
		case isFence && inside:
			all, code, inside = append(all, strings.Join(code, "")), nil, false
		case isFence:
			inside = slices.Contains(codeFences, strings.TrimSpace(line))
		case inside:
			code = append(code, line)
		}
	}
	return all
}
