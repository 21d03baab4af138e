package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// committed is the state of the root loop after a turn, apart from its namespaces. It is enough to
// continue in another process.
type committed struct {
	Version  int    `json:"version"`
	Question string `json:"question"`
	// Moved reports that the question is the last input and not in the messages.
	Moved    bool   `json:"moved,omitempty"`
	Contract string `json:"contract,omitempty"`
	// Messages and History are appended to those of the previous commit.
	Messages  appended          `json:"messages"`
	History   appended          `json:"history"`
	Memory    answers.Memory    `json:"memory"`
	Variables map[string]string `json:"variables,omitempty"`

	Compactions int    `json:"compactions,omitempty"`
	Children    int64  `json:"children,omitempty"`
	Loops       int64  `json:"loops,omitempty"`
	Failure     string `json:"failure,omitempty"` // the last failure; Failures counts it
	Failures    int    `json:"failures,omitempty"`
	Last        string `json:"last,omitempty"`
	Reply       string `json:"reply,omitempty"`
	// Answer is Model's answer in the turn that ended the loop.
	Answer json.RawMessage `json:"answer,omitempty"`
	Model  string          `json:"model,omitempty"`

	Spent   ledger.Spending `json:"spent"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Namespaces are the namespaces in the state, in the order of their data. Lost is the reason
	// why the state is incomplete; empty if it is complete.
	Namespaces []namespace `json:"namespaces,omitempty"`
	Lost       string      `json:"lost,omitempty"`
}

const commitVersion = 1

// appended holds the messages that follow the first Keep of the previous commit.
type appended struct {
	Keep int           `json:"keep"`
	New  []llm.Message `json:"new,omitempty"`
}

// namespace is a [tiers.State] without its data.
type namespace struct {
	Language tiers.Language `json:"language"`
	Format   string         `json:"format"`
	From     string         `json:"from"`
	Snippet  int            `json:"snippet"`
	Bytes    int            `json:"bytes"`
}

// maxState bounds the data of all namespaces that a turn stores, in bytes. If it is exceeded,
// the next turn is redone from an earlier one.
const maxState = 256 << 20

// durable is the root loop's part in a durable run. Other loops have none.
type durable struct {
	runLog *runlog.Log
	// commits are the turns of an earlier process, up to the last one with a complete state; at
	// is the index of that turn.
	commits []committed
	at      runlog.Commit
	// messages and history are those of the last commit.
	messages, history []llm.Message
}

// isBegun reports whether the loop resumes after a turn of an earlier process.
func (d *durable) isBegun() bool { return len(d.commits) > 0 }

// last returns the commit after which the loop resumes.
func (d *durable) last() *committed { return &d.commits[len(d.commits)-1] }

// load reads the commits of an earlier process.
func (d *durable) load(ctx context.Context) error {
	if d.runLog = runlog.From(ctx); d.runLog == nil {
		return nil
	}
	all, err := d.runLog.Commits(ctx)
	if err != nil {
		return err
	}

	states := make([]committed, len(all))
	for i, c := range all {
		if states[i], err = decodeCommit(c.Data); err != nil {
			return fmt.Errorf("cannot read turn %d: %w", c.Turn, err)
		}
		if states[i].Lost == "" {
			d.at, d.commits = c, states[:i+1]
		}
	}
	return nil
}

// decodeCommit strictly decodes the data that a turn stored.
func decodeCommit(data []byte) (c committed, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, err
	}

	size := 0
	for _, n := range c.Namespaces {
		if n.Bytes < 0 || n.Snippet < 0 || n.Bytes > maxState-size {
			return c, fmt.Errorf("a namespace of %d bytes after %d snippets", n.Bytes, n.Snippet)
		}
		size += n.Bytes
	}
	switch {
	case decoder.More():
		return c, errors.New("there is more than one value")
	case c.Version != commitVersion:
		return c, fmt.Errorf("it has version %d, but this program reads version %d", c.Version, commitVersion)
	case c.Messages.Keep < 0 || c.History.Keep < 0 || c.Elapsed < 0 || c.Compactions < 0:
		return c, errors.New("it has negative numbers")
	}
	return c, nil
}

// follow returns the messages of a commit, given those of the previous one.
func (a *appended) follow(before []llm.Message) ([]llm.Message, error) {
	if a.Keep > len(before) {
		return nil, fmt.Errorf("it follows %d messages, but there are %d", a.Keep, len(before))
	}
	return slices.Concat(before[:a.Keep], a.New), nil
}

// open prepares the session and the messages for the first turn: at the beginning, or after the
// last turn of an earlier process.
func (l *loop) open(ctx context.Context, tools *repl.Tools, files []toolFile) error {
	if l.durable.isBegun() {
		return l.restore(ctx)
	}

	for i := range files {
		if err := files[i].load(ctx, l.session); err != nil {
			return err
		}
	}
	functions, notes := listFunctions(tools, files)
	opening, err := l.writeOpening(ctx, functions, notes)
	if err == nil {
		l.messages = opening
	}
	return err
}

// restore resumes the loop after the last turn of an earlier process with a complete state. The
// session must not have run any code yet.
func (l *loop) restore(ctx context.Context) error {
	d := &l.durable
	if err := l.takeOver(ctx, d.last()); err != nil {
		return fmt.Errorf("cannot go on after turn %d: %w", d.at.Turn, err)
	}
	d.messages, d.history = l.messages, l.history
	d.runLog.GoOnAfter(d.at.Turn)
	l.turn.Store(int64(d.at.Turn))
	l.noteChanges(d.last())
	return nil
}

// takeOver restores the messages, the namespaces and the accounts.
func (l *loop) takeOver(ctx context.Context, last *committed) (err error) {
	for i := range l.durable.commits {
		c := &l.durable.commits[i]
		if l.messages, err = c.Messages.follow(l.messages); err != nil {
			return err
		}
		if l.history, err = c.History.follow(l.history); err != nil {
			return err
		}
	}
	if len(l.messages) < preamble {
		return errors.New("it has no question")
	}
	if err := l.importState(ctx, last); err != nil {
		return err
	}

	l.compactions = last.Compactions
	l.children.Store(last.Children)
	l.loops.Store(last.Loops)
	l.trace.GoOnAfter(int(last.Children))
	l.failures = failures{last: last.Failure, n: last.Failures}
	l.last, l.reply = last.Last, last.Reply
	l.answers.Restore(last.Memory)
	l.ledger.Restore(last.Spent, last.Elapsed)
	return nil
}

// importState loads the namespaces of a turn into the session.
func (l *loop) importState(ctx context.Context, last *committed) error {
	if len(last.Namespaces) == 0 {
		return nil
	}
	data, err := l.durable.runLog.State(ctx, l.durable.at)
	if err != nil {
		return err
	}
	states := make([]tiers.State, len(last.Namespaces))
	for i, n := range last.Namespaces {
		if n.Bytes > len(data) {
			return errors.New("its state ends early")
		}
		states[i] = tiers.State{
			Language: n.Language, Format: n.Format, From: n.From, Snippet: n.Snippet, Data: data[:n.Bytes],
		}
		data = data[n.Bytes:]
	}

	report, err := l.session.Import(ctx, last.Variables, states...)
	if err != nil {
		return err
	}
	for _, left := range report.Left {
		l.tell(ledger.Event{Kind: ledger.EventWarning, Purpose: "resume", Error: fmt.Sprintf(
			"the value of %s could not be restored: %s", left.Name, left.Reason)})
	}
	return nil
}

// noteChanges tells the model what has changed since the turns in its messages.
func (l *loop) noteChanges(last *committed) {
	note := ""
	if last.Question != l.question {
		note = "The question has changed. It is now:\n" + l.question
	}
	if contract := l.describeContract(); contract != last.Contract {
		if contract == "" {
			contract = "any value"
		}
		note += "\n\nThe answer must now be as follows:\n" + contract
	}
	if note != "" {
		l.messages = conversation.AppendUser(l.messages, note)
	}
}

func (l *loop) describeContract() string {
	if l.contract == nil {
		return ""
	}
	return l.contract.Describe()
}

// commit commits a turn of the root, with its answer if it ends the loop.
func (l *loop) commit(ctx context.Context, turn int, answer json.RawMessage) error {
	d := &l.durable
	if l.depth > 0 || d.runLog == nil {
		return nil
	}
	messages := l.messages
	if answer != nil {
		messages = conversation.AppendReply(messages, l.reply, "This was the answer.")
	}
	c := committed{
		Version: commitVersion, Question: l.question, Moved: l.moved != nil, Contract: l.describeContract(),
		Messages: appendTo(d.messages, messages), History: appendTo(d.history, l.history),
		Memory: l.answers.Memory(), Variables: l.session.Variables(),
		Compactions: l.compactions, Children: l.children.Load(), Loops: l.loops.Load(),
		Failure: l.failures.last, Failures: l.failures.n, Last: l.last, Reply: l.reply, Answer: answer, Model: l.model,
		Spent: l.ledger.Spent(), Elapsed: l.ledger.Elapsed(),
	}
	state, err := l.exportState(ctx, &c)
	if err != nil {
		return err
	}
	if c.Lost != "" && !d.runLog.IsSpare() {
		l.tell(ledger.Event{Kind: ledger.EventWarning, Purpose: "commit", Error: fmt.Sprintf(
			"an interrupted run would repeat turn %d, with the answers that it has: %s", turn, c.Lost)})
	}

	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := d.runLog.Commit(ctx, runlog.Commit{Turn: turn, Data: data, State: state}); err != nil {
		return err
	}
	d.messages, d.history = messages, l.history
	return nil
}

// answered returns the answer with which an earlier process ended the loop, or nil. It ignores an
// answer to another question or under another contract, and refuses the answer of another model.
func (l *loop) answered() (json.RawMessage, error) {
	if !l.durable.isBegun() {
		return nil, nil
	}
	last := l.durable.last()
	switch {
	case last.Answer == nil, last.Question != l.question, last.Contract != l.describeContract():
		return nil, nil
	case last.Model != l.model:
		return nil, fmt.Errorf("the run takes another course than before: %s has answered it, and now it asks %s; "+
			"return to an earlier turn with rlm runs rewind, or start a new run under another name",
			last.Model, l.model)
	}
	return last.Answer, nil
}

// appendTo returns messages as an addition to known.
func appendTo(known, messages []llm.Message) appended {
	n := record.CountSame(known, messages)
	return appended{Keep: n, New: messages[n:]}
}

// exportState returns the data of the session's namespaces, and completes the commit. A session's
// state is stored only as a whole: if a part cannot be exported, the snippets run again.
func (l *loop) exportState(ctx context.Context, c *committed) ([]byte, error) {
	if l.durable.runLog.IsSpare() {
		c.Lost = "a run that is kept by the way keeps no state"
		return nil, nil
	}

	states, err := l.session.Export(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.Lost = err.Error()
		return nil, nil
	}

	var data []byte
	for _, s := range states {
		if len(s.Left) > 0 {
			c.Lost = fmt.Sprintf("%s cannot be kept: %s", s.Left[0].Name, s.Left[0].Reason)
		}
		c.Namespaces = append(c.Namespaces, namespace{
			Language: s.Language, Format: s.Format, From: s.From, Snippet: s.Snippet, Bytes: len(s.Data),
		})
		if len(s.Data) > maxState-len(data) {
			c.Lost = fmt.Sprintf("the variables have more than %d bytes", maxState)
			break
		}
		data = append(data, s.Data...)
	}
	if c.Lost != "" {
		c.Namespaces, data = nil, nil
	}
	return data, nil
}
