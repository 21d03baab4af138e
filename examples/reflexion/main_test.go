package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheExampleOfTheReflexionLoopRuns(t *testing.T) {
	var out, progress bytes.Buffer
	args := []string{
		"-model", "scripted/migrations.yaml", "-evidence", "project",
		"How do I set up database migrations?",
	}
	if err := run(t.Context(), args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	first, draft, _ := strings.Cut(out.String(), "\n")
	if first != "success: true (passed), 2 iterations, 4 calls, 2847 tokens" {
		t.Errorf("got %s\n%s", first, progress.String())
	}
	if !strings.HasPrefix(draft, "To set up database migrations") ||
		!strings.Contains(draft, "Do not use `drizzle-kit push`") {
		t.Errorf("the final draft is %q", draft)
	}
	for _, want := range []string{
		"run `drizzle-kit push`\n", "(1: the draft does not pass: 1 critical issue)",
		"(2: the draft passes: no issue)",
	} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("no %q in:\n%s", want, progress.String())
		}
	}
}
