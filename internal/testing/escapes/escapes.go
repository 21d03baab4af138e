// Package escapes runs a corpus of attempts to escape from a tier, and keeps the verdicts in
// docs/generated/security-matrix.md. The attempts are Python files below testdata.
package escapes

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

// The verdicts of the matrix. The verdict for a limit that fired is "limit: " and its name, for an
// escape "ESCAPED: " and what was touched.
const (
	Blocked     = "blocked"      // the guest received an exception
	Contained   = "contained"    // it ran, but touched nothing
	NotRoutable = "not routable" // the tier rejected it before it ran
	Escaped     = "ESCAPED"
	Open        = "not closed" // it escapes, as documented
)

// Bounds of the cases. Cases that only a limit ends have brief bounds. The others end on their own,
// but on a busy machine, 300 forks in a container can take half a minute.
const (
	briefWall    = 500 * time.Millisecond
	caseWall     = 5 * time.Minute
	caseMemory   = 256 << 20
	callsAllowed = 5
	endsWithin   = 30 * time.Second // beyond the limit
)

// Run runs the corpus on a tier and compares the verdicts with the tier's column of
// docs/generated/security-matrix.md. If RLM_ESCAPE_UPDATE is set, it writes the column instead; an
// escape fails the test in either case.
func Run(t *testing.T, tier tiers.Tier) {
	settleColumn(t, tier.Info().Name, run(t, tier, func(Case) bool { return true }))
}

// RunThrough runs cases of the corpus through another interface to a tier, such as the API of a
// server, and compares their verdicts with the tier's column. The interface may refuse snippets.
func RunThrough(t *testing.T, way tiers.Tier, chosen func(Case) bool) {
	column := run(t, way, chosen)
	for id, verdict := range column {
		if verdict == NotRoutable {
			delete(column, id)
		}
	}
	if !runsAll() {
		settleColumn(t, way.Info().Name, column)
	}
}

// run runs the chosen cases on a tier, and returns their verdicts.
func run(t *testing.T, tier tiers.Tier, chosen func(Case) bool) map[string]string {
	t.Helper()
	skip.WithoutTier(t, tier.Info().Name, tier.Probe(t.Context()))
	if err := tier.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}

	secret := "canary-" + rand.Text()
	t.Setenv(environment, secret)
	e := &escape{tier: tier, variable: secret, column: map[string]string{}, world: newWorld(t)}
	if r, ok := tier.(reaching); ok {
		r.Reach(e.world.options())
	}
	var cases []Case
	for _, c := range Cases(t) {
		if chosen(c) {
			cases = append(cases, c)
		}
	}
	t.Run("corpus", func(t *testing.T) { e.runCorpus(t, cases) })
	return e.column
}

// reaching is a tier with proxies that a test can redirect.
type reaching interface{ Reach(o egress.Options) }

// settling is an interface to a tier that keeps processes between cases. Settle replaces processes
// that have ended, so that they are not attributed to the next case.
type settling interface {
	Settle(ctx context.Context) error
}

// Try runs one case in a separate sandbox, and returns its verdict. It is for walls without one of
// their layers, and for changed configurations. change may be nil; its folder is the host's folder
// with the canaries of this case.
func Try(t *testing.T, tier tiers.Tier, c Case, change func(cfg *tiers.Config, folder string)) string {
	t.Helper()
	e := &escape{tier: tier, variable: os.Getenv(environment), change: change, world: newWorld(t)}
	return e.runBatch(t, []Case{c})[0]
}

// escape is the suite for one tier.
type escape struct {
	tier     tiers.Tier
	variable string
	change   func(cfg *tiers.Config, folder string)
	world    *world

	mu     sync.Mutex
	column map[string]string
}

// runCorpus runs cases. Cases of one class share a sandbox if they leave it intact. Cases whose
// cost for the host is measured run before all others, one at a time.
func (e *escape) runCorpus(t *testing.T, cases []Case) {
	e.startNeighbour(t).end(t) // so that files that the host opens once are not charged to a case

	for _, c := range cases {
		if c.isCounted() {
			t.Run(c.ID(), func(t *testing.T) { e.record(t, c, e.runCounted(t, c)) })
		}
	}
	for _, class := range classes {
		if isCounted(class) {
			continue
		}
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			var shared []Case
			for _, c := range cases {
				switch {
				case c.Class != class:
				case c.needsFreshSandbox():
					t.Run(c.Name, func(t *testing.T) {
						t.Parallel()
						e.record(t, c, e.runBatch(t, []Case{c})[0])
					})
				default:
					shared = append(shared, c)
				}
			}

			for i, verdict := range e.runBatch(t, shared) {
				e.record(t, shared[i], verdict)
			}
		})
	}
}

func (e *escape) record(t *testing.T, c Case, verdict string) {
	t.Helper()
	switch escaped := strings.HasPrefix(verdict, Escaped); {
	case escaped && c.isOpen(e.tier.Info().Name):
		verdict = Open
	case escaped:
		t.Errorf("%s: %s", c.ID(), verdict)
	case c.isOpen(e.tier.Info().Name):
		t.Errorf("%s is closed: remove the key open and what the documents say", c.ID())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.column[c.ID()] = verdict
}

// runCounted runs a case alone, in a separate sandbox, and also judges its cost for the host.
func (e *escape) runCounted(t *testing.T, c Case) string {
	t.Helper()
	slack := 0
	if s, ok := e.tier.(settling); ok {
		slack = 16
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := lookAtHost(t, e.tier.Info().Name)
	before.slack = slack
	verdict := e.runBatch(t, []Case{c})[0]
	if cost := before.findCost(t); cost != "" && !strings.HasPrefix(verdict, Escaped) {
		return Escaped + ": " + cost
	}
	return verdict
}

// trial is one case that has run.
type trial struct {
	verdict string
	said    string // all output of the sandbox
	watch   *canaries
}

// runBatch runs cases in one sandbox, which it replaces after each case that spoils it. It judges
// the cases after the last sandbox has closed, so that no late touch is missed.
func (e *escape) runBatch(t *testing.T, cases []Case) []string {
	t.Helper()
	trials := make([]trial, len(cases))
	var box *subject
	for i, c := range cases {
		trials[i].watch = newCanaries(t, c.Source+c.Then, e.variable)
		trials[i].watch.hideIn(e.world)
		if box == nil {
			box = e.open(t, c, trials[i].watch)
		}
		if !box.try(t, c, &trials[i]) {
			box.close(t)
			box = nil
		}
	}

	if box != nil {
		box.close(t)
	}
	verdicts := make([]string, len(cases))
	for i, c := range cases {
		verdicts[i] = trials[i].verdict
		if c.keys["ends"] == "variously" && !strings.HasPrefix(verdicts[i], Escaped) && verdicts[i] != NotRoutable {
			verdicts[i] = Contained
		}
		if touched := trials[i].watch.findTouched(t, trials[i].said); touched != "" {
			verdicts[i] = Escaped + ": " + touched
		}
	}

	return verdicts
}

// subject is a sandbox under attack, and the host that it calls.
type subject struct {
	suite *escape
	box   tiers.Sandbox
	kept  bool // the first snippet set a variable

	// Fields for direct:
	t      *testing.T
	watch  *canaries
	cancel context.CancelFunc

	mu      sync.Mutex
	calls   []tiers.Call
	allowed tiers.Config
}

// open starts a sandbox for a case. The subject has no box if the tier rejected the configuration.
func (e *escape) open(t *testing.T, c Case, watch *canaries) *subject {
	t.Helper()
	s := &subject{suite: e, t: t, watch: watch}
	cfg := tiers.Config{
		Host: s, Functions: []tiers.Function{{Name: "ask"}},
		Limits: tiers.Limits{Wall: caseWall, Memory: caseMemory},
	}
	cfg.Out = c.Class == "links"
	if c.Class == "contexts" {
		cfg.Inputs = watch.makeContexts(t)
	}
	if c.Class == "egress" {
		cfg.Hosts = listedHosts()
	}
	if c.isBrief() {
		cfg.Limits.Wall = briefWall
	}
	if c.Class == "hostcalls" {
		cfg.Limits.HostCalls = callsAllowed
	}

	s.allowed = cfg
	if e.change != nil {
		e.change(&cfg, watch.dir)
	}
	var err error
	s.box, err = e.tier.Open(t.Context(), cfg)
	var rejected *tiers.RejectedError
	if err != nil && !errors.As(err, &rejected) {
		t.Fatalf("cannot open a sandbox for %s: %v", c.ID(), err)
	}

	if s.box != nil {
		r, err := s.box.Run(t.Context(), tiers.Job{Source: harm.Marked})
		s.kept = err == nil && r.Status == tiers.StatusOK
	}
	return s
}

func (s *subject) close(t *testing.T) {
	t.Helper()
	if s.box == nil {
		return
	}
	if err := s.box.Close(); err != nil {
		t.Errorf("cannot close the sandbox: %v", err)
	}
}

// mostKept bounds the recorded part of an argument, in bytes.
const mostKept = 1 << 12

// Call answers a host call, and records it for the judge.
func (s *subject) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if err := s.direct(ctx, call); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, arg := range call.Args {
		call.Args[i] = bytes.Clone(arg[:min(len(arg), mostKept)]) // the test itself must use little memory
	}
	s.calls = append(s.calls, call)
	return tiers.Value("1"), nil
}

// try runs a case, and reports whether the sandbox is usable for another case.
func (s *subject) try(t *testing.T, c Case, into *trial) bool {
	t.Helper()
	if s.box == nil {
		into.verdict = NotRoutable
		return true
	}
	before, began := s.copyCalls(), time.Now()
	answered := func() bool { return true }
	if c.Class == "time" || c.Class == "calltrees" {
		beside := s.suite.startNeighbour(t)
		answered = func() bool { return beside.end(t) > 0 }
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.cancel = cancel
	r, err := s.box.Run(ctx, tiers.Job{Source: into.watch.fill(c.Source)})
	took := time.Since(began)
	worked := answered()
	if err == nil && c.Then != "" {
		into.said = joinOutput(r)
		r, err = s.runThen(t, c, into.watch, r)
	}
	var rejected *tiers.RejectedError
	var broken *tiers.BrokenError
	switch {
	case errors.As(err, &rejected):
		into.verdict = NotRoutable
	case ctx.Err() != nil && errors.As(err, &broken) && errors.Is(err, ctx.Err()):
		into.verdict = Contained // as requested
		r.Lost = broken.Lost
	case errors.Is(err, bigtext.ErrChanged) && errors.As(err, &broken):
		into.verdict = Blocked // the caller receives this error instead of a result
		return false
	case err != nil:
		into.verdict = fmt.Sprintf("%s: the tier broke: %v", Escaped, err)
		return false
	case r.Status == tiers.StatusLimit:
		into.verdict = "limit: " + string(r.Limit)
	case r.Status == tiers.StatusRaised:
		into.verdict = Blocked
	default:
		into.verdict = Contained
	}

	into.said += joinOutput(r)
	switch {
	case !worked && rejected == nil:
		into.verdict = Escaped + ": another session stood still"
	case took > s.allowed.Limits.Wall+endsWithin:
		into.verdict = Escaped + ": no limit ended it"
	default:
	}
	if c.Class == "links" && rejected == nil {
		into.verdict = s.checkCollected(t, into)
	}
	if why := s.checkAfter(t, r, rejected != nil, c.needsFreshSandbox() || r.Lost != nil); why != "" {
		into.verdict = Escaped + ": " + why
	}

	for _, call := range s.copyCalls()[len(before):] {
		into.said += call.Function + fmt.Sprint(call)
		if call.Function != "ask" {
			into.verdict = Escaped + ": the host was asked for a function that it does not offer"
		}
	}

	if limit := s.allowed.Limits.HostCalls; limit > 0 && len(s.copyCalls())-len(before) > limit {
		into.verdict = Escaped + ": it made more host calls than allowed"
	}
	t.Logf("%s: %s %s %v, lost %v, %.300q", c.ID(), into.verdict, r.Status, took, r.Lost != nil, into.said)
	return !c.needsFreshSandbox() && (rejected != nil || r.Lost == nil && (r.Status == tiers.StatusOK ||
		r.Status == tiers.StatusRaised))
}

// runThen runs a case's second snippet in another tenant's sandbox. If the first snippet was
// stopped, runThen returns its result.
func (s *subject) runThen(
	t *testing.T, c Case, watch *canaries, first tiers.Result,
) (tiers.Result, error) {
	t.Helper()
	if c.After {
		s.close(t)
	}
	other := s.suite.open(t, c, watch)
	if c.After {
		s.box, s.kept = other.box, other.kept
	} else {
		defer other.close(t)
	}

	watch.words["CANARY_SAID"] = strconv.Quote(strings.TrimSpace(first.Stdout))
	second, err := other.box.Run(t.Context(), tiers.Job{Source: watch.fill(c.Then)})
	if second.Status == tiers.StatusOK && first.Status != tiers.StatusOK {
		first.Stdout += second.Stdout
		return first, err
	}
	return second, err
}

func (s *subject) copyCalls() []tiers.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}
