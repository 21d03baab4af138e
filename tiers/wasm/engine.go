package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// imageFormat changes with the way in which the image is prepared, including pykernel.Boot.
const imageFormat = "7"

// recursion is the limit on recursion through C, which is CPython's limit on Linux. CPython's limit
// for WASI is half of that, although the guest's stack has room: sort keys that sort, which need
// the most stack, use 5.3 of its 8 MiB.
const recursion = 10_000

// wazeroRecursion is the limit under wazero, whose own stack ends between 50 and 100 MB. It is
// CPython's limit for WASI. Deterministic sessions have this limit in both engines, because their
// results must agree.
const wazeroRecursion = 5_000

// saveDelay is the time for which the first snippets have the processors to themselves before the
// cache is written.
const saveDelay = 100 * time.Millisecond

// engine is the part shared by all sandboxes of a tier: the compiled interpreter, and the image
// of an interpreter with the Python runtime loaded.
type engine struct {
	options Options
	name    string
	cache   *codecache.Cache
	program program
	image   *image
	layout  layout
	idle    *idleList

	// saving tracks the goroutine that writes the cache. It begins when the first snippets have had
	// the processors to themselves for a while, or when hurry ends the wait.
	saving sync.WaitGroup
	hurry  context.CancelFunc

	isAnnounced bool
	imageDigest func() string
}

// layout holds addresses in the guest's memory.
type layout struct {
	// Input and InputSize locate the static buffer for a snippet's source.
	Input, InputSize uint32
	// EvalBreaker, AsyncBit, AsyncExc and Interrupt enable the host to raise KeyboardInterrupt: it
	// writes the class's address into AsyncExc and sets the bit in EvalBreaker, as
	// PyThreadState_SetAsyncExc does.
	EvalBreaker, AsyncBit, AsyncExc, Interrupt uint32
	// Recursion is the main thread's remaining depth of recursion through C.
	Recursion uint32
	// Hot lists the pages that every snippet writes.
	Hot []span
}

func newEngine(ctx context.Context, options Options) (*engine, error) {
	e := &engine{options: options, idle: newIdleList()}
	e.name, _ = options.engine()
	e.imageDigest = sync.OnceValue(e.digestImage)
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// start prepares the code and the image, from the program's own file or from the cache.
func (e *engine) start(ctx context.Context) error {
	begun := time.Now()
	key := e.imageKey()
	if e.name == engineAOT && e.adoptAttached(key) == nil {
		var err error
		e.program, err = e.loadProgram(ctx)
		e.options.Log.Debug("wasm tier prepared", "took", time.Since(begun), "attached", true)
		return err
	}
	cache, release, err := codecache.Open(ctx, e.options.CacheDir, e.options.Log,
		func(c *codecache.Cache) bool {
			return c.Has(e.imagePath(key)) && (e.name != engineAOT || c.Has(e.options.codePath()))
		})
	if err != nil {
		return err
	}
	e.cache = cache

	isCached, err := e.load(ctx, key)
	if err != nil {
		release()
		return err
	}
	e.options.Log.Debug("wasm tier prepared", "took", time.Since(begun), "cached", isCached)

	wait, hurry := context.WithTimeout(context.Background(), saveDelay)
	e.hurry = hurry
	e.saving.Go(func() {
		defer release()
		<-wait.Done()
		e.keepCode()
		if !isCached {
			e.keepImage(key)
		}
	})
	return nil
}

// load prepares the code and the image concurrently. It reports whether the image was in the cache.
func (e *engine) load(ctx context.Context, key string) (isCached bool, err error) {
	var group sync.WaitGroup
	group.Go(func() {
		if e.adopt(key); e.image != nil {
			isCached = true
		} else if err := e.adoptPrepared(); err != nil {
			e.options.Log.Debug("the image is not part of the program", "error", err)
		}
	})
	e.program, err = e.loadProgram(ctx)
	group.Wait()
	drop(ahead.Swap(nil)) // the image was cached, although the code was not
	if err != nil {
		return false, fmt.Errorf("cannot prepare the interpreter: %w", err)
	}

	if e.image == nil {
		err = e.derive(ctx)
	}
	return isCached, err
}

// loadProgram prepares the interpreter's code with the engine given in the options.
func (e *engine) loadProgram(ctx context.Context) (program, error) {
	if e.name == engineAOT {
		code, err := machineCode(e.options)
		if err != nil {
			return nil, err
		}
		return newAOTProgram(code)
	}
	return compileWithWazero(ctx, e.cache, e.announce)
}

// announce calls Progress before the first slow step.
func (e *engine) announce() {
	if e.options.Progress == nil || e.isAnnounced {
		return
	}
	e.isAnnounced = true
	what := "preparing Python for this machine (only once)"
	if e.name == engineWazero {
		what += ": about two seconds"
	}
	e.options.Progress(what)
}

// imageKey hashes everything on which the prepared image depends.
func (e *engine) imageKey() string {
	sum := sha256.Sum256([]byte(runtime.GOARCH + e.options.sourcesKey()))
	return hex.EncodeToString(sum[:])
}

// digestImage identifies the image and its bytes. The pages of a session fit no other image.
func (e *engine) digestImage() string {
	return fmt.Sprintf("%s-%016x", e.imageKey(), xxhash.Sum64(e.image.view))
}

// derive prepares the image from which sandboxes start. It loads the Python runtime into the
// shipped image, in which CPython has just started.
func (e *engine) derive(ctx context.Context) error {
	e.announce()
	data, err := cpython.Image()
	if err != nil {
		return err
	}
	if e.image, err = imageOf(data); err != nil {
		return err
	}

	// Loading is deterministic, so the image is the same on all machines.
	// A slow machine may take long.
	limits := tiers.Limits{Wall: time.Hour}
	accounts, err := session.NewAccounts(ctx, tiers.Config{Deterministic: true, Limits: limits})
	if err != nil {
		return err
	}
	in, err := e.create(ctx, accounts, e.image.size, 1<<30, 0)
	if err != nil {
		return err
	}
	defer in.close()

	for _, source := range []string{pykernel.Boot(), e.options.Preload} {
		if _, err := in.boot(ctx, source); err != nil {
			return err
		}
	}
	prepared := append([]byte(nil), in.machine.memory()...)
	if e.layout, err = in.readLayout(ctx); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(prepared[e.layout.Recursion:], recursion)
	if !e.options.isCounted {
		if err := in.immortalise(ctx, prepared); err != nil {
			return err
		}
	}

	in.close()
	if err := e.replaceImage(prepared); err != nil {
		return err
	}
	return e.learnHot(ctx)
}

func imageOf(data []byte) (*image, error) {
	runs := dirtyRuns(data)
	return newImage(uint64(len(data)), runs, bytes.NewReader(packed(data, runs)))
}

func packed(data []byte, runs []span) []byte {
	into := make([]byte, length(runs))
	pack(into, data, runs)
	return into
}

func (e *engine) replaceImage(data []byte) error {
	old := e.image
	img, err := imageOf(data)
	if err != nil {
		return err
	}
	e.image = img
	return old.close()
}

// learnHot finds the pages that a small snippet writes.
func (e *engine) learnHot(ctx context.Context) error {
	accounts, err := session.NewAccounts(ctx, tiers.Config{})
	if err != nil {
		return err
	}
	in, err := e.create(ctx, accounts, e.image.size, 1<<30, 0)
	if err != nil {
		return err
	}
	defer in.close()
	if err := accounts.Begin(ctx, tiers.Job{}); err != nil {
		return err
	}

	code, err := in.run(ctx, "print(sum(range(100)))", wire.FlagReseed|1<<wire.OrdinalShift)
	accounts.End(code)
	if err != nil {
		return fmt.Errorf("cannot rehearse a snippet: %w", err)
	}
	e.layout.Hot = nil

	for _, run := range changedRuns(in.mem, e.image) {
		if run.End <= e.image.size {
			e.layout.Hot = append(e.layout.Hot, run)
		}
	}
	e.image.hot = e.layout.Hot

	return nil
}

func (e *engine) close() error {
	var errs []error
	if e.hurry != nil {
		e.hurry()
	}
	e.saving.Wait()
	e.idle.close()
	if e.program != nil {
		errs = append(errs, e.program.close())
	}
	if e.image != nil {
		errs = append(errs, e.image.close())
	}

	return errors.Join(errs...)
}
