package session

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// The formats of a state.
const (
	// FormatPickle is the stream written by guest/state.py of package pykernel: values as a pickle,
	// functions and classes by value.
	FormatPickle = "pickle"
	// FormatReplay is a JSON array of the session's snippets, in order. Repeating the snippets
	// restores the namespace. A snippet is a string, or, if it called the host, an object with its
	// source and its answered calls.
	FormatReplay = "replay"
)

// Bounds on a moving state.
const (
	maxState = 1 << 30
	maxLeft  = 1000
)

// moving is a state on its way into or out of the guest.
type moving struct {
	data  []byte
	left  []tiers.Left
	out   bool // the guest is exporting a state
	moved int
	each  time.Duration // the time of one variable
	until time.Time     // the end of the time for all variables

	// isCalm means that no variable is being moved, so an interrupt would hit the guest's own work.
	isCalm bool
}

// The time of a move. A variable may take mostEach, or the session's limit if that is less. Each
// variable that exceeds its time halves the time of the following ones. So any number of endless
// variables takes at most twice as long as one.
const (
	mostEach  = 10 * time.Second
	leastEach = 100 * time.Millisecond
	mostCalm  = 30 * time.Second // for the guest's own work, also on a busy machine
)

// knownTexts is the part of a state for the host of the other tier: the files of directories that
// have numbers in the guest, in order. Preceded by its length, it comes before the guest's own
// bytes.
type knownTexts struct {
	Files []textFile `json:"files"`
}

type textFile struct {
	Input int    `json:"input"`
	Path  []byte `json:"path"`            // not a string, because a path need not be UTF-8
	Table int    `json:"table,omitempty"` // from 1; Input is then the number of its text
}

// Runner runs the guest's run function in the same way as for a snippet of the tier.
type Runner func(source string, flags int) (code int, err error)

// ExportState exports the namespace from the guest. It discards the accounts of the last snippet.
func (a *Accounts) ExportState(ctx context.Context, tier string, run Runner) (tiers.State, error) {
	a.moving = moving{out: true}
	defer func() { a.moving = moving{moved: a.moving.moved} }()

	if err := a.transfer(ctx, run, wire.FlagExport); err != nil {
		return tiers.State{}, fmt.Errorf("cannot export the variables from tier %s: %w", tier, err)
	}

	return tiers.State{
		Language: tiers.Python, Format: FormatPickle, From: tier, Snippet: a.ordinal,
		Data: a.moving.data, Left: a.moving.left,
	}, nil
}

// Exported returns the number of variables exported by the last ExportState.
func (a *Accounts) Exported() int { return a.moving.moved }

// ImportState imports a namespace into a guest that has not run any snippet.
func (a *Accounts) ImportState(
	ctx context.Context, tier string, state tiers.State, run Runner,
) (tiers.Report, error) {
	if state.Format == FormatReplay {
		return a.runPureSnippets(ctx, tier, state, run)
	}
	if state.Format != FormatPickle {
		return tiers.Report{}, &tiers.RejectedError{
			Tier:    tier,
			Missing: state.Format,
			Effects: tiers.EffectsNeverRan,
			Reason: fmt.Sprintf(
				"it does not know the format %q of the variables from tier %s", state.Format,
				state.From,
			),
		}
	}
	data, err := a.adopt(state.Data)
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot read the state from tier %s: %w", state.From, err)
	}

	a.ordinal = state.Snippet
	a.moving = moving{data: data}
	defer func() { a.moving = moving{} }()

	if err := a.transfer(ctx, run, wire.FlagImport); err != nil {
		return tiers.Report{}, fmt.Errorf("cannot import the variables into tier %s: %w", tier, err)
	}
	return tiers.Report{
		Moved: a.moving.moved,
		Left:  append(state.Left[:len(state.Left):len(state.Left)], a.moving.left...),
	}, nil
}

// runPureSnippets runs the snippets of a session whose only effects are its variables.
func (a *Accounts) runPureSnippets(
	ctx context.Context, tier string, state tiers.State, run Runner,
) (tiers.Report, error) {
	sources, err := decodeSources(state.Data)
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot read the state from tier %s: %w", state.From, err)
	}
	until := time.Now().Add(a.cfg.Limits.Wall + replaySlack) // for all snippets together
	for _, source := range sources {
		if err := a.Begin(ctx, tiers.Job{}); err != nil {
			return tiers.Report{}, err
		}
		code, err := run(source, a.ordinal<<wire.OrdinalShift)
		r := a.End(code)
		switch {
		case err != nil:
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case r.Status == tiers.StatusLimit || r.Status == tiers.StatusCrashed:
			err = fmt.Errorf("it ended differently: %s %s", r.Status, r.Limit)
		case time.Now().After(until):
			err = fmt.Errorf("the snippets together take longer than %s", a.cfg.Limits.Wall+replaySlack)
		}
		if err != nil {
			return tiers.Report{}, fmt.Errorf(
				"cannot repeat snippet %d in tier %s: %w", a.ordinal, tier, err,
			)
		}
	}
	a.ordinal = state.Snippet
	return tiers.Report{Moved: len(sources), Left: state.Left}, nil
}

// decodeSources decodes a state in format replay whose snippets made no host calls.
func decodeSources(data []byte) (sources []string, err error) {
	if err := checkReplay(data); err != nil {
		return nil, err
	}
	err = json.Unmarshal(data, &sources)
	return sources, err
}

// transfer runs the guest's run function for a state instead of a snippet.
func (a *Accounts) transfer(ctx context.Context, run Runner, flag int) error {
	snippet := a.ordinal
	if err := a.Begin(ctx, tiers.Job{}); err != nil {
		return err
	}
	a.ordinal = snippet // a transfer is not a snippet

	wall := a.cfg.Limits.Wall
	a.moving.each = min(wall, mostEach)
	a.moving.until = time.Now().Add(wall + 2*a.moving.each)
	a.calm()

	code, err := run("", flag)
	r := a.End(code)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil: // the interrupted part is missing
		return context.Cause(ctx)
	case r.Status != tiers.StatusOK && r.Exception != nil:
		return fmt.Errorf("%s: %s", r.Exception.Type, r.Exception.Message)
	case r.Status != tiers.StatusOK:
		return fmt.Errorf("%s %s", r.Status, r.Limit)
	}
	return nil
}

// startVariable starts measuring the time of the next variable.
func (a *Accounts) startVariable() {
	a.moving.isCalm = false
	a.restartMeter(a.moving.each)
}

// calm grants the guest time for its own work between variables.
func (a *Accounts) calm() {
	a.moving.isCalm = true
	a.restartMeter(mostCalm)
}

func (a *Accounts) restartMeter(time time.Duration) {
	limits := a.cfg.Limits
	limits.Wall, limits.Active = time, min(limits.Active, time)

	processor := a.meter.processor
	a.meter.begin(limits)
	a.meter.processor = processor
}

// nextVariable handles the guest's reports on its variables. Without a body, the next variable
// begins, and the reply is "over" if there is no time left for it. With ".", the variable has
// ended. With "!", it was interrupted, and the reply is the reason why it is left behind, or empty
// if the time for all variables is over. The time is also over when the caller no longer waits,
// because each further variable would be interrupted immediately.
func (a *Accounts) nextVariable(body []byte) Reply {
	if a.moving.until.IsZero() {
		return fail(errRequest)
	}
	isOver := a.IsCanceled() || time.Now().After(a.moving.until)
	switch string(body) {
	case "":
		if isOver {
			return ok("over")
		}
		a.startVariable()
	case "!":
		a.calm()
		if isOver {
			return ok("")
		}
		reason := fmt.Sprintf("it took longer than %s to copy", a.moving.each)
		a.moving.each = max(a.moving.each/2, leastEach)
		return ok(reason)
	default:
		a.calm()
	}
	return ok("")
}

func (a *Accounts) fileList() []textFile {
	list := []textFile{}
	for _, f := range a.files.list {
		if f.dir == nil {
			list = append(list, textFile{Input: f.owner, Table: f.table + 1})
			continue
		}
		for i := range a.cfg.Inputs {
			if a.directoryOf(i) == f.dir {
				list = append(list, textFile{Input: i, Path: []byte(f.path)})
				break
			}
		}
	}
	return list
}

var errState = errors.New("its header is damaged")

// adopt registers the texts to which the state refers and returns the guest's part of the state.
func (a *Accounts) adopt(data []byte) ([]byte, error) {
	if len(data) < 4 || len(data) > maxState {
		return nil, errState
	}
	length := binary.LittleEndian.Uint32(data)
	if uint64(length) > uint64(len(data)-4) {
		return nil, errState
	}
	if hostcall.CountValues(data[4:4+length], 3) > 4*maxFiles {
		return nil, errState
	}
	var head knownTexts
	if err := json.Unmarshal(data[4:4+length], &head); err != nil || len(head.Files) > maxFiles {
		return nil, errState
	}
	for _, f := range head.Files {
		switch {
		case f.Table > 0 && a.mayHaveTables(f.Input):
			a.files.add(file{owner: f.Input, table: f.Table - 1})
		case f.Table == 0 && a.directoryOf(f.Input) != nil:
			a.files.add(file{dir: a.directoryOf(f.Input), path: string(f.Path)})
		default:
			return nil, errState
		}
	}
	return data[4+length:], nil
}

// mayHaveTables reports whether a number belongs to an input or a file of a directory. The rows of
// a table cannot contain tables.
func (a *Accounts) mayHaveTables(number int) bool {
	at := number - firstFile
	if at >= 0 {
		return at < len(a.files.list) && a.files.list[at].dir != nil
	}
	return number >= 0 && number < len(a.cfg.Inputs)
}

// takeState stores a piece of the state that the guest exports. The first piece announces the
// number of bytes that follow, and no more are accepted.
func (a *Accounts) takeState(body []byte) Reply {
	switch {
	case !a.moving.out:
		return fail(errRequest)
	case a.moving.data == nil:
		return a.makeRoom(string(body))
	case len(body) > cap(a.moving.data)-len(a.moving.data):
		return fail(errRequest)
	}
	a.moving.data = append(a.moving.data, body...)
	return Reply{ASCII: true}
}

// makeRoom begins a state with its head, and allocates room for the rest. The guest holds the whole
// state in its memory, whose limit bounds the room.
func (a *Accounts) makeRoom(size string) Reply {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 0 || n > min(maxState, a.cfg.Limits.Memory) {
		return fail(fmt.Errorf("a state of %.20s bytes is too large", size))
	}
	a.moving.data, err = a.beginState(int(n))
	if err != nil {
		return fail(err)
	}
	return Reply{ASCII: true}
}

// beginState returns the host's part of a state, with capacity for room further bytes.
func (a *Accounts) beginState(room int) ([]byte, error) {
	head, err := json.Marshal(knownTexts{a.fileList()})
	if err != nil {
		return nil, err
	}
	data := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(head)+room), uint32(len(head)))
	return append(data, head...), nil
}

// StateOfPages returns a state whose values are in the guest's memory. It contains only the part
// that [Accounts.Adopt] needs.
func (a *Accounts) StateOfPages(tier string) (tiers.State, error) {
	data, err := a.beginState(0)
	return tiers.State{
		Language: tiers.Python, Format: FormatPickle, From: tier, Snippet: a.ordinal, Data: data,
	}, err
}

// giveState returns a piece of the state that the guest imports.
func (a *Accounts) giveState(body []byte) Reply {
	from, n, isPair := strings.Cut(string(body), ",")
	at, err := strconv.Atoi(from)
	size, err2 := strconv.Atoi(n)
	all := a.moving.data
	if !isPair || err != nil || err2 != nil || at < 0 || size < 0 || a.moving.out || all == nil {
		return fail(errRequest)
	}
	rest := all[min(at, len(all)):]
	return Reply{Data: rest[:min(size, len(rest))]}
}

// takeLeft records the guest's report on the values that could not move, and on the number of
// variables that did.
func (a *Accounts) takeLeft(body []byte) Reply {
	if hostcall.CountValues(body, 3) > 8*maxLeft || len(body) > maxException {
		return fail(errRequest)
	}
	var report struct {
		Moved int          `json:"moved"`
		Left  []tiers.Left `json:"left"`
	}
	if err := json.Unmarshal(body, &report); err != nil || report.Moved < 0 ||
		len(report.Left) > maxLeft {
		return fail(errRequest)
	}
	for i := range report.Left {
		l := &report.Left[i]
		l.Name, l.Type, l.Reason = short(l.Name), short(l.Type), short(l.Reason)
	}
	a.moving.left, a.moving.moved = report.Left, report.Moved
	return Reply{ASCII: true}
}

func short(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
