//go:build linux && (amd64 || arm64)

package workers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/tiers"
)

// FuzzResult checks that each result of a hostile worker that is accepted keeps the promises of a
// tier.
func FuzzResult(f *testing.F) {
	f.Add(`{"status":"ok","stdout":"MQo=","usage":{"output":2},"variables":null}`, "stdout", "")
	f.Add(`{"status":"raised","exception":{"type":"eA==","message":"","traceback":""},"usage":{},"variables":[]}`,
		"final", "1")
	f.Add(`{"status":"limit","limit":"memory","usage":{},"lost":{"Snippets":[1],"Reason":"x"},"variables":[]}`,
		"artefact", "x")
	f.Add(`{"status":"ok","final":{"value":"MQ=="},"usage":{"wall":-1},"variables":null}`, "final", "")
	limits := tiers.Limits{Output: 64, Memory: 1 << 10}

	f.Fuzz(func(t *testing.T, message, of, data string) {
		var r result
		if jsonrpc.Decode(jsonrpc.Raw(message), &r) != nil {
			return
		}
		parts := partsFor(limits)
		for range 3 {
			parts.add(part{Of: of, Name: of, Data: []byte(data)})
		}
		got, err := r.decode(parts, limits)
		if err != nil {
			return
		}
		if int64(len(got.Stdout)+len(got.Stderr)) > limits.Output || len(got.Artefacts) > maxArtefacts ||
			got.Status == tiers.StatusOK && got.Exception != nil || got.Usage.Wall < 0 ||
			got.Lost != nil && (len(got.Lost.Snippets) == 0 || got.Lost.Reason == "") {
			t.Errorf("accepted: %+v", got)
		}
	})
}

// FuzzError decodes an error from a hostile worker.
func FuzzError(f *testing.F) {
	f.Add("no", `{"kind":"broken","effects":"ran","lost":{"Snippets":[1],"Reason":"x"}}`)
	f.Add("no", `{"kind":"rejected","missing":"numpy","reason":"it has none","effects":"never_ran"}`)
	f.Add("", `[]`)
	f.Fuzz(func(t *testing.T, message, data string) {
		err := decodeError(&jsonrpc.Error{Message: message, Data: jsonrpc.Raw(data)}, "wasm")
		var broken *tiers.BrokenError
		if errors.As(err, &broken) && (broken.Tier != "wasm" || checkLoss(broken.Lost) != nil) {
			t.Errorf("accepted: %+v", broken)
		}
	})
}

// TestPartsAreBounded checks that an endless series of pieces is not kept in memory.
func TestPartsAreBounded(t *testing.T) {
	limits := tiers.Limits{Output: 10, Memory: 1 << 10}
	for _, of := range []string{partStdout, partArtefact, "else"} {
		t.Run(fmt.Sprintf("%.60s", of), func(t *testing.T) {
			p := partsFor(limits)
			piece := []byte(strings.Repeat("x", pieceBytes))
			kept := 0
			for range 100 {
				p.add(part{Of: of, Name: "a", Data: piece})
			}
			for _, text := range p.texts {
				kept += len(text)
			}
			for _, a := range p.artefacts {
				kept += len(a.Data)
			}
			if p.wrong == nil || kept > maxArtefactBytes+1<<20 {
				t.Errorf("%s: %d bytes are kept, %v", of, kept, p.wrong)
			}
		})
	}
}

// TestAWorkerCallsOnlyWhatIsOffered checks a worker that calls functions that were not offered, and
// that repeats call numbers.
func TestAWorkerCallsOnlyWhatIsOffered(t *testing.T) {
	box := &sandbox{limits: tiers.DefaultLimits()}
	box.cfg.Functions = []tiers.Function{{Name: "offered"}, {Name: "value", Value: tiers.Value("1")}}
	box.cfg.Host = hostThatWaits(make(chan struct{}))
	box.limits.HostCalls = 2
	r := &running{box: box}
	for _, row := range []struct {
		function string
		ordinal  int
		isFine   bool
	}{
		{"offered", 1, true},
		{"offered", 1, false},
		{"offered", 3, false},
		{"offered", 0, false},
		{"value", 2, false},
		{"other", 2, false},
		{"offered", 2, true},
	} {
		t.Run(row.function, func(t *testing.T) {
			p := callParams{Function: row.function, Ordinal: row.ordinal}
			if err := r.admit(p, tiers.Call{}); (err == nil) != row.isFine {
				t.Errorf("%s, call %d: %v", row.function, row.ordinal, err)
			}
		})
	}
	broken := tiers.Call{Args: []tiers.Value{tiers.Value("{")}}
	if err := r.admit(callParams{Function: "offered", Ordinal: 2}, broken); err == nil {
		t.Error("an argument that is no JSON is passed on")
	}
}

// TestTextsOfAWorkerAreBounded checks long strings from a worker.
func TestTextsOfAWorkerAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxException+1)
	for name, r := range map[string]tiers.Result{
		"exception": {Status: tiers.StatusRaised, Exception: &tiers.Exception{Traceback: long}},
		"variable":  {Status: tiers.StatusOK, Variables: []tiers.Variable{{Name: "a", Kind: long}}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkResult(&r, tiers.DefaultLimits()); err == nil || !strings.Contains(err.Error(), "too long") {
				t.Errorf("a long %s: %v", name, err)
			}
		})
	}

	for _, kind := range []string{"", kindRejected, kindBroken} {
		t.Run(fmt.Sprintf("%.60s", kind), func(t *testing.T) {
			d := details{Kind: kind, Missing: long, Reason: long, Effects: tiers.EffectsNeverRan}
			err := decodeError(jsonrpc.NewError(jsonrpc.CodeServer, d, "%s", long), "wasm")
			if got := len(err.Error()); got > 3*maxSaid {
				t.Errorf("an error of kind %q has %d bytes", kind, got)
			}
		})
	}
}
