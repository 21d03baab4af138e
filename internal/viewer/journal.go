package viewer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/internal/trajectory"
	"github.com/rlmhq/rlm/internal/viewer/traces"
	"github.com/rlmhq/rlm/repl/ledger"
)

// ReadJournal reads the journal of a named run, as rlm runs export writes it. It has the record
// of a run that has ended. Of any other, it has no times, and of the output of code only what
// the model saw.
func ReadJournal(file io.Reader) (*Run, error) {
	j := &journalReader{nodes: map[string]int{}, waits: map[string]bool{}}
	j.nodes[""] = j.build.add(Node{Parent: -1, Kind: KindLoop, Start: -1, Elapsed: -1})
	lines, known := &traces.Lines{}, false
	notes, err := lines.Each(file, func(line []byte) error {
		var e journalEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		known = known || e.Kind != ""
		return j.entry(&e)
	})
	if err == nil && !known {
		err = errors.New("it is no journal of a run")
	}
	if err != nil {
		return nil, err
	}
	if j.isWhole() {
		folder, err := traces.OpenRebuilt(&j.record, notes)
		if err == nil {
			return readFolder(folder)
		}
		notes = append(notes, "the record is not shown: "+shorten(err.Error()))
	}

	j.build.run.Notes = append(j.build.run.Notes, notes...)
	j.build.run.Status = "unknown"
	return j.build.Run(), nil
}

// journalEntry is a line of a journal.
type journalEntry struct {
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

// journalReader makes a tree out of the places of the steps.
type journalReader struct {
	build  Builder
	nodes  map[string]int // by their places
	record trajectory.Rebuilt
	last   string          // kind of the last entry
	waits  map[string]bool // calls for a person: the record does not show them
}

// isWhole reports whether the record shows all that the journal has.
func (j *journalReader) isWhole() bool {
	var last struct {
		Kind ledger.EventKind `json:"kind"`
	}
	return len(j.waits) == 0 && j.last == "trace" && json.Unmarshal(j.record.Last(), &last) == nil &&
		last.Kind == ledger.EventRunEnded
}

func (j *journalReader) entry(e *journalEntry) error {
	j.last = e.Kind
	switch e.Kind {
	case "trace":
		return j.record.Add(e.Turn, e.Data)
	case "decision":
		delete(j.waits, e.Key)
	case "pin":
		if e.Key == "question" {
			j.build.run.Title = shorten(e.Text)
			j.build.run.Nodes[0].Title = j.build.run.Title
			j.build.addText(0, "question", FormText, e.Text)
		}
	case "begun", "step", "lost":
		return j.step(e)
	case "commit":
		return j.commit(e)
	case "question":
		j.waits[e.Key] = true
		node := j.build.add(Node{
			Parent: 0, Kind: "waiting", Title: "a call waits for a decision", Start: -1, Elapsed: -1,
		})
		j.build.addText(node, "call", FormText, string(e.Data))
	}
	return nil
}

// step adds or ends the node of a step.
func (j *journalReader) step(e *journalEntry) error {
	var data struct {
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
	if len(e.Data) > 0 {
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
	}
	node := j.find(e.Key)
	if node < 0 {
		return nil // it is counted
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
		n.Status = "no answer"
		return nil
	}

	n.Status = ""
	problem := data.Ending.Error
	if f := data.Ending.Failed; f != nil {
		problem = f.Message
	}
	if e.Kind == "lost" || problem != "" {
		n.Status = StatusFailed
	}

	j.build.addText(node, "error", FormText, problem)
	j.build.addText(node, "reply", FormReply, data.Ending.Response.Text)
	j.build.addText(node, "value", FormText, texts.Show(data.Ending.Value))

	if n.Kind == KindReply && n.Parent >= 0 {
		n.Title = ""
		if j.build.run.Nodes[n.Parent].Kind == KindTurn {
			j.build.nameTurn(n.Parent, data.Ending.Response.Text)
		}
		j.addSnippets(e.Key[:max(strings.LastIndexByte(e.Key, '/'), 0)], data.Ending.Response.Text)
	}
	return nil
}

// find returns the node of a step by its key, such as "/turn 1/snippet 1/call 2/slot 0/leaf 1",
// and adds it and those above it.
func (j *journalReader) find(key string) int {
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
			continue // a call, or a slot of one, is in the tree as what was asked
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

// name gives a new node of a place its title.
func (j *journalReader) name(node int, word, number string) {
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

// addSnippets adds the code of a turn's reply, at the places that its snippets have.
func (j *journalReader) addSnippets(turn, reply string) {
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

// commit adds what a turn showed to the model.
func (j *journalReader) commit(e *journalEntry) error {
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

// codeFences begin code that runs.
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
