package distill

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// FailureCluster is a group of failures with a common cause.
type FailureCluster struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	// RootCause is the cause that the run identified; empty for clusters by words.
	RootCause string   `json:"root_cause,omitempty"`
	Keywords  []string `json:"keywords"`
	// Components are the failed components, sorted.
	Components []string `json:"components"`
	// Failures are the names of the traces, Count is their number, and Share is their fraction
	// of all failures, from 0 to 1.
	Failures []string `json:"failures"`
	Count    int      `json:"count"`
	Share    float64  `json:"share"`

	members []int
}

// nameOfLeftOut is the name of the cluster of failures that a run left out.
const nameOfLeftOut = "unclustered"

// clusterSchema returns the contract of the run's answer: the clusters, each with the numbers of
// its failures.
func clusterSchema(failures, most int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type": "array", "minItems": 1, "maxItems": %d, "items": {
		"type": "object",
		"required": ["name", "summary", "root_cause", "keywords", "failures"],
		"properties": {
			"name": {"type": "string", "minLength": 1, "maxLength": 120},
			"summary": {"type": "string", "minLength": 1, "maxLength": 600},
			"root_cause": {"type": "string", "minLength": 1, "maxLength": 1000},
			"keywords": {"type": "array", "maxItems": 10, "items": {"type": "string", "minLength": 1, "maxLength": 40}},
			"failures": {"type": "array", "minItems": 1, "maxItems": %d, "items": {"type": "integer", `+
		`"minimum": 0, "maximum": %d}}
		}}}`, most, failures, failures-1))
}

// clusterByRun starts a run that reads all failures and clusters them.
func clusterByRun(
	ctx context.Context, cfg run.Config, failures []Failure, most int,
) ([]FailureCluster, run.Outcome, error) {
	input, err := numberFailures(failures)
	if err != nil {
		return nil, run.Outcome{}, err
	}
	cfg.Question, err = templates.Fill(
		"clusters",
		map[string]any{"Failures": len(failures), "Most": most, "Tools": cfg.Tools != nil},
	)
	if err != nil {
		return nil, run.Outcome{}, err
	}

	text := bigtext.FromBytes("failures.jsonl", input)
	defer text.Close()

	cfg.Inputs = []tiers.Input{{Name: "failures.jsonl", Text: text}}
	cfg.Schema = clusterSchema(len(failures), most)

	outcome, err := run.Run(ctx, cfg)
	if err != nil || outcome.Answer == nil {
		return nil, outcome, err
	}
	var found []struct {
		Name, Summary string
		RootCause     string `json:"root_cause"`
		Keywords      []string
		Failures      []int
	}

	if err := json.Unmarshal(outcome.Answer, &found); err != nil {
		return nil, outcome, fmt.Errorf("cannot read the clusters: %w", err)
	}
	clusters := make([]FailureCluster, 0, len(found)+1)
	placed := make([]bool, len(failures))
	for _, c := range found {
		var members []int
		for _, i := range c.Failures {
			if !placed[i] { // a failure belongs to the first cluster that names it
				placed[i] = true
				members = append(members, i)
			}
		}

		if len(members) > 0 {
			clusters = append(clusters, FailureCluster{
				Name: c.Name, Summary: c.Summary, RootCause: c.RootCause,
				Keywords: c.Keywords, members: members,
			})
		}
	}

	var rest []int
	for i, ok := range placed {
		if !ok {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 {
		clusters = append(clusters, FailureCluster{
			Name: nameOfLeftOut, Summary: "Failures that the run left out.", members: rest,
		})
	}

	return clusters, outcome, nil
}

// numberFailures writes the failures for the run's snippets, one per line.
func numberFailures(failures []Failure) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for i, f := range failures {
		line := struct {
			N         int             `json:"n"`
			ID        string          `json:"id"`
			Component string          `json:"component"`
			Error     string          `json:"error"`
			Trace     json.RawMessage `json:"trace"`
		}{i, f.ID, f.Component, f.Error, f.Trace}

		if err := encoder.Encode(line); err != nil {
			return nil, fmt.Errorf("cannot write failure %s: %w", f.ID, err)
		}
	}

	return b.Bytes(), nil
}

// completeClusters counts the members of the clusters, makes their names unique, and sorts the
// clusters by size, with the remaining failures last.
func completeClusters(clusters []FailureCluster, failures []Failure) []FailureCluster {
	taken := map[string]bool{}
	for i := range clusters {
		c := &clusters[i]
		name := c.Name
		for n := 2; taken[c.Name]; n++ {
			c.Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[c.Name] = true
		c.Components, c.Failures = componentsOf(failures, c.members), []string{}
		if c.Keywords == nil {
			c.Keywords = []string{}
		}

		for _, m := range c.members {
			c.Failures = append(c.Failures, failures[m].ID)
		}
		c.Count = len(c.members)
		c.Share = float64(c.Count) / float64(len(failures))
	}

	slices.SortStableFunc(clusters, func(a, b FailureCluster) int {
		return cmp.Or(
			cmp.Compare(restRank(&a), restRank(&b)), b.Count-a.Count, strings.Compare(a.Name, b.Name),
		)
	})
	return clusters
}

// restRank is 1 for the cluster of failures that fit no other, so that it sorts last.
func restRank(c *FailureCluster) int {
	if c.Name == nameOfRest || c.Name == nameOfLeftOut {
		return 1
	}
	return 0
}

// componentsOf returns the components of failures, sorted.
func componentsOf(failures []Failure, members []int) []string {
	components := []string{}
	for _, m := range members {
		if component := failures[m].Component; component != "" {
			components = append(components, component)
		}
	}
	slices.Sort(components)
	return slices.Compact(components)
}
