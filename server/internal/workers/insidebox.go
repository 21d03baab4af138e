//go:build linux && (amd64 || arm64)

package workers

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/tiers"
)

// box is a sandbox in the worker.
type box struct {
	id      int64
	worker  *inside
	sandbox tiers.Sandbox
	inputs  *shared

	mu     sync.Mutex
	cancel context.CancelFunc // cancels the running snippet; nil if there is none
	gate   *slots.Gate        // pauses the running snippet; nil if there is none
	over   int                // the number of the last pause of an ended snippet
	isTold bool               // the parent was told how limits are enforced
}

// shared contains the inputs of a session and its forks.
type shared struct {
	mu    sync.Mutex
	users int
	list  []tiers.Input
	files []*os.File
}

func (s *shared) share() *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	return s
}

func (s *shared) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	var errs []error
	for _, in := range s.list {
		errs = append(errs, in.Close())
	}

	return errors.Join(append(errs, closeAll(s.files))...)
}

// stop ends the running snippet.
func (b *box) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		b.cancel()
	}
}

// begin returns the context of a new snippet, which stop can cancel until end is called.
func (b *box) begin(ctx context.Context) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gate = slots.NewGate(b.over)
	ctx, b.cancel = context.WithCancel(b.gate.With(context.WithValue(ctx, boxKey{}, b)))
	return ctx
}

func (b *box) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel()
	b.cancel, b.gate = nil, nil
}

func (b *box) findGate() *slots.Gate {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gate
}

// pause stops the running snippet until resume is called.
func (w *inside) pause(ctx context.Context, p pauseParams) (none, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return none{}, err
	}
	gate := b.findGate()
	if gate == nil {
		return none{}, failed("no snippet of session %d runs", p.Session)
	}
	return none{}, gate.Shut(ctx, p.Number)
}

// resume ends a pause of the running snippet.
func (b *box) resume(number int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = max(b.over, number)
	if b.gate != nil {
		b.gate.Open(number)
	}
}

func (w *inside) open(ctx context.Context, p openParams) (none, error) {
	b := &box{id: p.Session, worker: w, inputs: &shared{}}
	cfg := tiers.Config{
		Language: p.Language, Limits: p.Limits.decode(), Functions: decodeFunctions(p.Functions),
		Deterministic: p.Deterministic, Out: p.Out,
	}
	if p.HasHost {
		cfg.Host = tiers.HostFunc(w.host)
	}

	err := b.openWith(ctx, &cfg, p)
	if err != nil {
		return none{}, errors.Join(err, b.inputs.share().release())
	}
	b.inputs.share()
	w.adopt(p.Session, b)
	return none{}, nil
}

func (b *box) openWith(ctx context.Context, cfg *tiers.Config, p openParams) (err error) {
	if cfg.Inputs, err = b.receive(ctx, p.Inputs); err != nil {
		return err
	}
	if p.Packages != 0 {
		file, err := b.worker.files.takeOne(ctx, p.Packages)
		if err != nil {
			return err
		}
		b.inputs.files = append(b.inputs.files, file)
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if cfg.Packages, err = zip.NewReader(file, info.Size()); err != nil {
			return err
		}
	}

	b.sandbox, err = b.worker.tier.Open(ctx, *cfg)
	return err
}

// boxKey is the context key of a snippet's session.
type boxKey struct{}

// host forwards the calls of all snippets to the parent.
func (w *inside) host(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	b, ok := ctx.Value(boxKey{}).(*box)
	if !ok {
		return nil, errors.New("host call outside of a snippet's run")
	}

	p := callParams{
		ofSession: ofSession{b.id}, Function: call.Function, Snippet: call.Snippet, Ordinal: call.Ordinal,
		Named: map[string][]byte{},
	}
	for _, arg := range call.Args {
		p.Args = append(p.Args, arg)
	}
	for name, arg := range call.Named {
		p.Named[name] = arg
	}

	var r callResult
	if err := w.conn.Call(ctx, methodCall, p, &r); err != nil {
		return nil, err
	}
	return r.Value, nil
}

// beginRun begins a snippet. The snippet can be stopped before the next message is read.
func (w *inside) beginRun(ctx context.Context, params jsonrpc.Raw) (jsonrpc.Answer, error) {
	var p runParams
	if err := jsonrpc.Decode(params, &p); err != nil {
		return nil, err
	}
	b, err := w.use(p.Session)
	if err != nil {
		return nil, err
	}

	ctx = b.begin(ctx)
	return func() (any, error) {
		defer b.end()
		r, err := b.run(ctx, p)
		return r, describeError(err)
	}, nil
}

func (b *box) run(ctx context.Context, p runParams) (*result, error) {
	job := tiers.Job{
		Language: p.Language, Source: string(p.Source), Rejectable: p.Rejectable,
		Seed: p.Seed, Began: p.Began,
	}
	if p.Stream {
		job.Stdout, job.Stderr = output{b, false}, output{b, true}
	}
	if testSnippet != nil {
		testSnippet(job.Source)
	}
	tape, err := tapeFor(p)
	if err != nil {
		return nil, err
	}
	ran, err := b.sandbox.Run(tape.With(ctx), job)
	if err != nil {
		return nil, err
	}

	if b.isTold {
		ran.Enforced = nil
	}
	b.isTold = true
	return encodeResult(&ran, tape, func(one part) error {
		one.Session = b.id
		return b.worker.conn.Notify(methodPart, one)
	})
}

// output sends a snippet's output.
type output struct {
	*box
	isError bool
}

// Write implements io.Writer.
func (o output) Write(data []byte) (int, error) {
	err := o.worker.conn.Notify(methodOutput, outputParams{ofSession{o.id}, o.isError, false, data})
	return len(data), err
}

// WriteEcho implements tiers.EchoWriter.
func (o output) WriteEcho(text []byte) {
	_ = o.worker.conn.Notify(methodOutput, outputParams{ofSession{o.id}, false, true, text})
}

func (w *inside) fork(ctx context.Context, p forkParams) (none, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return none{}, err
	}
	forker, ok := b.sandbox.(tiers.Forker)
	if !ok {
		return none{}, failed("the tier cannot fork")
	}

	sandbox, err := forker.Fork(ctx)
	if err != nil {
		return none{}, err
	}
	w.adopt(p.As, &box{worker: w, sandbox: sandbox, inputs: b.inputs.share(), isTold: b.isTold})
	return none{}, nil
}

func (w *inside) extend(ctx context.Context, p extendParams) (none, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return none{}, err
	}
	extender, ok := b.sandbox.(tiers.Extender)
	if !ok {
		return none{}, failed("the tier takes no more inputs")
	}

	list, err := b.receive(ctx, p.Inputs)
	if err != nil {
		return none{}, err
	}
	return none{}, extender.Extend(ctx, list, decodeFunctions(p.Functions))
}

// savePages writes the pages of a session to a file that the parent provided.
func (w *inside) savePages(ctx context.Context, p saveParams) (saveResult, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return saveResult{}, err
	}
	file, err := w.files.takeOne(ctx, p.File)
	if err != nil {
		return saveResult{}, err
	}
	defer file.Close()

	saver, ok := b.sandbox.(interface {
		SavePages(ctx context.Context, to io.Writer) (tiers.State, error)
	})
	if !ok {
		return saveResult{}, failed("the tier has no pages")
	}
	state, err := saver.SavePages(ctx, file)
	return saveResult{state.Data}, err
}

func (w *inside) export(ctx context.Context, p ofSession) (stateParams, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return stateParams{}, err
	}
	exporter, ok := b.sandbox.(tiers.Exporter)
	if !ok {
		return stateParams{}, failed("the tier cannot export variables")
	}

	state, err := exporter.Export(ctx)
	if err != nil {
		return stateParams{}, err
	}
	if _, err := w.scratch.WriteAt(state.Data, 0); err != nil {
		return stateParams{}, fmt.Errorf("cannot hand the variables over: %w", err)
	}
	return stateParams{
		ofSession: p, Language: state.Language, Format: state.Format, From: state.From, Snippet: state.Snippet,
		Left: state.Left, Bytes: int64(len(state.Data)),
	}, nil
}

func (w *inside) importState(ctx context.Context, p stateParams) (reportResult, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return reportResult{}, err
	}
	file, err := w.files.takeOne(ctx, p.Data)
	if err != nil {
		return reportResult{}, err
	}
	defer file.Close()
	data := make([]byte, p.Bytes)
	if _, err := file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return reportResult{}, err
	}

	exporter, ok := b.sandbox.(tiers.Exporter)
	if !ok {
		return reportResult{}, failed("the tier cannot import variables")
	}
	state := tiers.State{
		Language: p.Language, Format: p.Format, From: p.From, Snippet: p.Snippet, Left: p.Left, Data: data,
	}
	if p.Pages != 0 {
		pages, err := w.files.takeOne(ctx, p.Pages)
		if err != nil {
			return reportResult{}, err
		}
		defer pages.Close()
		var unmap func()
		if state.Exact, unmap, err = mapFile(pages); err != nil {
			return reportResult{}, err
		}
		defer unmap()
	}
	report, err := exporter.Import(ctx, state)
	return reportResult{report.Moved, report.Left, report.Exact, report.Inexact}, err
}

// collect writes the files of a session to the scratch file, as a tar stream.
func (w *inside) collect(ctx context.Context, p ofSession) (collectResult, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return collectResult{}, err
	}
	collector, ok := b.sandbox.(tiers.Collector)
	if !ok {
		return collectResult{}, failed("the tier has no folder for files")
	}

	folder := fmt.Sprint("session ", p.Session)
	to := &counting{to: io.NewOffsetWriter(w.scratch, 0)}
	defer outfiles.Redirect(folder, to)()
	got, err := collector.Collect(ctx, folder)
	return collectResult{to.written, got.Lost}, err
}

// counting is a writer that counts the bytes written.
type counting struct {
	to      io.Writer
	written int64
}

// Write implements io.Writer.
func (c *counting) Write(data []byte) (int, error) {
	n, err := c.to.Write(data)
	c.written += int64(n)
	return n, err
}

func (w *inside) close(_ context.Context, p ofSession) (none, error) {
	b, err := w.use(p.Session)
	if err != nil {
		return none{}, err
	}
	w.mu.Lock()
	delete(w.boxes, p.Session)
	w.mu.Unlock()
	return none{}, errors.Join(b.sandbox.Close(), b.inputs.release())
}

// decodeFile decodes the JSON of a file, and closes it.
func decodeFile(file *os.File, into any) error {
	defer file.Close()
	data, err := readFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// mapFile maps an immutable file. Its content is valid until unmap is called.
func mapFile(file *os.File) (data []byte, unmap func(), err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err = unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the pages of a session: %w", err)
	}
	return data, func() { _ = unix.Munmap(data) }, nil // fails only if it was never mapped
}

func readFile(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(file, 0, info.Size()))
}
