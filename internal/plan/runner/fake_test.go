package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/fourtiers"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a tier in memory. Its snippets are statements, one per line:
//
//	set NAME VALUE    binds a variable
//	show NAME         writes a variable to stdout
//	print TEXT        writes to stdout
//	call F JSON       makes a host call and waits for it
//	start F JSON      makes a host call and does not wait
//	await             waits for the started calls
//	need MODULE       rejects the snippet if the tier lacks the module and the
//	                  job is rejectable, else raises
//	reject            rejects the snippet, asked or not
//	break             breaks the tier
//	hang              waits for the context
type fake struct {
	info   tiers.Info
	probe  func(context.Context) error
	opens  error // error of Open
	imp    error // error of Import
	exp    error // error of Export
	left   []tiers.Left
	single bool // its sandboxes can neither export nor import
	noFork bool
	// rewrite changes the statements of a snippet, so that the snippet behaves differently when
	// repeated.
	rewrite func(source string) string

	mu     sync.Mutex
	probes int
	opened int
	closed int
	jobs   []tiers.Job
	inputs []*tiers.Input
	spoken []tiers.Language // languages for which sandboxes were opened
}

func (f *fake) Info() tiers.Info { return f.info }

func (f *fake) Probe(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probes++
	if f.probe != nil {
		return f.probe(ctx)
	}
	return nil
}

func (f *fake) Warm(context.Context) error { return nil }

func (f *fake) Close() error { return nil }

func (f *fake) Open(_ context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opens != nil {
		return nil, f.opens
	}
	f.opened++
	f.spoken = append(f.spoken, cfg.Language)
	for i := range cfg.Inputs {
		f.inputs = append(f.inputs, &cfg.Inputs[i])
	}
	core := &fakeSandbox{tier: f, cfg: cfg, vars: map[string]string{}}
	switch {
	case f.single:
		return core, nil
	case f.noFork:
		return &fakeMover{core}, nil
	}
	return &fakeForker{fakeMover{core}}, nil
}

func (f *fake) live() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened - f.closed
}

type fakeSandbox struct {
	tier    *fake
	cfg     tiers.Config
	vars    map[string]string
	snippet int
	closed  bool
}

// fakeMover can move, and fakeForker can also be copied.
type (
	fakeMover  struct{ *fakeSandbox }
	fakeForker struct{ fakeMover }
)

func (s *fakeSandbox) Close() error {
	s.tier.mu.Lock()
	defer s.tier.mu.Unlock()
	if !s.closed {
		s.tier.closed++
	}
	s.closed = true
	return nil
}

func (s *fakeMover) Export(context.Context) (tiers.State, error) {
	if s.tier.exp != nil {
		return tiers.State{}, s.tier.exp
	}
	data, err := json.Marshal(s.vars)
	return tiers.State{
		Format:  "fake",
		From:    s.tier.info.Name,
		Snippet: s.snippet,
		Data:    data,
		Left:    s.tier.left,
	}, err
}

func (s *fakeMover) Import(_ context.Context, state tiers.State) (tiers.Report, error) {
	if s.tier.imp != nil {
		return tiers.Report{}, s.tier.imp
	}
	s.snippet = state.Snippet
	err := json.Unmarshal(state.Data, &s.vars)
	return tiers.Report{Moved: len(s.vars), Left: state.Left}, err
}

func (s *fakeForker) Fork(context.Context) (tiers.Sandbox, error) {
	s.tier.mu.Lock()
	defer s.tier.mu.Unlock()
	s.tier.opened++
	core := *s.fakeSandbox
	core.vars = maps.Clone(s.vars)
	return &fakeForker{fakeMover{&core}}, nil
}

// fakeRun is a running snippet.
type fakeRun struct {
	*fakeSandbox
	ctx    context.Context //nolint:containedctx // as long as the run
	job    tiers.Job
	vars   map[string]string
	result tiers.Result
	calls  int
	async  sync.WaitGroup
}

var errBroken = errors.New("it fell apart")

// errRaised ends a snippet with an exception.
var errRaised = errors.New("raised")

// Run runs a snippet. Like the real tiers, it cancels calls that are still running when the snippet
// ends, and waits for them.
func (s *fakeSandbox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	s.tier.mu.Lock()
	s.tier.jobs = append(s.tier.jobs, job)
	s.tier.mu.Unlock()
	s.snippet++
	if s.tier.rewrite != nil {
		job.Source = s.tier.rewrite(job.Source)
	}
	if job.Source == "" { // for the benchmark
		return tiers.Result{Status: tiers.StatusOK}, nil
	}
	callCtx, cancel := context.WithCancel(ctx)
	r := &fakeRun{fakeSandbox: s, ctx: callCtx, job: job, vars: maps.Clone(s.vars)}
	err := r.run()
	cancel()
	r.async.Wait()
	r.result.Status = tiers.StatusOK
	var rejected *tiers.RejectedError
	switch {
	case errors.As(err, &rejected):
		s.snippet--
		return tiers.Result{}, err
	case ctx.Err() != nil:
		return r.result, &tiers.BrokenError{
			Tier:    s.tier.info.Name,
			Effects: tiers.EffectsRan,
			Lost:    &tiers.Loss{Snippets: []int{s.snippet}},
			Err:     context.Cause(ctx),
		}
	case errors.Is(err, errRaised):
		r.result.Status = tiers.StatusRaised
		message := strings.TrimPrefix(err.Error(), "raised: ")
		kind := "Error"
		if strings.HasPrefix(message, "No module") {
			kind = "ModuleNotFoundError"
		}
		r.result.Exception = &tiers.Exception{
			Type: kind, Message: message, Traceback: kind + ": " + message + "\n",
		}
	case err != nil:
		return r.result, err
	}
	s.vars = r.vars
	return r.result, nil
}

func (r *fakeRun) run() error {
	for line := range strings.Lines(r.job.Source) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(words) > 0 && words[0] != "" {
			if err := r.statement(words[0], append(words[1:], "", "")); err != nil {
				return err
			}
		}
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
	}
	return nil
}

func (r *fakeRun) statement(verb string, args []string) error {
	name := r.tier.info.Name
	switch verb {
	case "#": // for the analyser
	case "set":
		r.vars[args[0]] = args[1]
	case "show":
		r.write(r.vars[args[0]])
	case "print":
		r.write(args[0])
	case "call":
		r.calls++
		return r.call(r.calls, args)
	case "start":
		r.calls++
		n := r.calls
		r.async.Go(func() { _ = r.call(n, args) })
	case "await":
		r.async.Wait()
	case "need":
		return r.need(args[0])
	case "reject":
		return &tiers.RejectedError{
			Tier:    "itself",
			Reason:  "it will not",
			Effects: tiers.EffectsRan,
		}
	case "break":
		return fmt.Errorf("%s fell apart", name)
	case "hang":
		<-r.ctx.Done()
		return r.ctx.Err()
	default:
		return fmt.Errorf("%w: %s", errRaised, verb)
	}
	return nil
}

func (r *fakeRun) write(text string) {
	r.result.Stdout += text + "\n"
	if r.job.Stdout != nil {
		fmt.Fprintln(r.job.Stdout, text)
	}
}

func (r *fakeRun) call(ordinal int, args []string) error {
	v, err := r.cfg.Host.Call(r.ctx, tiers.Call{
		Function: args[0], Args: []tiers.Value{tiers.Value(args[1])},
		Snippet: r.snippet, Ordinal: ordinal,
	})
	if err != nil {
		return fmt.Errorf("%w: %s", errRaised, err.Error())
	}
	if args[0] != "slow" {
		r.write(string(v))
	}
	return nil
}

func (r *fakeRun) need(module string) error {
	if r.tier.info.Modules[module] {
		return nil
	}
	if r.job.Rejectable {
		return &tiers.RejectedError{
			Tier:    r.tier.info.Name,
			Missing: module,
			Reason:  "there is no module " + module,
			Effects: tiers.EffectsRan,
		}
	}
	return fmt.Errorf("%w: No module named '%s'", errRaised, module)
}

// The four tiers of the project, with the properties that the router uses.

func newInterp() *fake { return &fake{info: fourtiers.Interp()} }

func newWasm() *fake { return &fake{info: fourtiers.Wasm()} }

func newDocker() *fake { return &fake{info: fourtiers.Docker()} }

func newLocal() *fake { return &fake{info: fourtiers.Local()} }

// analyserFunc adapts a function to Analyser.
type analyserFunc func(context.Context, string) (router.Verdict, error)

func (f analyserFunc) Analyse(ctx context.Context, source string) (router.Verdict, error) {
	return f(ctx, source)
}

// reader analyses lines that begin with '#': "# import M", "# dynamic", "# feature F", "# computes
// 4s", "# invalid", "# unknown", "# reads NAME", "# writes NAME", "# later NAME M" for a function
// that imports M. It ignores all other lines.
func reader(_ context.Context, source string) (router.Verdict, error) {
	needs := &router.Needs{}
	number := 0
	for line := range strings.Lines(source) {
		number++
		words := append(strings.Fields(line), "", "", "")
		if words[0] != "#" {
			continue
		}
		switch words[1] {
		case "import":
			needs.Imports = append(needs.Imports,
				router.Import{
					Module: words[2], Line: number,
					Guarded: words[3] == "guarded", Unlikely: words[3] == "unlikely",
				})
		case "dynamic":
			needs.Features = append(needs.Features,
				router.FeatureNeed{Feature: tiers.FeatureDynamic, Why: "exec", Line: number})
		case "feature":
			needs.Features = append(needs.Features,
				router.FeatureNeed{Feature: tiers.Feature(words[2]), Why: "it", Line: number})
		case "invalid":
			return router.Verdict{
				Invalid: &tiers.Exception{
					Type:    "SyntaxError",
					Message: "invalid syntax (<snippet>, line 1)",
					Traceback: "  File \"<snippet>\", line 1\n    # invalid \"<snippet>\"\n" +
						"SyntaxError: invalid syntax\n",
				},
			}, nil
		case "reads":
			needs.Reads = append(needs.Reads, words[2])
		case "writes":
			needs.Writes = append(needs.Writes, words[2])
		case "later":
			needs.Writes = append(needs.Writes, words[2])
			needs.Later = map[string]*router.Needs{words[2]: {
				Imports: []router.Import{{Module: words[3], Line: number}},
			}}
		case "computes":
			var err error
			if needs.Computes, err = time.ParseDuration(words[2]); err != nil {
				return router.Verdict{}, err
			}
		case "unknown":
			return router.Verdict{Unknown: "too deep"}, nil
		case "broken":
			return router.Verdict{}, errors.New("no stack left")
		}
	}
	return router.Verdict{Needs: needs}, nil
}

// session is a Runner over fake tiers.
type session struct {
	*Runner
	t *testing.T
}

func start(t *testing.T, cfg Config, list ...*fake) *session {
	t.Helper()
	for _, f := range list {
		cfg.Tiers = append(cfg.Tiers, f)
	}
	cfg.Analysers = map[tiers.Language]Analyser{
		tiers.Python: analyserFunc(reader),
		tiers.Go:     analyserFunc(reader),
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		for _, f := range list {
			if n := f.live(); n != 0 {
				t.Errorf("%d sandboxes of tier %s are left open", n, f.info.Name)
			}
		}
	})
	return &session{r, t}
}

// runs runs a snippet, which must end with a result.
func (s *session) runs(source string) router.Result {
	s.t.Helper()
	result, err := s.Run(s.t.Context(), tiers.Job{Source: source})
	if err != nil {
		s.t.Fatalf("%q: %v", source, err)
	}
	return result
}

// fails runs a snippet, which must end with an error.
func (s *session) fails(source string) (router.Result, error) {
	s.t.Helper()
	result, err := s.Run(s.t.Context(), tiers.Job{Source: source})
	if err == nil {
		s.t.Fatalf("%q ends as %s", source, result.Status)
	}
	return result, err
}

// in runs a snippet, which must run in the given tier and write the given output.
func (s *session) in(tier, source, stdout string) router.Result {
	s.t.Helper()
	result := s.runs(source)
	if result.Tier != tier || result.Stdout != stdout || result.Status != tiers.StatusOK {
		s.t.Errorf("%q ran in %q, %s, writes %q (%v); want %q, ok, %q",
			source, result.Tier, result.Status, result.Stdout, result.Exception, tier, stdout)
	}
	return result
}

// broke checks the kind of an error, and returns the loss that it reports.
func broke(t *testing.T, err error, tier string, effects tiers.Effects) *tiers.Loss {
	t.Helper()
	var broken *tiers.BrokenError
	if !errors.As(err, &broken) || broken.Tier != tier || broken.Effects != effects {
		t.Fatalf("the error is %#v (%v), want one of tier %s with effects %s",
			err, err, tier, effects)
	}
	return broken.Lost
}
