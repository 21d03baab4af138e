//go:build linux && (amd64 || arm64)

package wasm

import (
	"bytes"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// saved exports the state of a session as pages only.
func saved(t *testing.T, s *sandbox) tiers.State {
	t.Helper()
	var pages bytes.Buffer
	state, err := s.SavePages(t.Context(), &pages)
	if err != nil {
		t.Fatal(err)
	}
	state.Exact = pages.Bytes()
	return state
}

// TestPagesAloneBringASessionBack checks that the pages restore values that no portable state can
// hold, the files of /out, and the next values of a deterministic session.
func TestPagesAloneBringASessionBack(t *testing.T) {
	e := readyEngine(t)
	for name, cfg := range map[string]tiers.Config{
		"plain": {}, "out": {Out: true}, "deterministic": {Deterministic: true},
	} {
		t.Run(name, func(t *testing.T) {
			first := opened(t, e, cfg)
			runInternal(t, first, peculiar)
			more, want := "", ""
			if cfg.Out {
				runInternal(t, first, "open('/out/kept', 'w').write('a file')")
				more, want = "\nprint(open('/out/kept').read())", "a file\n"
			}

			state := saved(t, first)
			second, report := imported(t, e, cfg, state)
			if !report.Exact || len(report.Left) > 0 {
				t.Errorf("%+v", report)
			}
			prints(t, second, lookAtPeculiar+more, peculiarLook+want)
			if !cfg.Deterministic {
				return
			}
			for _, s := range []*sandbox{first, second} {
				runInternal(t, s, "import random, time; was = [random.random(), time.time()]")
			}
			prints(t, first, "print(was)", runInternal(t, second, "print(was)").Stdout)
		})
	}
}

// TestRawPagesHaveTheirSize checks that raw pages with too few or too many bytes are rejected.
func TestRawPagesHaveTheirSize(t *testing.T) {
	e := readyEngine(t)
	first := opened(t, e, tiers.Config{})
	runInternal(t, first, "n = 1")
	state := saved(t, first)
	for _, damaged := range [][]byte{
		state.Exact[:len(state.Exact)-1], append(bytes.Clone(state.Exact), 0), state.Exact[:100],
	} {
		wrong := state
		wrong.Exact = damaged
		if report, err := opened(t, e, tiers.Config{}).Import(t.Context(), wrong); err == nil && report.Exact {
			t.Errorf("%d bytes are taken for %d", len(damaged), len(state.Exact))
		}
	}
}
