package code

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/tiers"
)

// TestAnInterruptBreaksNoTier checks that the JSON of an interrupted command does not report a
// broken tier.
func TestAnInterruptBreaksNoTier(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := &tiers.BrokenError{Tier: "wasm", Effects: tiers.EffectsRan, Err: ctx.Err()}
	if text := broken.Error(); text != "interrupted in tier wasm (snippet ran)" {
		t.Errorf("the error is %q", text)
	}

	var out bytes.Buffer
	if err := printFailure(ctx, &out, cli.AddExitCode(broken)); err == nil {
		t.Error("the error is lost")
	}
	const want = `{"status":"interrupted","exit_code":130,"error":"interrupted","effects":"ran"}`
	if got := strings.TrimSpace(out.String()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
