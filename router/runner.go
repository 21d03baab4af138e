package router

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"github.com/rlmhq/rlm/internal/inflight"
	"github.com/rlmhq/rlm/tiers"
)

// RunnerConfig says what a Runner works with.
type RunnerConfig struct {
	// Tiers are those to choose from. Their names differ.
	Tiers []tiers.Tier
	// Analysers by language. A snippet of a language without one counts as not
	// understood.
	Analysers map[tiers.Language]Analyser
	// Policy is what the caller allows.
	Policy Policy
	// Config is what every sandbox of the session gets. All share its inputs. Its
	// Hosts are the policy's.
	Config tiers.Config
	// Probes are shared with other sessions, nil for the runner's own.
	Probes *Probes
	// Log receives moves and rejections. The zero value writes nothing.
	Log zerolog.Logger
}

// Runner runs the snippets of one session, each in the cheapest tier that can
// run it. It has one owner: its methods must not be called concurrently.
type Runner struct {
	cfg        RunnerConfig
	host       tiers.Host // the caller's; tiers get a door to it
	gate       *inflight.Gate
	candidates []Candidate // of cfg.Tiers, same order
	probed     []bool
	spaces     map[tiers.Language]*space
	closed     bool
}

// space is the namespace of one language: the sandbox that holds it, nil before
// the first snippet.
type space struct {
	language tiers.Language
	sandbox  tiers.Sandbox
	tier     string
	used     bool  // it has run a snippet, so there is something to move
	bytes    int64 // the most memory that its last snippet had
}

var errClosed = errors.New("the session is closed")

// NewRunner returns a runner. It neither probes nor opens a tier yet.
func NewRunner(cfg RunnerConfig) (*Runner, error) {
	if err := cfg.Policy.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.Config.Limits.Validate(); err != nil {
		return nil, err
	}
	if cfg.Probes == nil {
		cfg.Probes = NewProbes()
	}
	cfg.Config.Hosts = cfg.Policy.Hosts
	r := &Runner{
		cfg: cfg, host: cfg.Config.Host, gate: inflight.New(cfg.Config.Limits.WithDefaults()),
		spaces: map[tiers.Language]*space{},
	}
	if r.host != nil {
		r.cfg.Config.Host = door{r.host}
	}
	for _, tier := range cfg.Tiers {
		info := tier.Info()
		if _, twice := r.find(info.Name); twice {
			return nil, fmt.Errorf("there are two tiers with the name %q", info.Name)
		}
		r.candidates = append(r.candidates, Candidate{Info: info})
	}
	r.probed = make([]bool, len(r.candidates))
	return r, nil
}

// find returns the index of a tier.
func (r *Runner) find(name string) (int, bool) {
	i := slices.IndexFunc(r.candidates, func(c Candidate) bool { return c.Info.Name == name })
	return i, i >= 0
}

// space returns the namespace of a language.
func (r *Runner) space(language tiers.Language) *space {
	s := r.spaces[language]
	if s == nil {
		s = &space{language: language}
		r.spaces[language] = s
	}
	return s
}

// Home returns the tier in which the namespace of a language lives, empty if no
// snippet of it has run yet. An empty language is Python.
func (r *Runner) Home(language tiers.Language) string {
	if s := r.spaces[languageOf(language)]; s != nil && s.used {
		return s.tier
	}
	return ""
}

// Collect writes the files of the session's [tiers.OutFolder] into an empty folder
// of the host. A session that has run nothing has none.
func (r *Runner) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	if r.closed {
		return tiers.Collected{}, errClosed
	}
	s := r.spaces[tiers.Python]
	if s == nil || s.sandbox == nil {
		return tiers.Collected{}, nil
	}
	collector, ok := s.sandbox.(tiers.Collector)
	if !ok {
		return tiers.Collected{}, fmt.Errorf("cannot take files out of tier %s: it has no place for them", s.tier)
	}
	return collector.Collect(ctx, dir)
}

func languageOf(language tiers.Language) tiers.Language {
	if language == "" {
		return tiers.Python
	}
	return language
}

// Explain returns the plan for a snippet and runs nothing. Unlike Run it probes
// every tier that might be used. No tier is no error here: see [Plan.Err].
func (r *Runner) Explain(ctx context.Context, job tiers.Job) (Plan, error) {
	if r.closed {
		return Plan{}, errClosed
	}
	language := languageOf(job.Language)
	v, err := r.analyse(ctx, language, job.Source)
	if err != nil {
		return Plan{}, err
	}
	return r.plan(ctx, v, r.state(language), func(*Plan) int { return len(r.candidates) })
}

// analyse returns the analyser's verdict. An analyser that broke knows nothing,
// and a route is no wall: the snippet counts as not understood.
//
// A tier that the policy pins gets its snippets unseen, if it runs the whole
// language: what it has not, the snippet will meet as an exception.
func (r *Runner) analyse(ctx context.Context, language tiers.Language, source string) (Verdict, error) {
	if i, known := r.find(r.cfg.Policy.Pin); known && r.candidates[i].Info.Has(tiers.FeatureDynamic) {
		return Verdict{Unknown: "the policy pins the tier"}, nil
	}
	analyser := r.cfg.Analysers[language]
	if analyser == nil {
		return Verdict{Unknown: "there is no analyser for the language"}, nil
	}
	v, err := analyser.Analyse(ctx, source)
	if err == nil {
		return v, nil
	}
	if ctx.Err() != nil {
		return Verdict{}, ctx.Err()
	}
	r.cfg.Log.Warn().Err(err).Str("language", string(language)).Msg("the analyser broke")
	return Verdict{Unknown: "the analyser broke: " + err.Error()}, nil
}

// state is where the namespace of a language stands.
func (r *Runner) state(language tiers.Language) State {
	s := State{Language: language, Wants: wants(&r.cfg.Config)}
	space := r.spaces[language]
	switch {
	case space == nil || space.sandbox == nil:
	case space.used:
		s.Home, s.Bytes = space.tier, space.bytes
		_, movable := space.sandbox.(tiers.Exporter)
		s.Fixed = !movable
	default:
		s.Open = []string{space.tier}
	}
	return s
}

// wants are the features without which a tier rejects every snippet of a session.
func wants(cfg *tiers.Config) (features []tiers.Feature) {
	if cfg.Deterministic {
		features = append(features, tiers.FeatureDeterminism)
	}
	if f := cfg.Limits.Fuel; f != 0 && f != tiers.DefaultLimits().Fuel {
		features = append(features, tiers.FeatureFuel)
	}
	return features
}

// plan decides, and probes the tiers at the front of the chain until the first
// of them, as many as depth says, are known to be usable: a probe may be slow,
// and most snippets never need another tier.
func (r *Runner) plan(ctx context.Context, v Verdict, s State, depth func(*Plan) int) (Plan, error) {
	for {
		plan := r.cfg.Policy.Plan(v, r.candidates, s)
		i := r.unprobed(&plan, depth(&plan))
		if i < 0 {
			return plan, nil
		}
		unusable, err := r.cfg.Probes.ask(ctx, r.candidates[i].Info.Name, r.cfg.Tiers[i])
		if err != nil {
			return Plan{}, err
		}
		// What modules it has may be known only now.
		r.candidates[i] = Candidate{Info: r.cfg.Tiers[i].Info(), Unusable: unusable}
		r.probed[i] = true
	}
}

// unprobed returns the first of the chain's first tiers that was not probed yet,
// -1 if there is none.
func (r *Runner) unprobed(plan *Plan, depth int) int {
	for _, step := range plan.Chain[:min(depth, len(plan.Chain))] {
		if i, _ := r.find(step.Tier); !r.probed[i] {
			return i
		}
	}
	return -1
}

// Fork returns an independent runner with copies of all namespaces. It has the
// same policy, tiers and host.
func (r *Runner) Fork(ctx context.Context) (*Runner, error) {
	if r.closed {
		return nil, errClosed
	}
	forked := &Runner{
		cfg: r.cfg, host: r.host, gate: inflight.New(r.cfg.Config.Limits.WithDefaults()), spaces: map[tiers.Language]*space{},
		candidates: slices.Clone(r.candidates), probed: slices.Clone(r.probed),
	}
	for language, from := range r.spaces {
		if from.sandbox == nil || !from.used {
			continue
		}
		sandbox, err := r.copyOf(ctx, from)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot fork the session in tier %s: %w", from.tier, err), forked.Close())
		}
		to := *from
		to.sandbox = sandbox
		forked.spaces[language] = &to
	}
	return forked, nil
}

// Close ends all sandboxes. It is idempotent.
func (r *Runner) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for _, s := range r.spaces {
		if s.sandbox != nil {
			errs = append(errs, s.sandbox.Close())
		}
	}
	return errors.Join(errs...)
}
