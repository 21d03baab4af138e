package tiersuite_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

const (
	parallelUpdate = "RLM_PARALLEL_UPDATE" // a run with this variable measures, and writes parallelDoc
	parallelDoc    = "../../../docs/reference/parallel.md"
	parallelBegin  = "## All styles\n" // the line of parallelDoc after which the test writes
	leastStyles    = 30
)

// TestEveryParallelStyleHasItsRow compares the document with the styles that the suite runs in
// every tier.
func TestEveryParallelStyleHasItsRow(t *testing.T) {
	_, styles := tiersuite.ListStyles(t)
	if len(styles) < leastStyles {
		t.Fatalf("%d styles, want %d", len(styles), leastStyles)
	}
	if os.Getenv(parallelUpdate) != "" {
		writeParallelDoc(t)
	}

	document, err := os.ReadFile(parallelDoc)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(document), parallelBegin)
	for _, style := range styles {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(style.Name) + `( \| 0\.[012]\d){3} \|$`)
		if !row.MatchString(table) {
			t.Errorf("%s lacks a row of %q with three times below 0.3 s: make parallel writes it anew",
				parallelDoc, style.Name)
		}
	}
}

// writeParallelDoc measures all styles in all tiers, with a host that answers after 50 ms.
func writeParallelDoc(t *testing.T) {
	t.Helper()
	container := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST"), Warm: -1})
	closeAtEnd(t, container)
	skip.WithoutTier(t, docker.Name, container.Probe(t.Context()))

	prepare, styles := tiersuite.ListStyles(t)
	rows := make([]string, len(styles))
	for _, tier := range []tiers.Tier{openWasm(t), container, openLocal(t, os.Getenv("RLM_PYTHON"))} {
		host := tiersuite.Answering(func(context.Context, int) error {
			time.Sleep(50 * time.Millisecond)
			return nil
		})
		box, err := tier.Open(t.Context(), host.Config())
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, box)

		mustRun(t, box, "the preparation", prepare)
		for i, style := range styles {
			begun := time.Now()
			mustRun(t, box, style.Name, style.Source+tiersuite.CheckAnswers)
			rows[i] += fmt.Sprintf(" | %.2f", time.Since(begun).Seconds())
		}
	}

	document, err := os.ReadFile(parallelDoc)
	if err != nil {
		t.Fatal(err)
	}
	prose, _, _ := strings.Cut(string(document), parallelBegin)
	text := prose + parallelBegin + "\n| style | wasm | docker | local |\n| --- | ---: | ---: | ---: |\n"
	for i, style := range styles {
		text += "| " + style.Name + rows[i] + " |\n"
	}
	if err := os.WriteFile(parallelDoc, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
