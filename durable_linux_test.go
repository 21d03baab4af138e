package rlm_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/smalldisk"
)

// TestARunGoesOnOnceItsDiskHasSpace checks a run whose saved state fills the store's disk in the
// second of three turns.
func TestARunGoesOnOnceItsDiskHasSpace(t *testing.T) {
	d := newDurableRun(t)
	d.model.turns = []string{
		"```repl\nseen = llm_query_batched([f'item {i}' for i in range(6)])\nnote('half')\n```",
		"```repl\nimport os\nlarge = os.urandom(8 << 20)\nseen.append(llm_query('again'))\n```",
		"```repl\nFINAL([len(seen), seen[-1], len(large), notes()])\n```",
	}
	smalldisk.Mount(t, d.dir, "size=3m")

	for range 2 { // trying again changes nothing
		_, err := d.process(t, 1000, nil)
		if err == nil || !strings.Contains(err.Error(), "free some space; earlier data is intact") {
			t.Fatalf("a full disk: %v", err)
		}
	}
	before := d.model.sum()

	smalldisk.Resize(t, d.dir, "64m")
	outcome, err := d.process(t, 1000, nil)
	if got := string(outcome.Answer); err != nil || got != `[7, "AGAIN", 8388608, 1]` {
		t.Errorf("with free space again: %s, %v", got, err)
	}
	if d.model.sum() != before+1 || d.notes != 1 {
		t.Errorf("%d calls more, want that of the last turn alone; %v", d.model.sum()-before, d.model.asked)
	}
}
