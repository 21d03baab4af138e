package tiersuite

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// hostileStates are pieces of code that a state runs when it is read, as any pickle can.
var hostileStates = map[string]string{
	"reads secrets": `import os, builtins
builtins.stolen = [dict(os.environ)]
for path in ("/proc/self/environ", "/proc/1/environ", "/etc/hostname", "/proc/self/cmdline"):
    try: builtins.stolen.append(open(path, "rb").read())
    except Exception as e: builtins.stolen.append(type(e).__name__)`,
	"ends the process": "import os; os._exit(3)",
	"forgets modules":  "import sys; sys.modules.clear()",
	"wants memory":     "x = [bytearray(1 << 28) for _ in range(1000)]",
	"never ends":       "while True: pass",
	"recurses":         "def f(): return [f()]\nf()",
	"pays": `global _rlm, __main__
import _rlm, __main__
for pay in (lambda: __main__.pay(), lambda: _rlm.call("cpay\0[[],{}]")):
    try: pay()
    except Exception: pass`,
	"speaks for itself": "import _rlm\nfor request in ('', 'l{', 'x', 'v[[]]', 'l' + '[' * 100000): _rlm.call(request)",
}

// testHostileStates reads states of hostile code in new sandboxes. The code of a state runs behind
// the wall. It must not find a secret or call a host function, and the next sandbox must work.
func (s *suite) testHostileStates(t *testing.T) {
	t.Setenv("RLM_CANARY", canary)
	var calls atomic.Int64
	cfg := tiers.Config{
		Limits: tiers.Limits{Wall: max(2*time.Second, 2*s.opt.StopAfter), Memory: 4 * s.opt.Memory},
		Host: tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
			calls.Add(1)
			return tiers.Value("1"), nil
		}),
		Functions: []tiers.Function{{Name: "pay", Doc: "It costs."}},
	}

	for _, name := range pickFew(s, slices.Sorted(maps.Keys(hostileStates))) {
		t.Run(name, func(t *testing.T) {
			from, to := s.open(t, cfg), s.open(t, cfg)
			from.mustRun(t, "class Attack:\n    def __init__(self, code): self.code = code\n"+
				"    def __reduce__(self): return exec, (self.code,)\n")
			from.mustRun(t, "attack = Attack("+strconv.Quote(hostileStates[name])+")")
			if stolen := s.readHostile(t, from, to, nil); name == "reads secrets" && !strings.HasPrefix(stolen, "[{") {
				t.Errorf("the state has run no code: it stole %q", stolen)
			}
			if n := calls.Load(); n > 0 {
				t.Errorf("%d host functions were called", n)
			}
		})
	}
	t.Run("is damaged", func(t *testing.T) {
		from := s.open(t, cfg)
		from.mustRun(t, "a, b = [1, 'x' * 100], {'k': (1.5, None)}\ndef f(): return a")
		for _, damage := range []func([]byte) []byte{
			func(data []byte) []byte { return data[:len(data)/2] },
			func(data []byte) []byte { data[0] ^= 0xff; return data },
			func(data []byte) []byte { data[len(data)/3] ^= 0x55; return data },
		} {
			s.readHostile(t, from, s.open(t, cfg), damage)
		}
	})
}

// readHostile moves a state, looks for effects of the state's code, and returns any secret that the
// code found.
func (s *suite) readHostile(t *testing.T, from, to *session, damage func([]byte) []byte) (stolen string) {
	t.Helper()
	state, err := asExporter(t, from).Export(t.Context())
	if err != nil {
		t.Fatalf("cannot export: %v", err)
	}
	if damage != nil {
		state.Data = damage(slices.Clone(state.Data))
	}

	_, err = asExporter(t, to).Import(t.Context(), state)
	if err == nil {
		result, failed := to.box.Run(t.Context(), tiers.Job{Source: "print(globals().get('stolen') or " +
			"getattr(__import__('builtins'), 'stolen', None))"})
		if strings.Contains(result.Stdout, canary) {
			t.Errorf("the state has seen a secret: %s", result.Stdout)
		}
		stolen, err = result.Stdout, failed
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it did not end: %v", err)
	}
	s.open(t, emptyConfig()).mustPrint(t, "print(1 + 1)", "2\n")
	return stolen
}
