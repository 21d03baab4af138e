package memory

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/repl/run"
)

// maxText is the maximum length of a node's text, in characters.
const maxText = 4_000

// findings are the records of one run.
type findings struct {
	id  string // ID of the first node
	all []record
}

// begin makes the node of a run. It omits properties that are empty strings.
func (f *File) begin(labels []string, kind string, properties map[string]any) *findings {
	now := f.now().UTC()
	unique := strings.ToLower(rand.Text()[:6])
	n := &findings{id: fmt.Sprintf("%s_%s_%s", kind, now.Format("20060102T150405"), unique)}

	properties["timestamp"] = now.Format("2006-01-02T15:04:05Z")
	n.node(n.id, labels, properties)
	return n
}

func (n *findings) node(id string, labels []string, properties map[string]any) {
	kept := make(map[string]any, len(properties))
	for key, value := range properties {
		switch v := value.(type) {
		case string:
			if value = shorten(v); value == "" {
				continue
			}
		case []string:
			cut := make([]string, len(v))
			for i := range v {
				cut[i] = shorten(v[i])
			}
			value = cut
		}
		kept[key] = value
	}

	n.all = append(n.all, record{Type: "node", ID: id, Labels: labels, Properties: kept})
}

func (n *findings) edge(from, label, to string) {
	n.all = append(n.all, record{
		Type: "relationship", ID: fmt.Sprintf("%s_e%d", n.id, len(n.all)), Label: label,
		Start: &end{from}, End: &end{to},
	})
}

// shorten truncates a string, and removes NUL and invalid UTF-8, which a graph cannot contain.
func shorten(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	return texts.Truncate(strings.TrimSpace(text), maxText)
}

// cause adds a node with the cause of another node, unless text is empty.
func (n *findings) cause(of, text string) {
	if strings.TrimSpace(text) != "" {
		n.node(of+"_cause", []string{"RootCause"}, map[string]any{"name": text})
		n.edge(of, "CAUSED_BY", of+"_cause")
	}
}

// AddRun records a question and how its run ended, as a RunTrace node.
func (f *File) AddRun(question string, o run.Outcome) error {
	answer := o.Text()
	if o.Answer == nil {
		answer = o.Partial
	}

	n := f.begin([]string{"RunTrace", "ReasoningTrace"}, "run", map[string]any{
		"name": texts.Truncate(question, 200), "question": question, "answer": answer,
		"status": string(o.Status), "reason": o.Reason,
		"calls": o.Spent.Calls, "turns": int64(o.Turns),
	})
	return f.add(n.all)
}

// AddReflection records the findings of a reflection about a task, as a Reflection node with its
// RootCause, and a Learning with its Evidence for each lesson. A reflection without an analysis is
// not recorded.
func (f *File) AddReflection(question string, o reflect.Outcome) error {
	if o.Status != ledger.StatusAnswered && o.Status != ledger.StatusSynthesised {
		return nil
	}

	a := &o.Output
	n := f.begin([]string{"Reflection", "ReasoningTrace"}, "reflection", map[string]any{
		"name": a.KeyInsight, "question": question, "reasoning": a.Reasoning,
		"error": a.ErrorIdentification, "correct_approach": a.CorrectApproach,
		"status": string(o.Status),
	})
	n.cause(n.id, a.RootCauseAnalysis)

	for i, l := range a.ExtractedLearnings {
		id := fmt.Sprintf("%s_learning%d", n.id, i+1)
		n.node(id, []string{"Learning", "Belief"}, map[string]any{
			"name": l.Learning, "atomicity": l.AtomicityScore,
		})
		n.edge(n.id, "LEARNED", id)
		if strings.TrimSpace(l.Evidence) != "" {
			n.node(id+"_evidence", []string{"Evidence"}, map[string]any{"name": l.Evidence})
			n.edge(id+"_evidence", "SUPPORTS", id)
		}
	}
	return f.add(n.all)
}

// AddClusters records the findings of a distillation, as a ChangeManifest node, a FailureCluster
// with its RootCause for each cluster, and a ComponentEdit for each edit.
func (f *File) AddClusters(r distill.Outcome) error {
	n := f.begin([]string{"ChangeManifest", "ReasoningTrace"}, "distillation", map[string]any{
		"name":     fmt.Sprintf("%d of %d traces failed", r.Failed, r.Failed+r.Passed),
		"failures": int64(r.Failed), "passed": int64(r.Passed), "method": r.Method,
	})

	byName := map[string]string{}
	for i, c := range r.Clusters {
		id := fmt.Sprintf("%s_cluster%d", n.id, i+1)
		byName[c.Name] = id
		n.node(id, []string{"FailureCluster", "ReasoningTrace"}, map[string]any{
			"name": c.Name, "summary": c.Summary, "count": int64(c.Count), "share": c.Share,
			"components": c.Components, "keywords": c.Keywords,
		})
		n.edge(n.id, "HAS_CLUSTER", id)
		n.cause(id, c.RootCause)
	}

	for i, e := range r.Edits {
		id := fmt.Sprintf("%s_edit%d", n.id, i+1)
		n.node(id, []string{"ComponentEdit"}, map[string]any{
			"name": e.Component, "kind": e.Kind, "change": e.Change, "rationale": e.Rationale,
			"prediction": e.Prediction, "priority": int64(e.Priority),
			"impact": e.Impact, "effort": e.Effort,
		})
		n.edge(n.id, "HAS_EDIT_FOR", id)
		for _, name := range e.Clusters {
			if cluster, known := byName[name]; known {
				n.edge(id, "ADDRESSES", cluster)
			}
		}
	}
	return f.add(n.all)
}
