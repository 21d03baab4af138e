package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/snippet/fairqueue"
	"github.com/rlmhq/rlm/internal/snippet/labels"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// module is the analyser's name in sys.modules.
const module = "_rlm_analyse"

// Preload returns Python source that makes the analyser a module. If a tier can keep the module
// loaded, new sandboxes need not compile it.
func Preload() string {
	sources := []string{tablesSource, analyseSource, kindsSource, reachSource, effortSource}
	literals := make([]string, len(sources))
	for i, source := range sources {
		literals[i] = literal(source)
	}

	return "import sys, types\nown = types.ModuleType('" + module + "')\n" +
		"for text in (" + strings.Join(literals, ", ") + "):" +
		" exec(compile(text, '<analyser>', 'exec'), own.__dict__)\n" +
		"own.analyse('warm = 1')\nsys.modules[own.__name__] = own\n"
}

// The snippets of a sandbox. The first checks whether the analyser is loaded, the second prepares
// it, and every later one is the question. The question does not contain the source to analyse; the
// guest requests the source from the host.
const (
	loaded = "import sys\nprint('" + module + "' in sys.modules)"
	setup  = "import " + module + " as _own\n" +
		"def _answer(): FINAL(_own.analyse(_source()))\n" +
		// Syntax trees have no cycles, so the garbage collector need only run occasionally.
		"import gc\ngc.freeze()\ngc.set_threshold(200_000)\n" +
		// The tier that runs the snippet shows the warnings. Preload must not set this filter,
		// because its filters are in the image of all sandboxes.
		"import warnings\nwarnings.simplefilter('ignore')\n"
	question       = "_answer()"
	sourceFunction = "_source"
)

// pool holds analysing sandboxes, at most one per processor. Tenants take turns.
type pool struct {
	tier  tiers.Tier
	queue *fairqueue.Queue
	works sync.WaitGroup // sandboxes that are analysing

	mu     sync.Mutex // guards idle and closed
	idle   []*worker
	closed bool
}

func newPool(tier tiers.Tier) *pool {
	return &pool{tier: tier, queue: fairqueue.New(runtime.GOMAXPROCS(0), maxWaiting)}
}

var errClosed = errors.New("the analyser is closed")

// analyse returns the verdict on a source, and the size of the analyser's answer in bytes, or 0 if
// the verdict could differ the next time.
func (p *pool) analyse(
	ctx context.Context, source string,
) (v router.Verdict, size int, err error) {
	if err := p.queue.Enter(ctx, labels.Tenant(ctx)); err != nil {
		return router.Verdict{}, 0, err
	}
	defer p.queue.Leave()
	w, err := p.take(ctx)
	if err != nil {
		return router.Verdict{}, 0, err
	}
	defer p.works.Done()

	v, size, err = w.analyse(slots.Without(ctx), source) // p.queue has assigned its place
	if err == nil && size > 0 {
		return v, size, p.giveBack(w)
	}
	return v, size, errors.Join(err, w.sandbox.Close())
}

// take returns an idle worker, or opens one. If it succeeds, the caller must call works.Done.
func (p *pool) take(ctx context.Context) (*worker, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.works.Add(1)
	if last := len(p.idle) - 1; last >= 0 {
		w := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return w, nil
	}
	p.mu.Unlock()

	w, err := newWorker(ctx, p.tier)
	if err != nil {
		p.works.Done()
	}
	return w, err
}

func (p *pool) giveBack(w *worker) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return w.sandbox.Close()
	}
	p.idle = append(p.idle, w)
	return nil
}

func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	var errs []error
	for _, w := range p.idle {
		errs = append(errs, w.sandbox.Close())
	}
	p.idle = nil
	p.mu.Unlock()

	p.works.Wait()
	return errors.Join(errs...)
}

// worker is a sandbox that runs analyse.py. It does not support concurrent use.
type worker struct {
	sandbox tiers.Sandbox
	source  string // the source that the guest receives on request
}

func newWorker(ctx context.Context, tier tiers.Tier) (*worker, error) {
	w := &worker{}
	giveSource := func(context.Context, tiers.Call) (tiers.Value, error) {
		return tiers.Value(literal(w.source)), nil
	}
	sandbox, err := tier.Open(ctx, tiers.Config{
		Host:      tiers.HostFunc(giveSource),
		Functions: []tiers.Function{{Name: sourceFunction}},
		Limits:    limits,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open a sandbox for the analyser: %w", err)
	}

	w.sandbox = sandbox
	if err := w.load(ctx); err != nil {
		return nil, errors.Join(err, sandbox.Close())
	}
	return w, nil
}

// load prepares the sandbox for questions.
func (w *worker) load(ctx context.Context) error {
	isLoaded, err := w.runOwn(ctx, loaded)
	if err == nil && isLoaded != "True\n" {
		_, err = w.runOwn(ctx, Preload())
	}
	if err == nil {
		_, err = w.runOwn(ctx, setup)
	}
	return err
}

// runOwn runs code of the analyser itself.
func (w *worker) runOwn(ctx context.Context, source string) (stdout string, err error) {
	r, err := w.sandbox.Run(ctx, tiers.Job{Source: source})
	if err == nil && r.Status != tiers.StatusOK {
		err = fmt.Errorf("the analyser's code ended with status %q: %s", r.Status, tracebackOf(r))
	}
	return r.Stdout, err
}

// analyse makes the guest analyse source, and returns the size of its answer. If there is no
// answer, the size is 0, and the worker is unusable.
func (w *worker) analyse(
	ctx context.Context, source string,
) (v router.Verdict, size int, err error) {
	w.source = source
	r, err := w.sandbox.Run(ctx, tiers.Job{Source: question})
	w.source = ""

	switch {
	case err != nil:
		return router.Verdict{}, 0, err
	case r.Status == tiers.StatusLimit:
		why := fmt.Sprintf("the analysis of the snippet exceeded the %s limit", r.Limit)
		return router.Verdict{Unknown: why}, 0, nil
	case r.Status == tiers.StatusCrashed:
		return router.Verdict{Unknown: "the snippet broke the parser"}, 0, nil
	case r.Status != tiers.StatusOK || r.Final == nil:
		return router.Verdict{}, 0,
			fmt.Errorf("the analyser ended with status %q: %s", r.Status, tracebackOf(r))
	}

	v, err = decodeVerdict(r.Final.Value)
	return v, len(r.Final.Value), err
}

func tracebackOf(r tiers.Result) string {
	if r.Exception == nil {
		return "no exception"
	}
	return r.Exception.Traceback
}

// literal returns a string as JSON, which is also a Python literal. Bytes that are not UTF-8 become
// lone surrogates, which is how the tiers pass them to the parser.
func literal(text string) string {
	if utf8.ValidString(text) {
		data, err := json.Marshal(text)
		if err != nil {
			panic("python: a string cannot be encoded as JSON: " + err.Error())
		}
		return string(data)
	}

	var b strings.Builder
	b.WriteByte('"')

	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\udc%02x`, text[i])
		} else {
			part := literal(text[i : i+size])
			b.WriteString(part[1 : len(part)-1])
		}

		i += size
	}

	return b.String() + `"`
}
