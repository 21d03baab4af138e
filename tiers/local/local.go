// Package local is the tier that runs the host's CPython, and Go from the host's compiler,
// in a jail.
//
// It offers native speed and the installed packages. The kernel enforces its wall: package jail
// surrounds each sandbox with namespaces, a separate read-only file tree, Landlock, seccomp and
// limits. Each sandbox attests them from inside before its first snippet.
//
// The runtime in the guest is that of package pykernel, as in tier wasm. Before a snippet, the
// process forks. The parent sleeps, and the session returns to it if the snippet must be killed.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// Name is the tier's name.
const Name = "local"

// Options configure the tier. The zero value works.
type Options struct {
	// Python is the interpreter, as a path or a name to look up. Empty means python3. It must
	// be CPython 3.9 or newer.
	Python string
	// Folders are host folders that snippets can read in addition to those of Python. A folder
	// that contains a home directory, keys, .env or .git is an error.
	Folders []string
	// Progress, if set, is called before the first sandbox starts, with a description of the shown
	// files and folders.
	Progress func(what string)
	// Go is the Go toolchain, as a path or a name to look up; empty means go. GoCache is the
	// folder of the compiled standard library; empty means a folder in the user's cache
	// directory.
	Go, GoCache string
	// Warm is the number of sandboxes kept ready for sessions with the default limits, once
	// Warm or a session has started one. Zero means one, -1 none.
	Warm int
	// AllowNested accepts a jail without namespaces: Landlock, seccomp and limits only.
	AllowNested bool
	// AllowSampled accepts a machine on which this user has no cgroup. The memory of a sandbox
	// is then sampled, and the samples miss some of the memory that the kernel holds for it.
	AllowSampled bool
	// Inject holds the headers that are added to snippets' requests to a host, by HOST:PORT.
	// Snippets cannot read these headers: see docs/why/egress.md.
	Inject map[string]http.Header
	// Log receives diagnostics for developers of the tier.
	Log *slog.Logger
}

// tier runs the host's CPython in jails.
type tier struct {
	options Options
	off     jail.Layers    // left out by a test
	reach   egress.Options // where proxies go; a test can change it
	goFinder

	noted   sync.Once      // Progress was called
	endings errgroup.Group // ends the jails of closed sessions

	mu       sync.Mutex // guards the fields below
	python   *python
	failed   error // why no Python is usable
	ready    chan *process
	closed   bool
	filled   sync.WaitGroup
	filling  int           // number of fills in progress or delayed
	starting int           // number of processes being started in advance
	stop     chan struct{} // closed when the tier is closed
}

// endingsAtOnce bounds the number of jails that are removed concurrently. The memory of a closed
// session is no longer accounted for, so only a few closed sessions may still hold memory.
const endingsAtOnce = 8

// New returns the tier. It starts nothing yet: see Warm.
func New(options Options) tiers.Tier {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if options.Warm == 0 {
		options.Warm = 1
	}
	t := &tier{
		options: options,
		reach:   egress.Options{Inject: options.Inject},
		ready:   make(chan *process, max(0, options.Warm)),
		stop:    make(chan struct{}),
	}
	t.endings.SetLimit(endingsAtOnce)
	return t
}

// minClass returns the weakest acceptable class of jail.
func (o Options) minClass() jail.Class {
	if o.AllowNested {
		return jail.Nested
	}
	return jail.Full
}

// Info describes the tier. Version and Modules are known after Probe. `make bench` measures Cost:
// see docs/reference/performance.md.
func (t *tier) Info() tiers.Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	info := tiers.Info{
		Name:      Name,
		Languages: []tiers.Language{tiers.Python},
		Features: []tiers.Feature{
			tiers.FeatureAsync, tiers.FeatureClasses, tiers.FeatureGenerators, tiers.FeatureDynamic,
			tiers.FeatureThreads, tiers.FeatureProcesses, tiers.FeatureSockets, tiers.FeatureFiles,
			tiers.FeatureOut, tiers.FeaturePackages,
			tiers.FeatureNative, tiers.FeatureMove, tiers.FeatureHugeContext,
		},
		Isolation: tiers.IsolationProcess,
		OnRequest: true,
		Cost:      tiers.Cost{Start: 2 * time.Millisecond, Snippet: 3 * time.Millisecond},
	}

	if p := t.python; p != nil {
		info.Version = fmt.Sprintf("CPython %d.%d.%d, %s", p.version[0], p.version[1], p.version[2], p.path)
		info.Modules = p.modules
		info.Shown, info.Hidden = p.shown.list(), p.shown.hidden
	}
	return t.withGo(info)
}

// Probe finds the interpreter and checks which layers of a jail the kernel supports. It keeps the
// first result about the interpreter.
func (t *tier) Probe(ctx context.Context) error {
	if _, err := t.interpreter(ctx); err != nil {
		return err
	}
	_, _ = t.golang(ctx) // without a toolchain, the tier does not offer Go
	report := jail.Probe(ctx)
	if report.Class == "" || report.Class == jail.Nested && !t.options.AllowNested {
		return fmt.Errorf("tier local cannot build its jail on this machine: %s", explainJail(report))
	}
	if report.CgroupVersion == 0 && !t.options.AllowSampled {
		return errors.New("this user has no cgroup that bounds the memory of a jail: " +
			"pass --allow-sampled to accept a limit by samples, " +
			"or start rlm with systemd-run --user --scope -p Delegate=yes")
	}

	return nil
}

// explainJail names the first missing layer, with advice on how to get it.
func explainJail(r jail.Report) string {
	for _, layer := range r.Layers {
		if !layer.On && layer.Why != "" {
			text := layer.Name + ": " + layer.Why
			if len(r.Advice) > 0 {
				text += "; " + r.Advice[0]
			}
			return text
		}
	}

	return "the kernel gives no reason"
}

func (t *tier) interpreter(ctx context.Context) (*python, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.python == nil && t.failed == nil {
		t.python, t.failed = findPython(ctx, t.options.Python, t.options.Folders)
		if t.failed != nil && ctx.Err() != nil {
			err := t.failed
			t.failed = nil // another context may last long enough
			return nil, err
		}
	}

	return t.python, t.failed
}

// Warm starts sandboxes in advance.
func (t *tier) Warm(ctx context.Context) error {
	if t.options.Warm < 0 {
		return nil
	}
	for len(t.ready) < cap(t.ready) {
		if err := t.fill(ctx); err != nil {
			return err
		}
	}

	return nil
}

// fill starts a process for the pool.
func (t *tier) fill(ctx context.Context) error {
	t.countStart(1)
	defer t.countStart(-1)
	p, err := t.start(ctx, needs{limits: tiers.DefaultLimits()})
	if err != nil {
		return err
	}
	if !t.keep(p) {
		return p.Close() // the pool was closed or filled in the meantime
	}
	return nil
}

func (t *tier) countStart(change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starting += change
}

// noteShown reports the files and folders that sandboxes can read, before the first sandbox starts.
func (t *tier) noteShown(s *shown) {
	if t.options.Progress == nil {
		return
	}
	t.noted.Do(func() {
		t.options.Progress("tier local shows snippets, read-only: " + s.describe())
		for _, folder := range s.hidden {
			t.options.Progress("tier local hides " + folder)
		}
	})
}

// keep puts a process into the pool, and reports whether the pool had room.
func (t *tier) keep(p *process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	select {
	case t.ready <- p:
		return true
	default:
		return false
	}
}

// claim returns a process for a session, from the pool or newly started.
func (t *tier) claim(ctx context.Context, n needs) (*process, error) {
	if n.limits.Memory == tiers.DefaultLimits().Memory && len(n.binds) == 0 &&
		n.proxy == nil && !n.out {
		for {
			select {
			case p := <-t.ready:
				t.refill()
				if p.alive() {
					return p, nil
				}
				_ = p.Close() // it died in the pool
				continue
			default:
				t.refill() // the next session need not wait
			}

			break
		}
	}

	return t.start(ctx, n)
}

// refillDelay keeps the start of the next process from slowing the first snippet.
const refillDelay = 100 * time.Millisecond

// refill starts another process in the background.
func (t *tier) refill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.filling >= cap(t.ready) {
		return
	}
	t.filling++
	t.filled.Add(1)
	go func() {
		defer t.filled.Done()
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.filling--
		}()

		select {
		case <-time.After(refillDelay):
		case <-t.stop:
			return
		}
		if !t.isWanted() {
			return // Warm filled the pool in the meantime
		}
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if err := t.fill(ctx); err != nil {
			t.options.Log.Warn("cannot start a sandbox ahead", "error", err)
		}
	}()
}

// isWanted reports whether the pool needs a process that is not being started yet.
func (t *tier) isWanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ready)+t.starting < cap(t.ready)
}

// Open starts a sandbox.
func (t *tier) Open(ctx context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := session.RejectNative(Name, cfg); err != nil {
		return nil, err
	}
	if err := session.RejectMounts(Name, cfg); err != nil {
		return nil, err
	}

	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return nil, errors.New("the local tier is closed")
	}

	return open(ctx, t, cfg)
}

// Close ends the pooled sandboxes, and waits until the closed ones are gone. Close all others
// first.
func (t *tier) Close() error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.stop)
	}
	t.mu.Unlock()
	t.filled.Wait()
	for {
		select {
		case p := <-t.ready:
			_ = p.Close() // Wait reports it
		default:
			return t.endings.Wait()
		}
	}
}
