package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/rlmhq/rlm/internal/data/pyfolder"
	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/labels"
	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	snippets "github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Config configures a Runner.
type Config struct {
	// Tiers are the tiers to choose from. Their names must differ.
	Tiers []tiers.Tier
	// Analysers are keyed by language. A snippet in a language without an analyser is treated as
	// not understood.
	Analysers map[tiers.Language]Analyser
	// Policy is the caller's policy.
	Policy router.Policy
	// Config is the configuration of every sandbox of the session. All sandboxes share its inputs.
	// Its Hosts are those of the policy.
	Config tiers.Config
	// Probes may be shared with other sessions; nil means the runner's own.
	Probes *Probes
	// Log receives moves and rejections, with the labels of Config. It may be nil.
	Log *slog.Logger
}

// Analyser determines the needs of snippets of one language. It is safe for concurrent use and
// never runs a snippet. An error means that the analyser itself broke.
type Analyser interface {
	Analyse(ctx context.Context, source string) (router.Verdict, error)
}

// Runner runs the snippets of one session, each in the cheapest tier that can run it. Its methods
// must not be called concurrently.
type Runner struct {
	cfg        Config
	packages   *pyfolder.Folder // the session's packages; may be nil
	host       tiers.Host       // the caller's; tiers reach it through a door
	gate       *hostcall.Gate
	candidates []router.Candidate // one for each of cfg.Tiers, in the same order
	probed     []bool
	spaces     map[tiers.Language]*space
	adopted    bool // the inputs are of package bigtext: see adoptInputs
	closed     bool

	using sync.Mutex // held by the current call
}

// space is the namespace of one language.
type space struct {
	language tiers.Language
	sandbox  tiers.Sandbox // holds the namespace; nil before the first snippet
	tier     string
	used     bool  // a snippet has run, so there is something to move
	settled  bool  // the namespace does not leave its home for speed: see router.Standing
	bytes    int64 // peak memory of its last snippet
	ran      int   // number of snippets run in it
	restored bool  // the namespace holds definitions from another session: see router.Standing
	// later holds the needs of definitions that no snippet has used yet: see Needs.Later.
	later map[string]*router.Needs
}

// note records the definitions of a snippet that has run.
func (s *space) note(needs *router.Needs) {
	if needs == nil {
		return
	}
	later := maps.Clone(s.later) // shared with forks
	for _, names := range [...][]string{needs.Writes, needs.Deletes} {
		for _, name := range names {
			delete(later, name)
		}
	}
	if len(needs.Later) > 0 && later == nil {
		later = map[string]*router.Needs{}
	}
	maps.Copy(later, needs.Later)
	s.later = later
}

// New returns a runner. It does not probe or open any tier yet.
func New(cfg Config) (*Runner, error) {
	if err := cfg.Policy.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.Config.Limits.Validate(); err != nil {
		return nil, err
	}
	if err := labels.Check(cfg.Config.Labels); err != nil {
		return nil, err
	}

	if cfg.Probes == nil {
		cfg.Probes = &Probes{}
	}
	cfg.Log = labels.AddTo(cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), cfg.Config.Labels)
	cfg.Policy = clonePolicy(cfg.Policy) // the caller may change the original
	cfg.Config.Hosts = cfg.Policy.Hosts
	cfg.Config.Labels = maps.Clone(cfg.Config.Labels)
	cfg.Config.Mounts = slices.Clone(cfg.Config.Mounts)
	cfg.Config.Inputs = slices.Clone(cfg.Config.Inputs)
	cfg.Config.Functions = slices.Clone(cfg.Config.Functions)

	var packages *pyfolder.Folder
	if cfg.Config.Packages != nil {
		var err error
		if packages, err = pyfolder.Open(cfg.Config.Packages); err != nil {
			return nil, err
		}
		cfg.Config.Packages = packages // so the tiers need not list it again
	}

	r := &Runner{
		cfg: cfg, packages: packages, host: cfg.Config.Host,
		gate:   hostcall.New(cfg.Config.Limits.WithDefaults()),
		spaces: map[tiers.Language]*space{},
	}
	if r.host != nil {
		r.cfg.Config.Host = door{r.host}
	}

	for _, tier := range cfg.Tiers {
		info := r.describe(tier)
		if _, twice := r.findTier(info.Name); twice {
			return nil, fmt.Errorf("two tiers have the name %q", info.Name)
		}
		r.candidates = append(r.candidates, router.Candidate{Info: info})
	}

	r.probed = make([]bool, len(r.candidates))
	return r, nil
}

// clonePolicy returns a copy that shares nothing with p.
func clonePolicy(p router.Policy) router.Policy {
	p.Tiers, p.Modules, p.Hosts = slices.Clone(p.Tiers), slices.Clone(p.Modules), slices.Clone(p.Hosts)
	return p
}

// describe returns a tier's description for the session, including the modules of the session's
// packages.
func (r *Runner) describe(tier tiers.Tier) tiers.Info {
	info := tier.Info()
	if r.packages == nil || info.Modules == nil || !info.Has(tiers.FeaturePackages) {
		return info
	}
	info.Modules = maps.Clone(info.Modules) // the original is shared by all sessions
	for _, name := range r.packages.Modules() {
		info.Modules[name] = true
	}
	return info
}

// findTier returns the index of a tier.
func (r *Runner) findTier(name string) (int, bool) {
	i := slices.IndexFunc(r.candidates, func(c router.Candidate) bool { return c.Info.Name == name })
	return i, i >= 0
}

// spaceOf returns the namespace of a language.
func (r *Runner) spaceOf(language tiers.Language) *space {
	s := r.spaces[language]
	if s == nil {
		s = &space{language: language}
		r.spaces[language] = s
	}
	return s
}

// Home returns the tier that holds the namespace of a language, or an empty string if no snippet in
// it has run yet. An empty language means Python.
func (r *Runner) Home(language tiers.Language) string {
	if s := r.spaces[languageOf(language)]; s != nil && s.used {
		return s.tier
	}
	return ""
}

func languageOf(language tiers.Language) tiers.Language {
	if language == "" {
		return tiers.Python
	}
	return language
}

// Collect writes the files of the session's [tiers.OutFolder] into an empty folder of the host. A
// session that has not run a snippet has no files.
func (r *Runner) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	leave, err := r.enter()
	if err != nil {
		return tiers.Collected{}, err
	}
	defer leave()
	var all tiers.Collected
	for _, language := range []tiers.Language{tiers.Python, tiers.Go} {
		s := r.spaces[language]
		if s == nil || s.sandbox == nil {
			continue
		}
		collector, ok := s.sandbox.(tiers.Collector)
		if !ok {
			return all, fmt.Errorf("cannot collect files from tier %s: it has no folder for them", s.tier)
		}

		got, err := collector.Collect(ctx, dir)
		all = outfiles.Join(all, got)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Explain returns the plan for a snippet without running anything. Unlike Run, it probes every tier
// that might be used. A plan without a tier is not an error here: see [Plan.Err].
func (r *Runner) Explain(ctx context.Context, job tiers.Job) (router.Plan, error) {
	leave, err := r.enter()
	if err != nil {
		return router.Plan{}, err
	}
	defer leave()
	ctx = labels.WithTenant(ctx, r.cfg.Config.Labels)
	language := languageOf(job.Language)
	v, err := r.analyse(ctx, language, job.Source)
	if err != nil {
		return router.Plan{}, err
	}
	return r.planUsable(ctx, v, r.stateOf(language), func(*router.Plan) int { return len(r.candidates) })
}

// analyse returns the analyser's verdict. If the analyser breaks, the snippet is treated as not
// understood, because security does not depend on the route.
//
// If the policy pins a tier that runs the whole language, snippets are not analysed; a snippet that
// needs something that the tier lacks gets an exception.
func (r *Runner) analyse(
	ctx context.Context, language tiers.Language, source string,
) (router.Verdict, error) {
	if i, known := r.findTier(r.cfg.Policy.Pin); known && abilities.RunsWholeLanguage(&r.candidates[i].Info) {
		return router.Verdict{Unknown: "the policy pins the tier"}, nil
	}
	analyser := r.cfg.Analysers[language]
	if analyser == nil {
		return router.Verdict{Unknown: "no analyser supports the language"}, nil
	}

	// An analyser may use its own sandbox, which must not use the snippet's tape.
	v, err := analyser.Analyse((*snippets.Tape)(nil).With(ctx), source)
	if err == nil {
		return v, nil
	}
	if ctx.Err() != nil {
		return router.Verdict{}, ctx.Err()
	}

	r.cfg.Log.Warn("the analyser broke", "error", err, "language", string(language))
	return router.Verdict{Unknown: "the analyser broke: " + err.Error()}, nil
}

// stateOf returns the standing of a language's namespace.
func (r *Runner) stateOf(language tiers.Language) router.Standing {
	s := router.Standing{
		Language: language, Wants: wantedFeatures(&r.cfg.Config),
		MaxActive: r.cfg.Config.Limits.WithDefaults().Active,
	}
	space := r.spaces[language]
	if space == nil {
		return s
	}

	s.Later, s.Restored = space.later, space.restored
	switch {
	case space.sandbox == nil:
	case space.used:
		_, movable := space.sandbox.(tiers.Exporter)
		s.Home, s.Bytes, s.Fixed, s.Ran = space.tier, space.bytes, !movable, space.ran
		s.Settled = space.settled
	default:
		s.Open = []string{space.tier}
	}
	return s
}

// wantedFeatures returns the features without which a tier rejects every snippet of a session.
func wantedFeatures(cfg *tiers.Config) (features []tiers.Feature) {
	if cfg.Deterministic {
		features = append(features, tiers.FeatureDeterminism)
	}
	if cfg.Out {
		features = append(features, tiers.FeatureOut)
	}
	if f := cfg.Limits.Fuel; f != 0 && f != tiers.DefaultLimits().Fuel {
		features = append(features, tiers.FeatureFuel)
	}
	return features
}

// planUsable plans the snippet, and probes tiers at the front of the chain until as many of the
// first ones as depth requires are known to be usable. It probes no others, because a probe may be
// slow, and most snippets never need another tier.
func (r *Runner) planUsable(
	ctx context.Context, v router.Verdict, s router.Standing, depth func(*router.Plan) int,
) (router.Plan, error) {
	for {
		plan := r.cfg.Policy.Plan(v, r.candidates, s)
		i := r.findUnprobed(&plan, depth(&plan))
		if i < 0 && len(plan.Chain) == 0 && plan.Exception == nil {
			// The refusals must not give advice that would not help. Code that is not valid gets no
			// refusals.
			i = r.findUnprobedWhere(r.lacksRequest)
		}
		if i < 0 {
			return plan, nil
		}
		if err := r.probe(ctx, i); err != nil {
			return router.Plan{}, err
		}
	}
}

// probe checks whether a tier is usable. The tier's modules may be known only afterwards.
func (r *Runner) probe(ctx context.Context, i int) error {
	unusable, err := r.cfg.Probes.ask(ctx, r.candidates[i].Info.Name, r.cfg.Tiers[i])
	if err != nil {
		return err
	}
	r.candidates[i] = router.Candidate{Info: r.describe(r.cfg.Tiers[i]), Unusable: unusable}
	r.probed[i] = true
	return nil
}

// findUnprobedWhere returns the first unprobed tier for which a condition holds, or -1.
func (r *Runner) findUnprobedWhere(holds func(*tiers.Info) bool) int {
	for i := range r.candidates {
		if !r.probed[i] && holds(&r.candidates[i].Info) {
			return i
		}
	}
	return -1
}

// lacksRequest reports whether the policy refuses a tier only because it runs on request alone.
func (r *Runner) lacksRequest(info *tiers.Info) bool {
	p := &r.cfg.Policy
	return info.OnRequest && p.Pin == "" && len(p.Tiers) == 0 && !p.AllowLocal
}

// findUnprobed returns the first unprobed tier among the chain's first tiers, or -1 if all were
// probed.
func (r *Runner) findUnprobed(plan *router.Plan, depth int) int {
	for _, step := range plan.Chain[:min(depth, len(plan.Chain))] {
		if i, _ := r.findTier(step.Tier); !r.probed[i] {
			return i
		}
	}
	return -1
}

// Fork returns an independent runner with copies of all namespaces, and with the same policy, tiers
// and host.
func (r *Runner) Fork(ctx context.Context) (*Runner, error) {
	leave, err := r.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	forked := &Runner{
		cfg: r.cfg, packages: r.packages, host: r.host, adopted: r.adopted,
		gate:       hostcall.New(r.cfg.Config.Limits.WithDefaults()),
		spaces:     map[tiers.Language]*space{},
		candidates: slices.Clone(r.candidates), probed: slices.Clone(r.probed),
	}

	for language, from := range r.spaces {
		if from.sandbox == nil || !from.used {
			continue
		}
		sandbox, err := r.copySandbox(ctx, from)
		if err != nil {
			err = fmt.Errorf("cannot fork the session in tier %s: %w", from.tier, err)
			return nil, errors.Join(err, forked.Close())
		}

		to := *from
		to.sandbox = sandbox
		forked.spaces[language] = &to
	}

	return forked, nil
}

// Close ends all sandboxes. It is idempotent.
func (r *Runner) Close() error {
	leave, err := r.enter()
	switch {
	case errors.Is(err, errClosed):
		return nil
	case err != nil:
		return err
	}
	defer leave()
	r.closed = true

	var errs []error
	for _, s := range r.spaces {
		if s.sandbox != nil {
			errs = append(errs, s.sandbox.Close())
		}
	}
	return errors.Join(errs...)
}
