package tiersuite

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// testContract tests what package tiers requires of every tier, apart from the snippets themselves.
func (s *suite) testContract(t *testing.T) {
	t.Run("Info", s.testInfoConstant)
	t.Run("BadConfig", s.testBadConfig)
	t.Run("Closed", s.testClosed)
	t.Run("OneOwner", s.testOneOwner)
	t.Run("Cancelled", s.testCancelled)
	t.Run("Language", s.testOtherLanguage)
	t.Run("Streams", s.testStreams)
	t.Run("Usage", s.testUsage)
	t.Run("Concurrent", s.testConcurrent)
	t.Run("Deterministic", s.testDeterministic)
	t.Run("Files", s.testFiles)
	t.Run("Missing", s.testMissing)
}

func (s *suite) testInfoConstant(t *testing.T) {
	a, b := s.tier.Info(), s.tier.Info()
	if a.Name != b.Name || len(a.Features) != len(b.Features) || a.Isolation != b.Isolation {
		t.Errorf("Info changes: %+v, %+v", a, b)
	}
	if a.Isolation == tiers.IsolationNone || a.Isolation.String() == "unknown" {
		t.Errorf("isolation %v", a.Isolation)
	}

	if len(a.Languages) == 0 {
		t.Error("Info names no language")
	}
}

// testBadConfig opens sandboxes that no tier can provide. Open must fail and explain why.
func (s *suite) testBadConfig(t *testing.T) {
	text := makeTextInput(t, "t", "text")
	both := text
	both.Value = tiers.Value("1")
	for name, row := range map[string]struct {
		cfg  tiers.Config
		says string
	}{
		"negative wall":           {tiers.Config{Limits: tiers.Limits{Wall: -1}}, "wall"},
		"negative active":         {tiers.Config{Limits: tiers.Limits{Active: -time.Second}}, "active"},
		"negative memory":         {tiers.Config{Limits: tiers.Limits{Memory: -1}}, "memory"},
		"negative output":         {tiers.Config{Limits: tiers.Limits{Output: -1}}, "output"},
		"negative host calls":     {tiers.Config{Limits: tiers.Limits{HostCalls: -1}}, "host calls"},
		"negative calls at once":  {tiers.Config{Limits: tiers.Limits{HostCallsAtOnce: -1}}, "host calls at once"},
		"an input of nothing":     {tiers.Config{Inputs: []tiers.Input{{Name: "empty"}}}, "exactly one"},
		"an input of two things":  {tiers.Config{Inputs: []tiers.Input{both}}, "exactly one"},
		"the second input is bad": {tiers.Config{Inputs: []tiers.Input{text, {Name: "empty"}}}, "exactly one"},
		"a value that is no JSON": {tiers.Config{Inputs: []tiers.Input{{
			Name:  "v",
			Value: tiers.Value("{nonsense"),
		}}}, "JSON"},
		"a name with a blank": {configWithFunctions("two words"), "identifier"},
		"an empty name":       {configWithFunctions(""), "identifier"},
		"a name that is code": {configWithFunctions("f(): pass\nimport os\ndef g"), "identifier"},
		"a name with a digit": {configWithFunctions("1st"), "identifier"},
		"a keyword":           {configWithFunctions("class"), ""},
		"a reserved name":     {configWithFunctions("FINAL"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			box, err := s.tier.Open(s.patientContext(t), row.cfg)
			if err == nil {
				_ = box.Close() // the test has failed already
				t.Fatal("Open did not fail")
			}
			if !strings.Contains(err.Error(), row.says) {
				t.Errorf("the error does not say %q: %v", row.says, err)
			}
		})
	}
}

func configWithFunctions(names ...string) tiers.Config {
	cfg := newHost().config()
	cfg.Functions = nil
	for _, n := range names {
		cfg.Functions = append(cfg.Functions, tiers.Function{Name: n})
	}
	return cfg
}

func (s *suite) testClosed(t *testing.T) {
	for name, before := range map[string]string{"unused": "", "used": "x = 1", "after a stop": `while True:
    try:
        while True: pass
    except: pass`} {
		t.Run(name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Limits: s.stopLimits()})
			if before != "" {
				box.run(t, before)
			}
			for range 3 {
				if err := box.box.Close(); err != nil {
					t.Fatalf("cannot close: %v", err)
				}
			}

			if _, err := box.box.Run(s.patientContext(t), tiers.Job{Source: "print(1)"}); err == nil {
				t.Error("a closed sandbox ran a snippet")
			}
		})
	}
}

// testOneOwner uses a sandbox while a snippet runs in it.
func (s *suite) testOneOwner(t *testing.T) {
	host := newHost()
	box := s.open(t, host.config())
	ctx, cancel := context.WithCancel(s.patientContext(t))
	defer cancel()
	ended := make(chan error)
	go func() {
		_, err := box.box.Run(ctx, tiers.Job{Source: "kept = 1\nhang()"})
		ended <- err
	}()
	select {
	case <-host.hanging:
	case err := <-ended:
		s.skipRefused(t, err)
		t.Fatalf("the snippet did not wait: %v", err)
	}

	uses := map[string]func() error{
		"Run":   func() error { _, err := box.box.Run(ctx, tiers.Job{Source: "1"}); return err },
		"Close": box.box.Close,
	}
	if exporter, ok := box.box.(tiers.Exporter); ok {
		uses["Export"] = func() error { _, err := exporter.Export(ctx); return err }
		uses["Import"] = func() error { _, err := exporter.Import(ctx, tiers.State{}); return err }
	}
	if extender, ok := box.box.(tiers.Extender); ok {
		uses["Extend"] = func() error { return extender.Extend(ctx, nil, nil) }
	}
	if forker, ok := box.box.(tiers.Forker); ok {
		uses["Fork"] = func() error { _, err := forker.Fork(ctx); return err }
	}
	if collector, ok := box.box.(tiers.Collector); ok {
		uses["Collect"] = func() error { _, err := collector.Collect(ctx, t.TempDir()); return err }
	}
	for name, use := range uses {
		if err := use(); err == nil || !strings.Contains(err.Error(), "in use by another call") {
			t.Errorf("%s while a snippet runs: %v", name, err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the snippet ends with %v", err)
	}
	if r := box.run(t, "print(kept)"); r.Stdout != "1\n" {
		t.Errorf("the session afterwards: %s", describe(r))
	}
}

func (s *suite) testCancelled(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	t.Run("Open", func(t *testing.T) {
		box, err := s.tier.Open(over, emptyConfig())
		if err == nil {
			_ = box.Close() // the test has failed already
			t.Fatal("Open ignored its context")
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Open returned %v", err)
		}
	})

	t.Run("the context of Open does not bind the sandbox", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		box, err := s.tier.Open(ctx, emptyConfig())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		(&session{suite: s, box: box}).checkAlive(t)
	})

	t.Run("Run, before it begins", func(t *testing.T) {
		box := s.open(t, emptyConfig())
		box.mustRun(t, harm.Marked)
		_, err := box.box.Run(over, tiers.Job{Source: "kept = None"})
		var broken *tiers.BrokenError
		if !errors.As(err, &broken) || !errors.Is(err, context.Canceled) || broken.Effects != tiers.EffectsNeverRan {
			t.Errorf("Run returned %v, want a BrokenError of a snippet that never ran", err)
		}

		box.mustPrint(t, "print(kept)", "{'since': 'snippet 1'}\n")
	})

	for name, source := range map[string]string{
		"Run, in a loop": "while True: pass", "Run, in C code": "sum(range(10 ** 12))",
		"Run, asleep":       "import time\ntime.sleep(3600)",
		"Run, catching all": "while True:\n    try:\n        while True: pass\n    except: pass",
	} {
		t.Run(name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Limits: tiers.Limits{Wall: time.Hour}})
			box.mustRun(t, harm.Marked)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := box.tryJob(ctx, t, tiers.Job{Source: source})
			var broken *tiers.BrokenError
			if !errors.As(err, &broken) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Run returned %v, want a BrokenError with the context's error", err)
			}

			box.checkAlive(t)
			box.checkHonest(t, tiers.Result{Lost: broken.Lost})
		})
	}

	t.Run("Run, that obeys", func(t *testing.T) {
		if !s.info.Has(tiers.FeatureDynamic) {
			t.Skip("the tier has no interrupts")
		}
		host := newHost()
		cfg := host.config()
		cfg.Limits.Wall = time.Hour
		box := s.open(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			defer cancel()
			<-host.hanging
		}()

		_, err := box.tryJob(ctx, t, tiers.Job{Source: `half = 'done'
try:
    hang()
    while True: pass
finally: cleared = True`})
		var broken *tiers.BrokenError
		if !errors.As(err, &broken) || !errors.Is(err, context.Canceled) || broken.Lost != nil {
			t.Errorf("Run returned %v, want a BrokenError that lost nothing", err)
		}

		box.mustPrint(t, "print(half, cleared)", "done True\n")
	})
}

func (s *suite) testOtherLanguage(t *testing.T) {
	box := s.open(t, emptyConfig())
	_, err := box.box.Run(s.patientContext(t), tiers.Job{Language: "cobol", Source: "STOP RUN."})
	var rejected *tiers.RejectedError
	if !errors.As(err, &rejected) {
		t.Fatalf("Run returned %v, want a RejectedError", err)
	}

	if rejected.Tier != s.info.Name || rejected.Missing == "" || rejected.Reason == "" ||
		rejected.Effects != tiers.EffectsNeverRan {
		t.Errorf("the rejection is incomplete: %+v", rejected)
	}
	box.checkAlive(t)
	r, err := box.box.Run(s.patientContext(t), tiers.Job{Language: tiers.Python, Source: "print('named')"})
	if err != nil || r.Stdout != "named\n" {
		t.Errorf("a snippet that says it is Python: %v\n%s", err, describe(r))
	}
}

// testStreams checks the writers of a job.
func (s *suite) testStreams(t *testing.T) {
	box := s.open(t, tiers.Config{Limits: tiers.Limits{Output: 100}})
	var out, errs bytes.Buffer
	r, err := box.tryJob(s.patientContext(t), t, tiers.Job{Source: `import sys
print('out é')
print('err', file=sys.stderr)
'echo'`, Stdout: &out, Stderr: &errs})
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != r.Stdout || errs.String() != r.Stderr || r.Stdout != "out é\n'echo'\n" || r.Stderr != "err\n" {
		t.Errorf("the writers got %q and %q\n%s", out.String(), errs.String(), describe(r))
	}

	out.Reset()
	r, err = box.tryJob(s.patientContext(t), t, tiers.Job{Source: "print('x' * 5000)", Stdout: &out})
	if err != nil || out.Len() != 100 || r.Dropped != 4901 {
		t.Errorf("beyond the limit the writer got %d bytes, %d dropped (%v)", out.Len(), r.Dropped, err)
	}
	r, err = box.tryJob(s.patientContext(t), t, tiers.Job{Source: "print('kept')", Stdout: failing{}})
	if err != nil || r.Status != tiers.StatusOK || r.Stdout != "kept\n" {
		t.Errorf("a writer that fails disturbs the snippet: %v\n%s", err, describe(r))
	}

	// A writer that panics is the caller's fault, not the snippet's, and must not end the process.
	r, err = box.tryJob(s.patientContext(t), t, tiers.Job{
		Source: "kept = 1\nprint('a')\nprint('b')\nkept = 2", Stdout: panicking{},
	})
	var broken *tiers.BrokenError
	if !errors.As(err, &broken) || !strings.Contains(err.Error(), "the writer is gone") ||
		r.Status != tiers.StatusOK || broken.Lost != nil {
		t.Errorf("a writer panics: %v\n%s", err, describe(r))
	}
	if r := box.run(t, "print(kept)"); r.Stdout != "2\n" {
		t.Errorf("after a panic of the writer: %s", describe(r))
	}
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("the writer is gone") }

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func (s *suite) testUsage(t *testing.T) {
	box := s.open(t, newHost().config())
	u := box.mustRun(t, `import time
total = sum(i * i for i in range(20000))
time.sleep(0.3)
slow(300)
print('x' * 99)`).Usage

	switch {
	case u.Wall <= 0 || u.Active <= 0 || u.Active > u.Wall:
		t.Errorf("wall %v, active %v", u.Wall, u.Active)
	// on a busy machine, some of the wait may be counted as work
	case u.HostWait < 150*time.Millisecond || u.Idle < 150*time.Millisecond:
		t.Errorf("host wait %v, idle %v, want most of 300 ms and more each", u.HostWait, u.Idle)
	case u.Active+u.HostWait+u.Idle > u.Wall+time.Millisecond:
		t.Errorf("the parts are more than the whole: %+v", u)
	case u.HostCalls != 1 || u.OutputBytes != 100 || u.PeakMemory <= 0:
		t.Errorf("usage %+v", u)
	}

	if again := box.mustRun(t, "pass").Usage; again.HostCalls != 0 || again.OutputBytes != 0 || again.HostWait != 0 ||
		again.Idle != 0 {
		t.Errorf("the next snippet inherits usage: %+v", again)
	}
}

// testConcurrent runs several sandboxes of the tier concurrently.
func (s *suite) testConcurrent(t *testing.T) {
	group, ctx := errgroup.WithContext(s.patientContext(t))
	for i := range 8 {
		group.Go(func() error {
			for range 5 {
				if err := s.runSum(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}

	err := group.Wait()
	s.skipRefused(t, err)
	if err != nil {
		t.Fatal(err)
	}
}

func (s *suite) runSum(ctx context.Context, i int) (err error) {
	box, err := s.tier.Open(ctx, emptyConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	n := formatDecimal(int64(i))
	if _, err := box.Run(ctx, tiers.Job{Source: "n = " + n}); err != nil {
		return err
	}

	r, err := box.Run(ctx, tiers.Job{Source: "print(sum(range(10000)) + n)"})
	if err == nil && r.Stdout != formatDecimal(int64(49995000+i))+"\n" {
		err = errors.New("a wrong sum: " + r.Stdout)
	}
	return err
}

// testDeterministic runs the same snippets in two sandboxes, whose results must be equal.
func (s *suite) testDeterministic(t *testing.T) {
	s.requireFeature(t, tiers.FeatureDeterminism)
	snippets := []string{
		`import random, time, uuid, os, secrets
print(random.random(), time.time(), time.monotonic(), uuid.uuid4(), os.urandom(4).hex(), secrets.token_hex(4))`,
		`import zoneinfo
from datetime import timezone as tz, datetime as dt
print(dt(2024, 7, 1, tzinfo=tz.utc).astimezone(zoneinfo.ZoneInfo("Asia/Tokyo")), len(zoneinfo.available_timezones()))`,
		"print(id(object()), hash('text'), {str(i) for i in range(20)}, object())",
		`from datetime import datetime
print(datetime.now(), random.sample(range(100), 5))
time.sleep(0.001)
print(time.time())`,
	}

	var outs []string
	for range 2 {
		box := s.open(t, tiers.Config{Deterministic: true})
		var all strings.Builder
		for _, source := range snippets {
			all.WriteString(box.mustRun(t, source).Stdout)
		}
		outs = append(outs, all.String())
	}

	if outs[0] != outs[1] {
		t.Errorf("two runs differ:\n%s\n%s", outs[0], outs[1])
	}
}

// testFiles requests a folder whose files are copied to the host. A tier must provide it, or reject
// the session.
func (s *suite) testFiles(t *testing.T) {
	for name, cfg := range map[string]tiers.Config{
		"out": {Out: true}, "mounts": {Mounts: []tiers.Mount{{Source: t.TempDir(), Target: "/data"}}},
	} {
		box, err := s.tier.Open(t.Context(), cfg)
		if err == nil {
			if _, ok := box.(tiers.Collector); !ok {
				t.Errorf("%s: it has files, and none come back", name)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
			continue
		}

		var rejected *tiers.RejectedError
		if !errors.As(err, &rejected) || rejected.Effects != tiers.EffectsNeverRan {
			t.Errorf("%s: %v, want a rejection", name, err)
		}
	}
}
