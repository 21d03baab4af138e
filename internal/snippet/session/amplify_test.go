package session

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// allocated returns the number of bytes that a function allocates on the host, whether freed or
// not.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestRequestsAreNotAmplified checks requests that would need many times their size if the host
// decoded them without a check.
func TestRequestsAreNotAmplified(t *testing.T) {
	skip.UnderRace(t)
	const size = 12 << 20
	few := strings.Repeat("[],", size/3) + "[]"
	objects := strings.Repeat("{},", size/3) + "{}"

	// The control applies a decoder to such JSON.
	control := allocated(func() {
		var v any
		if err := json.Unmarshal([]byte("["+few+"]"), &v); err != nil {
			t.Error(err)
		}
	})
	if control < 15*size {
		t.Fatalf("the requests are harmless: %d bytes become %d", size, control)
	}

	for name, request := range map[string]string{
		"variables":        "v[" + few + "]",
		"left":             `l{"left":[` + objects + `]}`,
		"arguments":        "cecho\x00[[" + few + "],{}]",
		"named arguments":  "cecho\x00[[],{" + strings.Repeat(`"":0,`, size/5) + `"":0}]`,
		"operands":         "cecho\x00[" + few + "]",
		"one argument":     "cecho\x00[[[" + few + "]],{}]",
		"a started call":   "secho\x00[[[" + few + "]],{}]",
		"the name":         "c" + strings.Repeat("x", size) + "\x00[[],{}]",
		"the answer":       `f{"value":[` + few + `]}`,
		"an exception":     `e{"type":[` + few + `]}`,
		"a long exception": `e{"message":"` + strings.Repeat(`\n`, size) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.Limits.Memory = 64 << 20
			a, err := NewAccounts(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Begin(t.Context(), tiers.Job{}); err != nil {
				t.Fatal(err)
			}

			message, reply := []byte(request), Reply{}
			spent := allocated(func() { reply = a.Handle(message) })
			if !reply.Failed || spent > size {
				t.Errorf("%s: %d bytes cost %d, and the answer is %.80q", name, len(message), spent,
					reply.Data)
			}
			a.End(wire.CodeOK)
		})
	}
}

// TestStatesAreNotAmplified does the same with states that may be in a snapshot.
func TestStatesAreNotAmplified(t *testing.T) {
	const size = 12 << 20
	head := `{"files":[` + strings.Repeat("{},", size/3) + `{}]}`
	for name, state := range map[string]tiers.State{
		"snippets": {
			Format: FormatReplay, Data: []byte("[" + strings.Repeat(`"",`, size/3) + `""]`),
		},
		"texts": {
			Format: FormatPickle,
			Data:   fmt.Appendf([]byte{byte(len(head)), byte(len(head) >> 8), byte(len(head) >> 16), 0}, "%s", head),
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := NewAccounts(t.Context(), testConfig(t))
			if err != nil {
				t.Fatal(err)
			}
			run := func(string, int) (int, error) { return wire.CodeOK, nil }
			spent := allocated(func() { _, err = a.ImportState(t.Context(), "x", state, run) })
			if err == nil || spent > size {
				t.Errorf("%s: %d bytes cost %d: %v", name, len(state.Data), spent, err)
			}
		})
	}
}
