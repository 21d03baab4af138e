//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/machine/attached"
	"github.com/rlmhq/rlm/internal/machine/watchdog"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// jailName identifies the worker's program for package jail.
const jailName = "tier-worker"

func init() { //nolint:gochecknoinits // a jail starts this program again, and ends up here
	jail.Register(jailName, runWorker)
}

// These are the files that a worker receives first: the socket for other files, the scratch file,
// and the prepared parts of tier wasm, if any.
const (
	fileSocket = iota
	fileScratch
	fileParts
)

// Tests set these functions. testHook acts in a worker like a snippet that has taken it over;
// testSnippet runs before a snippet.
var (
	testHook    func(order string) any
	testSnippet func(source string)
)

// exitStuck is the exit code of a worker that the watchdog ended; stuckProcess is its explanation.
const (
	exitStuck    = 4
	stuckProcess = "a snippet held a processor, and no limit ended it"
)

// runWorker is the worker's program.
func runWorker(conn *os.File) int {
	// Guests may compute on all processors, and a message must not wait for a guest.
	runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	watchdog.EndProcess(exitStuck, stuckProcess+"\n")
	w, err := newInside(conn)
	if err == nil {
		err = w.serve(conn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}

	return 0
}

// inside is the worker's own view of a worker.
type inside struct {
	engine  *rlm.Engine
	tier    tiers.Tier
	files   *receiver
	scratch *os.File
	conn    *jsonrpc.Conn
	ballast []byte // never touched

	mu    sync.Mutex
	boxes map[int64]*box
}

func newInside(conn *os.File) (*inside, error) {
	_, first, err := receiveFiles(conn)
	if err != nil {
		return nil, err
	}
	if len(first) < fileParts {
		return nil, errors.New("the parent has sent no files")
	}
	if len(first) > fileParts {
		parts := first[fileParts]
		if err := attached.Use(parts, func() (*os.File, error) { return duplicate(parts) }); err != nil {
			return nil, err
		}
	}

	if err := unix.SetNonblock(int(first[fileSocket].Fd()), true); err != nil {
		return nil, err
	}
	socket, err := duplicate(first[fileSocket]) // a descriptor that Go's poller can use
	if err != nil {
		return nil, err
	}
	bigtext.KeepCopiesIn(memoryFile)

	w := &inside{scratch: first[fileScratch], files: newReceiver(socket), boxes: map[int64]*box{}}
	return w, nil
}

// hello prepares the tier that the parent requests.
func (w *inside) hello(ctx context.Context, p helloParams) (_ none, err error) {
	// Because of the ballast, the garbage collector runs rarely. While snippets compute, each
	// collection would delay short snippets.
	w.ballast = make([]byte, min(p.Garbage, maxGarbage))
	w.engine, err = rlm.New(rlm.Options{CacheDir: "none", WasmEngine: p.Engine})
	if err != nil {
		return none{}, err
	}
	for _, tier := range w.engine.Tiers() {
		if tier.Info().Name == p.Tier {
			w.tier = tier
			return none{}, tier.Warm(ctx)
		}
	}

	return none{}, failed("there is no tier %q", p.Tier)
}

func duplicate(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// serve answers the parent until the connection ends.
func (w *inside) serve(conn *os.File) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	w.conn = jsonrpc.New(conn, conn, w, log)
	return w.conn.Serve(context.Background())
}

// Notice implements jsonrpc.Handler.
func (w *inside) Notice(method string, params jsonrpc.Raw) error {
	var p pauseParams
	switch method {
	case methodStop, methodResume:
		if err := jsonrpc.Decode(params, &p); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown notification %q", method)
	}

	b := w.find(p.Session)
	switch {
	case b == nil: // the session has ended
	case method == methodStop:
		b.stop()
	default:
		b.resume(p.Number)
	}
	return nil
}

// Begin implements jsonrpc.Handler.
func (w *inside) Begin(ctx context.Context, method string, params jsonrpc.Raw) (jsonrpc.Answer, error) {
	switch method {
	case methodHello:
		return answer(ctx, params, w.hello)
	case methodPing:
		return func() (any, error) { return none{}, nil }, nil
	case methodOpen:
		return answer(ctx, params, w.open)
	case methodRun:
		return w.beginRun(ctx, params)
	case methodFork:
		return answer(ctx, params, w.fork)
	case methodExtend:
		return answer(ctx, params, w.extend)
	case methodPause:
		return answer(ctx, params, w.pause)
	case methodSave:
		return answer(ctx, params, w.savePages)
	case methodExport:
		return answer(ctx, params, w.export)
	case methodImport:
		return answer(ctx, params, w.importState)
	case methodCollect:
		return answer(ctx, params, w.collect)
	case methodClose:
		return answer(ctx, params, w.close)
	}

	if testHook != nil {
		return func() (any, error) { return testHook(method), nil }, nil
	}
	return nil, jsonrpc.NewError(jsonrpc.CodeUnknownMethod, nil, "unknown method %q", method)
}

// answer decodes parameters and returns a function that answers.
func answer[P, R any](
	ctx context.Context, params jsonrpc.Raw, f func(context.Context, P) (R, error),
) (jsonrpc.Answer, error) {
	var p P
	if err := jsonrpc.Decode(params, &p); err != nil {
		return nil, err
	}
	return func() (any, error) {
		r, err := f(ctx, p)
		return r, describeError(err)
	}, nil
}

// describeError converts a tier's error to its wire format.
func describeError(err error) error {
	var broken *tiers.BrokenError
	var rejected *tiers.RejectedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &broken):
		d := details{Kind: kindBroken, Tier: broken.Tier, Effects: broken.Effects, Lost: broken.Lost}
		return jsonrpc.NewError(jsonrpc.CodeServer, d, "%v", broken.Err)
	case errors.As(err, &rejected):
		d := details{
			Kind: kindRejected, Tier: rejected.Tier, Missing: rejected.Missing, Reason: rejected.Reason,
			Effects: rejected.Effects,
		}
		return jsonrpc.NewError(jsonrpc.CodeServer, d, "%v", err)
	}

	return failed("%v", err)
}

func (w *inside) find(id int64) *box {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.boxes[id]
}

// use returns a session, or an error if it does not exist.
func (w *inside) use(id int64) (*box, error) {
	if b := w.find(id); b != nil {
		return b, nil
	}
	return nil, failed("there is no session %d", id)
}

func (w *inside) adopt(id int64, b *box) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.id = id
	w.boxes[id] = b
}

// tapeFor returns the tape that the server has requested, or nil.
func tapeFor(p runParams) (*session.Tape, error) {
	switch {
	case !p.Taped:
		return nil, nil //nolint:nilnil // there is none
	case p.Tape == nil:
		return session.NewTape(), nil
	}
	return session.ReadTape(p.Tape)
}
