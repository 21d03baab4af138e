package distill

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// ComponentEdit is a proposed change that may prevent failures.
type ComponentEdit struct {
	// Priority ranks the edit, from 1 for the most promising: by Gain, then by effort. The
	// package computes it.
	Priority int `json:"priority"`
	// Component is the component to change, as the traces name it.
	Component string `json:"component"`
	Kind      string `json:"kind"` // one of kinds
	Change    string `json:"change"`
	Rationale string `json:"rationale"`
	// Prediction is the expected effect of the edit, stated so that a test can refute it.
	Prediction string   `json:"prediction"`
	Clusters   []string `json:"clusters"`
	// Evidence names some failures of each cluster behind the edit.
	Evidence []string `json:"evidence"`
	// Impact is the fraction of the failures in Clusters that the edit should prevent, from 0 to 1.
	Impact float64 `json:"impact"`
	Effort string  `json:"effort"` // small, medium or large
	// Gain is Impact times the share of the failures in Clusters among all failures.
	Gain float64 `json:"gain"`
}

var (
	kinds = []string{
		"system_prompt", "tool_description", "tool_code", "middleware", "skill", "sub_agent",
		"memory", "configuration", "other",
	}
	efforts = []string{"small", "medium", "large"}
)

// Bounds of proposals.
const (
	mostEdits     = 20
	shownEvidence = 5     // failures of each cluster
	shownFailure  = 1_000 // characters of each failure
)

// editSchema returns the schema of the model's answer. It is stricter than necessary, because
// [readEdits] repairs deviations.
func editSchema(clusters []FailureCluster) (*schema.Contract, error) {
	names := make([]string, len(clusters))
	for i := range clusters {
		names[i] = clusters[i].Name
	}
	text := map[string]any{"type": "string"}

	raw, err := json.Marshal(
		map[string]any{"type": "array", "items": map[string]any{
			"type": "object",
			"required": []string{
				"component", "kind", "change", "rationale", "prediction", "clusters", "impact",
				"effort",
			},
			"properties": map[string]any{
				"component": text, "change": text, "rationale": text, "prediction": text,
				"kind":     map[string]any{"enum": kinds},
				"effort":   map[string]any{"enum": efforts},
				"clusters": map[string]any{"type": "array", "items": map[string]any{"enum": names}},
				"impact":   map[string]any{"type": "number", "minimum": 0, "maximum": 1},
			},
		}},
	)
	if err != nil {
		return nil, err
	}
	return schema.Compile(raw)
}

// evidenceCorpus returns the input of the proposals: the clusters, each with some of its
// failures.
func evidenceCorpus(clusters []FailureCluster, failures []Failure) ([]byte, error) {
	type example struct {
		ID        string `json:"id"`
		Component string `json:"component,omitempty"`
		Error     string `json:"error"`
		Trace     string `json:"trace"`
	}

	type entry struct {
		FailureCluster
		Failures []example `json:"failures"` // hides the embedded Failures
	}
	entries := make([]entry, len(clusters))
	for i, c := range clusters {
		entries[i].FailureCluster = c
		for _, m := range c.members[:min(shownEvidence, len(c.members))] {
			f := failures[m]
			entries[i].Failures = append(entries[i].Failures, example{
				f.ID, f.Component, texts.Truncate(f.Error, shownFailure),
				texts.Truncate(string(f.Trace), shownFailure),
			})
		}
	}

	return json.MarshalIndent(entries, "", " ")
}

// propose asks for edits: with one call if the corpus is small and fits the model, else with a run
// whose snippets read it. Wrong is the reason why an earlier answer could not be read. The answer,
// for [readEdits], is nil if the model gave none.
func (d *distiller) propose(
	ctx context.Context, cfg run.Config, wrong string,
) (json.RawMessage, run.Outcome, error) {
	clusters := d.result.Clusters
	corpus, err := evidenceCorpus(clusters, d.failures)
	if err != nil {
		return nil, run.Outcome{}, fmt.Errorf("cannot write the evidence: %w", err)
	}
	contract, err := editSchema(clusters)
	if err != nil {
		return nil, run.Outcome{}, fmt.Errorf("cannot write the contract: %w", err)
	}

	cfg.Question, err = templates.Fill("edits", map[string]any{
		"Clusters": len(clusters), "Failures": len(d.failures), "Most": mostEdits,
		"Skillbook": d.skills != "",
		"Tools":     cfg.Tools != nil, "Contract": contract.Describe(), "Wrong": wrong,
	})
	if err != nil {
		return nil, run.Outcome{}, err
	}

	text := bigtext.FromBytes("evidence.json", corpus)
	defer text.Close()
	cfg.Inputs = []tiers.Input{{Name: "evidence.json", Text: text}}
	if d.skills != "" {
		skills := bigtext.FromBytes("skillbook.txt", []byte(d.skills))
		defer skills.Close()
		cfg.Inputs = append(cfg.Inputs, tiers.Input{Name: "skillbook.txt", Text: skills})
	}
	cfg.Schema = nil // the answer is repaired, not refused
	size := run.Signal{OutputChars: int64(len(corpus) + len(d.skills))}
	cfg.Bypass = -1
	if cfg.Triggers.ShouldTrigger(size) == "" {
		cfg.Bypass = math.MaxInt
	}

	outcome, err := run.Run(ctx, cfg)
	return outcome.Answer, outcome, err
}

// rankEdits computes evidence, gain and priority, which the model does not set.
func rankEdits(edits []ComponentEdit, clusters []FailureCluster) []ComponentEdit {
	for i := range edits {
		e := &edits[i]
		e.Evidence, e.Gain = []string{}, 0
		slices.Sort(e.Clusters)
		e.Clusters = slices.Compact(e.Clusters)
		for _, c := range clusters {
			if slices.Contains(e.Clusters, c.Name) {
				e.Evidence = append(e.Evidence, c.Failures[:min(shownEvidence, len(c.Failures))]...)
				e.Gain += e.Impact * c.Share
			}
		}
	}

	slices.SortStableFunc(edits, func(a, b ComponentEdit) int {
		return cmp.Or(
			cmp.Compare(b.Gain, a.Gain),
			slices.Index(efforts, a.Effort)-slices.Index(efforts, b.Effort),
			strings.Compare(a.Component, b.Component),
		)
	})

	for i := range edits {
		edits[i].Priority = i + 1
	}

	return edits
}
