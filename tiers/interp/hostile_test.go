package interp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/hostile"
)

// TestHostileSnippets runs each attack in its own session, then checks that the session is alive
// and reported its losses truthfully. The negative control of each attack is in package hostile.
func TestHostileSnippets(t *testing.T) {
	skip.Short(t, "it waits for the limits of many snippets")
	skip.UnderRace(t)
	tier := warmTier(t)
	for _, h := range hostile.Snippets {
		t.Run(h.Name, func(t *testing.T) {
			wall := 400 * time.Millisecond
			if !slices.Contains(h.May, hostile.Limited) {
				wall = 10 * time.Second // it must end for another reason, however slow the machine
			}
			s := openSandbox(t, tier, tiers.Config{Limits: tiers.Limits{Wall: wall}})
			language, mark, look, want := h.Language(), "kept := 41", "kept + 1", "42\n"
			if language == tiers.Python {
				mark = "kept = 41"
			}
			runSoon(t, s, language, mark)
			r, err := s.Run(t.Context(), tiers.Job{Language: language, Source: h.Source})
			outcome := string(r.Status)
			var refusal *tiers.RejectedError
			if errors.As(err, &refusal) {
				outcome = hostile.Rejected
			} else if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(h.May, " "), outcome) {
				t.Errorf(
					"the outcome is %s, may be %v: %+v %v %v", outcome, h.May, r.Exception, r.Limit,
					err,
				)
			}
			if again := runSoon(t, s, language, look); again.Stdout != want {
				t.Errorf("the session is damaged: %q", again.Stdout)
			}
		})
	}
}

// runSoon is runOK under a brief wall limit. A busy machine may exhaust it, so a snippet stopped
// by the time limit is run again.
func runSoon(t *testing.T, s tiers.Sandbox, language tiers.Language, source string) tiers.Result {
	t.Helper()
	for n := 1; ; n++ {
		r, err := s.Run(t.Context(), tiers.Job{Language: language, Source: source})
		if err == nil && r.Status == tiers.StatusLimit && n < 5 {
			continue
		}
		if err != nil || r.Status != tiers.StatusOK {
			t.Fatalf("%s: %s %+v %v", source, r.Status, r.Exception, err)
		}
		return r
	}
}
