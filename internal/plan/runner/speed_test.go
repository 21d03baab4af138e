package runner

import (
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

var errRejected = &tiers.RejectedError{Reason: "another Python"}

// TestAFasterTierIsNotWorthALoss checks that a long computation stays at home if a faster tier
// cannot accept all variables, breaks, or rejects the move.
func TestAFasterTierIsNotWorthALoss(t *testing.T) {
	left := []tiers.Left{{Name: "g", Type: "generator", Reason: "it runs"}}
	for name, spoil := range map[string]func(wasm, docker *fake){
		"a variable cannot leave":   func(wasm, _ *fake) { wasm.left = left },
		"the tier does not open":    func(_, docker *fake) { docker.opens = errBroken },
		"the tier takes no state":   func(_, docker *fake) { docker.imp = errBroken },
		"the tier rejects the move": func(_, docker *fake) { docker.imp = errRejected },
	} {
		t.Run(name, func(t *testing.T) {
			wasm, docker := newWasm(), newDocker()
			wasm.info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 3.4}
			s := start(t, Config{}, wasm, docker)
			s.in("wasm", "set x 1", "")
			spoil(wasm, docker)

			result := s.in("wasm", "# computes 4s\nshow x", "1\n")
			if len(result.Attempts) != 0 || result.Moved != nil {
				t.Errorf("%s: attempts %v, moved %v", name, result.Attempts, result.Moved)
			}
			opened := docker.opened
			s.in("wasm", "# computes 4s\nshow x", "1\n")
			if docker.opened != opened {
				t.Errorf("%s: the next snippet tries again", name)
			}
		})
	}
}

func TestANamespaceMovesForSpeed(t *testing.T) {
	wasm, docker := newWasm(), newDocker()
	wasm.info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 3.4}
	s := start(t, Config{}, wasm, docker)
	s.in("wasm", "set x 1", "")
	result := s.in("docker", "# computes 4s\nshow x", "1\n")
	if result.Moved == nil || result.Moved.From != "wasm" || result.Moved.Report.Moved != 1 {
		t.Errorf("moved: %+v", result.Moved)
	}
	s.in("docker", "show x", "1\n") // the namespace does not move back
}

// TestABrokenFasterTierIsPassedOver checks that the first snippet of a session runs elsewhere if
// the tier that was chosen for speed fails to open.
func TestABrokenFasterTierIsPassedOver(t *testing.T) {
	wasm, docker := newWasm(), newDocker()
	wasm.info.Cost.Slowdown = map[tiers.Language]float64{tiers.Python: 3.4}
	docker.opens = errBroken
	s := start(t, Config{}, wasm, docker)
	s.in("wasm", "# computes 4s\nprint 1", "1\n")
}
