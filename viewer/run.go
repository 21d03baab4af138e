// Package viewer shows runs in a browser, as trees of loops, turns, snippets and calls, with times
// and costs. A [Source] provides the runs, [New] serves them, and [Export] writes a run as a file
// that needs no server.
//
// All text of a run is assumed to be hostile. It is sent to the page as JSON, and the page shows it
// only as text; the page's content security policy blocks all other scripts.
package viewer

import (
	"strings"
	"time"
)

// Kind is the kind of a node.
type Kind string

// These are the kinds of nodes. The kind of any other node is the name of its event, such as
// "warning".
const (
	KindLoop    Kind = "loop"
	KindTurn    Kind = "turn"
	KindReply   Kind = "reply"
	KindSnippet Kind = "snippet"
	KindCall    Kind = "call"
	KindCalls   Kind = "calls" // one call of a snippet that made many model calls
	KindTool    Kind = "tool"  // a tool call
	KindAnswer  Kind = "answer"
	KindStep    Kind = "step" // a step of another agent's trace
	KindNote    Kind = "note" // a fact about the models that is no problem: an unknown price
)

// These are the statuses of nodes, in addition to those of loops. Empty means success.
const (
	StatusRunning     = "running"
	StatusFailed      = "failed"
	StatusInterrupted = "interrupted" // the process ended first, and a later one repeated it
	StatusParked      = "parked"      // the node continues after a decision
)

// Node is a part of a run. A node follows its parent and keeps its number.
type Node struct {
	Parent int    `json:"parent"` // the number of a node, -1 for none
	Kind   Kind   `json:"kind"`
	Title  string `json:"title,omitempty"`
	Status string `json:"status,omitempty"`
	Model  string `json:"model,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Tier   string `json:"tier,omitempty"`
	Reason string `json:"reason,omitempty"` // the purpose of a call
	// Start is the time since the run began, and Elapsed the duration, in milliseconds. An unknown
	// value is -1.
	Start   float64 `json:"start"`
	Elapsed float64 `json:"elapsed"`
	// The following fields are the usage of the node itself, without the nodes below it.
	Calls        int64   `json:"calls,omitempty"`
	InputTokens  int64   `json:"in,omitempty"`
	OutputTokens int64   `json:"out,omitempty"`
	USD          float64 `json:"usd,omitempty"`
	Unpriced     int64   `json:"unpriced,omitempty"`
	ToolCalls    int64   `json:"tools,omitempty"`
	// Texts is the number of the node's texts.
	Texts int `json:"texts,omitempty"`
}

// Form determines how a text is shown.
type Form string

// These are the forms of texts.
const (
	FormText  Form = "text"
	FormCode  Form = "code"
	FormReply Form = "reply" // text with code between fences
)

// Text is a text of a node, such as its code or its output.
type Text struct {
	Name string `json:"name"`
	Form Form   `json:"form"`
	Text string `json:"text"`
}

// Run contains the data that the viewer has about a run.
type Run struct {
	Title  string   `json:"title"`
	Status string   `json:"status"`
	Notes  []string `json:"notes,omitempty"` // about parts that are left out
	// Began is the time to which the times of the nodes are relative. It is zero if unknown.
	Began time.Time `json:"began,omitzero"`
	Nodes []Node    `json:"nodes"`
	// Texts are the texts of each node.
	Texts [][]Text `json:"-"`
	// Stamp is the source's record of how much it has read.
	Stamp string `json:"-"`
	// Version is the number that the viewer gave to this version of the run.
	Version int64 `json:"version,omitempty"`
}

// search returns the numbers of the nodes that contain a text, regardless of case, and whether
// there are more than limit such nodes.
func (r *Run) search(text string, limit int) (found []int, more bool) {
	text = strings.ToLower(text)
	found = []int{}
	for i := range r.Nodes {
		if !r.has(i, text) {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, i)
	}
	return found, false
}

func (r *Run) has(i int, lower string) bool {
	n := &r.Nodes[i]
	for _, s := range []string{n.Title, n.Status, n.Model, n.Agent, n.Tier, string(n.Kind), n.Reason} {
		if strings.Contains(strings.ToLower(s), lower) {
			return true
		}
	}

	for _, t := range r.Texts[i] {
		if strings.Contains(strings.ToLower(t.Text), lower) {
			return true
		}
	}
	return false
}
