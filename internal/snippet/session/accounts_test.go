package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echoHost returns its arguments; "slow" waits for the call's end.
var echoHost = tiers.HostFunc(func(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	switch call.Function {
	case "fail":
		return nil, errors.New("it failed")
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	case "junk":
		return tiers.Value("{not json"), nil
	}
	return json.Marshal(call.Args)
})

func testConfig(tb testing.TB) tiers.Config {
	tb.Helper()
	root := tb.TempDir()
	name := filepath.Join(root, "a.txt")
	if err := os.WriteFile(name, []byte("file of a directory"), 0o600); err != nil {
		tb.Fatal(err)
	}
	dir, err := bigtext.OpenDir(root)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := dir.Close(); err != nil {
			tb.Error(err)
		}
	})
	return tiers.Config{
		Host:      echoHost,
		Functions: []tiers.Function{{Name: "echo"}, {Name: "fail"}, {Name: "slow"}, {Name: "junk"}},
		Inputs: []tiers.Input{
			{Name: "text", Text: bigtext.FromBytes("text", []byte("one two\nthrée\xff\nfour"))},
			{Name: "dir", Dir: dir},
			{Name: "value", Value: tiers.Value(`{"a": [1, 2]}`)},
		},
		Limits: tiers.Limits{Wall: 200 * time.Millisecond, HostCalls: 5, Output: 10},
	}
}

func begun(tb testing.TB, cfg tiers.Config) *Accounts {
	tb.Helper()
	s, err := NewAccounts(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Begin(context.Background(), tiers.Job{}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.endCalls() })
	return s
}

func TestRequests(t *testing.T) {
	for _, c := range []struct{ name, req, want string }{
		{"call", "cecho\x00[[1,\"x\"],{}]", `[1,"x"]`},
		{"value input", "j2", `{"a": [1, 2]}`},
		{"slice", "ts0,4,7", "two"},
		{"slice with an invalid byte", "ts0,11,14", "ée\xff"},
		{"bytes", "tb0,0,3", "one"},
		{"find", "tf0,0,19,four", "15"},
		{"find nothing", "tf0,0,19,five", "-1"},
		{"rfind", "tr0,0,19,o", "16"},
		{"count", "tc0,0,19,o", "3"},
		{"lines", "tp0,0,19,newlines,", "3"},
		{"where lines lie", "tl0,0,19,newlines,1,3,", "8,19"},
		{"words", "tp0,0,19,fields,", "4"},
		{"matches", "tx0,0,19,0,10,o(n|u)", "[-1,[[0,2,1,2],[16,18,17,18]]]"},
		{"matching lines", "tg0,0,19,0,10,f", "[-1,[[15,19]]]"},
		{"list a directory", "dl1", `[["a.txt",19]]`},
		{"sleep", "z100", ""},
		{"no calls to wait for", "w0", "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begun(t, testConfig(t))
			r := s.Handle([]byte(c.req))
			if r.Failed || string(r.Data) != c.want {
				t.Errorf("%q gave %q (failed: %v), want %q", c.req, r.Data, r.Failed, c.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, req, want string }{
		{"empty", "", "cannot parse"},
		{"unknown operation", "?", "cannot parse"},
		{"call without arguments", "cecho", "cannot parse"},
		{"call with half of the arguments", "cecho\x00[[1]]", "cannot parse"},
		{"call of the host's error", "cfail\x00[[],{}]", "it failed"},
		{"call that returns junk", "cjunk\x00[[],{}]", "not JSON"},
		{"function that is not offered", "crm\x00[[],{}]", `no function "rm"`},
		{"model call without a model", "cllm_query\x00[[],{}]", "no model configured"},
		{"slice beyond the end", "ts0,0,99", "slice"},
		{"slice backwards", "ts0,5,4", "slice"},
		{"negative bytes", "tb0,-1,4", "cannot parse"},
		{"huge number", "ts0,0,99999999999999999999", "cannot parse"},
		{"unknown text", "ts9,0,1", "cannot parse"},
		{"a directory is no text", "ts1,0,1", "cannot parse"},
		{"unknown splitter", "tp0,0,19,nope,", "cannot parse"},
		{"empty separator", "tp0,0,19,sep,", "empty separator"},
		{"bad regexp", "tx0,0,19,0,10,(", "regexp:"},
		{"too many matches at once", "tx0,0,19,0,999999,o", "cannot parse"},
		{"file outside of the directory", "do1,../secret", "open"},
		{"stream that does not exist", "o3x", "cannot parse"},
		{"final without a value", "f{}", "cannot parse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begun(t, testConfig(t))
			r := s.Handle([]byte(c.req))
			if !r.Failed || !strings.Contains(string(r.Data), c.want) {
				t.Errorf(
					"%q gave %q (failed: %v), want an error with %q", c.req, r.Data, r.Failed,
					c.want,
				)
			}
		})
	}
}

func TestStartedCallsAreWaitedFor(t *testing.T) {
	s := begun(t, testConfig(t))
	for i := range 3 {
		if r := s.Handle(fmt.Appendf(nil, "secho\x00[[%d],{}]", i)); r.Failed {
			t.Fatalf("start: %s", r.Data)
		}
	}
	var all []string
	for len(all) < 3 {
		var done [][]any
		if err := json.Unmarshal(s.Handle([]byte("w-1")).Data, &done); err != nil {
			t.Fatal(err)
		}
		for _, d := range done {
			all = append(all, fmt.Sprint(d...))
		}
	}
	if len(all) != 3 {
		t.Errorf("got %v", all)
	}
}

func TestCancelEndsACall(t *testing.T) {
	s := begun(t, testConfig(t))
	number := string(s.Handle([]byte("sslow\x00[[],{}]")).Data)
	if got := string(s.Handle([]byte("w0")).Data); got != "[]" {
		t.Errorf("the call ended by itself: %s", got)
	}
	s.Handle([]byte("x" + number))
	if got := string(s.Handle([]byte("w-1")).Data); !strings.Contains(got, "false") ||
		!strings.Contains(got, "canceled") {
		t.Errorf("got %s", got)
	}
}

func TestResultsNeverReachALaterSnippet(t *testing.T) {
	s := begun(t, testConfig(t))
	s.Handle([]byte("secho\x00[[1],{}]"))
	s.End(wire.CodeOK)
	if err := s.Begin(context.Background(), tiers.Job{}); err != nil {
		t.Fatal(err)
	}
	if got := string(s.Handle([]byte("w0")).Data); got != "[]" {
		t.Errorf("a result of the snippet before: %s", got)
	}
}

func TestHostCallLimit(t *testing.T) {
	s := begun(t, testConfig(t))
	for range 5 {
		if r := s.Handle([]byte("cecho\x00[[],{}]")); r.Failed {
			t.Fatalf("call: %s", r.Data)
		}
	}
	if r := s.Handle([]byte("cecho\x00[[],{}]")); !r.Failed ||
		!strings.Contains(string(r.Data), "limit of 5") {
		t.Errorf("the sixth call gave %q", r.Data)
	}
	s.Handle([]byte(`e{"type": "HostError"}`))
	if r := s.End(wire.CodeRaised); r.Status != tiers.StatusLimit ||
		r.Limit != tiers.LimitHostCalls {
		t.Errorf("status %s, limit %s", r.Status, r.Limit)
	}
}

func TestArgumentsOfCallsUnderWayAreBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.Memory = 1000
	s := begun(t, cfg)
	large := "slow\x00[[\"" + strings.Repeat("x", 580) + "\"],{}]"
	number := string(s.Handle([]byte("s" + large)).Data)
	for _, op := range []string{"s", "c"} {
		t.Run(op, func(t *testing.T) {
			if r := s.Handle([]byte(op + large)); !r.Failed ||
				!strings.Contains(string(r.Data), "would take more than 1000 B in total") {
				t.Errorf("%s: a call too much gave %q", op, r.Data)
			}
		})
	}
	s.Handle([]byte("x" + number))
	s.Handle([]byte("w-1"))
	if r := s.Handle([]byte("s" + large)); r.Failed {
		t.Errorf("after the first has ended: %s", r.Data)
	}
}

func TestOutputIsCutAndCounted(t *testing.T) {
	s := begun(t, testConfig(t))
	s.Handle([]byte("o1hello "))
	s.Handle([]byte("o2errors"))
	s.Handle([]byte("o1more"))
	r := s.End(wire.CodeOK)
	if r.Stdout != "hello " || r.Stderr != "erro" || r.Dropped != 6 ||
		r.Limit != tiers.LimitOutput {
		t.Errorf("got %q, %q, %d dropped, limit %q", r.Stdout, r.Stderr, r.Dropped, r.Limit)
	}
}

func TestSleepEndsWithTheWallLimit(t *testing.T) {
	s := begun(t, testConfig(t))
	s.Handle([]byte("z60000000"))
	if !s.Watch(nil) || s.meter.fired != tiers.LimitWall {
		t.Error("a minute's sleep did not use up the wall limit")
	}
	r := s.End(-1)
	if r.Status != tiers.StatusLimit || r.Limit != tiers.LimitWall || r.Usage.Idle == 0 {
		t.Errorf("status %s, limit %s, idle %s", r.Status, r.Limit, r.Usage.Idle)
	}
}

func TestWaitingForTheHostIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t)
		cfg.Limits.Wall = 50 * time.Millisecond
		cfg.Host = tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
			time.Sleep(150 * time.Millisecond)
			return tiers.Value("1"), nil
		})
		s := begun(t, cfg)
		s.Handle([]byte("cecho\x00[[],{}]"))
		if s.Watch(nil) {
			t.Errorf("limit %s fired", s.meter.fired)
		}
		if r := s.End(wire.CodeOK); r.Usage.HostWait != 150*time.Millisecond ||
			r.Usage.Active != 0 {
			t.Errorf("host wait %s, active %s", r.Usage.HostWait, r.Usage.Active)
		}
	})
}

func TestBadConfigurations(t *testing.T) {
	for name, cfg := range map[string]tiers.Config{
		"negative limit": {Limits: tiers.Limits{Memory: -1}},
		"no identifier":  {Functions: []tiers.Function{{Name: "a b"}}},
		"reserved name":  {Functions: []tiers.Function{{Name: "__class__"}}},
		"empty input":    {Inputs: []tiers.Input{{}}},
		"two kinds of input": {Inputs: []tiers.Input{{
			Value: tiers.Value("1"),
			Text:  bigtext.FromBytes("", nil),
		}}},
		"value is not JSON": {Inputs: []tiers.Input{{Value: tiers.Value("{")}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewAccounts(context.Background(), cfg); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}

// FuzzHandle sends the host requests that a hostile guest may send. No request may panic, hang, or
// reach a file outside the inputs.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		"o1x", "cecho\x00[[1],{}]", "secho\x00[[],{\"a\":1}]", "w0", "x1", "z1",
		"f{\"value\":1,\"name\":\"\"}", "e{}", "i", "j2",
		"dl1", "do1,a.txt", "do1,../../etc/passwd", "ts0,0,5", "tb0,0,5", "tf0,0,9,o", "tr0,0,9,o",
		"tc0,0,9,",
		"tp0,0,19,lines,", "tl0,0,19,sep,0,1,o", "tx0,0,19,0,9,o+", "tg0,0,19,0,9,(?i)T",
		"ts-1,0,0", "tx0,19,0,5,9,a*", "k", "kEurope/Berlin", "k../zones", "kEurope/\x00",
	} {
		f.Add([]byte(seed))
	}
	cfg := testConfig(f)
	f.Fuzz(func(t *testing.T, req []byte) {
		if len(req) > 0 && (req[0] == 'w' || req[0] == 'z') && len(req) > 3 {
			t.Skip("it may wait")
		}
		if strings.HasPrefix(string(req), "cslow") {
			t.Skip("it waits for the snippet's end")
		}
		s, err := NewAccounts(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Begin(context.Background(), tiers.Job{}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r := s.Handle(req)
			if err := r.CopyTo(make([]byte, len(r.Data))); err != nil {
				t.Errorf("copy: %v", err)
			}
			if strings.Contains(string(r.Data), "root:") {
				t.Errorf("%q reached a file of the host", req)
			}
		}
		s.End(0)
	})
}

func TestResultsTakeNoMoreThanTheMemory(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.Memory, cfg.Limits.HostCalls = 1<<20, 20
	large := tiers.Value(`"` + strings.Repeat("x", 600<<10) + `"`)
	cfg.Functions = []tiers.Function{{Name: "large"}}
	cfg.Host = tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) { return large, nil })
	s := begun(t, cfg)

	for round := range 2 { // memory of results that the guest received is freed
		for range 2 {
			if r := s.Handle([]byte("slarge\x00[[],{}]")); r.Failed {
				t.Fatalf("cannot start a call: %s", r.Data)
			}
		}
		s.calls.running.Wait()
		got := string(s.Handle([]byte("w0")).Data)
		if strings.Count(got, "xxx\"]") != 1 || !strings.Contains(got, "results of the host calls in flight") {
			t.Errorf("round %d: two results of 600 KiB in a memory of 1 MiB: %.300s", round, got)
		}
	}
	s.Handle([]byte("slarge\x00[[],{}]"))
	s.endCalls() // the guest never fetches this result
	if err := s.gate.Hold(1 << 20); err != nil {
		t.Error(err)
	}
	s.gate.Free(1 << 20)
}
