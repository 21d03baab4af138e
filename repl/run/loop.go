package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/inputs"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// loop is one node of the tree: a model, a session, a conversation.
type loop struct {
	*tree
	node     string
	depth    int
	model    string
	question string
	inputs   inputs.List
	moved    *bigtext.Text // the question, if it is the last input
	fields   map[string]tiers.Value
	contract *schema.Contract
	agent    string // the agent for which the loop works; empty for none
	scope    string // the agent that limits the loop's tools; empty for all tools
	trace    *record.Trace

	session     *loopsession.Session
	executor    turns.Executor
	answers     *answers.Answers
	messages    []llm.Message // the system prompt, the question, then the turns
	turn        atomic.Int64
	children    atomic.Int64
	compactions int
	failures    failures
	last        string // the last output, for an ending without an answer
	history     []llm.Message
	notes       string // further instructions to the model, after its question
	reply       string // the last reply
	durable     durable
}

// preamble counts the messages before the turns.
const preamble = 2

// solve runs the loop to its end. If it returns an error, the outcome holds the results up to that
// point.
func (l *loop) solve(ctx context.Context) (outcome Outcome, err error) {
	if err := l.begin(ctx); err != nil {
		return Outcome{}, err
	}
	l.trace.Begin(l.metadata())
	defer func() {
		if outcome.Answer == nil {
			outcome.Partial = l.recoverPartial(ctx)
		}
		outcome.Turns, outcome.Compactions = int(l.turn.Load()), l.compactions
		outcome.Messages = l.listMessages(&outcome)
		var failed error
		outcome.Collected, failed = l.collect(ctx)
		err = errors.Join(err, failed, l.close())
	}()

	if answer, err := l.answered(); err != nil {
		return outcome, err
	} else if answer != nil {
		return Outcome{Status: ledger.StatusAnswered, Answer: answer}, nil
	}
	first := int(l.turn.Load()) + 1
	if first == 1 {
		if err := l.setFields(ctx); err != nil {
			return outcome, err
		}
	}
	for turn := first; turn <= l.cfg.MaxTurns; turn++ {
		l.turn.Store(int64(turn))
		if l.mustConclude() {
			return l.concludeInTime(ctx)
		}
		answer, err := l.take(runlog.EnterTurn(ctx, turn), turn)
		if err == nil {
			err = l.commit(ctx, turn, answer)
		}
		if answer != nil {
			return Outcome{Status: ledger.StatusAnswered, Answer: answer}, err
		}
		if err != nil {
			return outcome, err
		}
		if l.failures.isStuck(l.cfg.MaxErrors) {
			return Outcome{Status: ledger.StatusNoAnswer, Reason: l.failures.describe()}, nil
		}
	}

	return l.synthesize(ctx, "turns", fmt.Sprintf("the %d turns were used up", l.cfg.MaxTurns))
}

// begin opens the session and writes the first messages.
func (l *loop) begin(ctx context.Context) error {
	l.moveQuestion()
	if l.durable.isBegun() && l.durable.last().Moved {
		l.makeInput()
	}
	l.answers = l.newAnswers()
	if l.depth < l.cfg.MaxDepth {
		l.answers.Loop = l.answerSub
	}

	own, files := l.chooseTools()
	own, err := own.WithTables(l.cfg.SQL, l.inputs)
	if err != nil {
		return err
	}
	tools, err := own.With(l.answers.Functions()...)
	if err != nil {
		return err
	}
	question, err := texts.Quote(l.question)
	if err != nil {
		return err
	}
	l.session, err = loopsession.Open(ctx, loopsession.Config{
		Open: l.cfg.Open, Inputs: l.inputs, Tools: tools,
		Variables: map[string]tiers.Value{
			"query": question, "depth": tiers.Value(strconv.Itoa(l.depth)),
		},
		Limits: l.cfg.Limits, Deterministic: l.cfg.Deterministic, Out: l.keepsFiles(),
		Approve: l.approve(), Ledger: l.ledger, Tell: l.tell,
	})
	if err != nil {
		return err
	}
	l.executor = turns.Executor{Session: l.session, Tell: l.tell, Limits: l.cfg.Limits}
	if err := l.open(ctx, tools, files); err != nil {
		return errors.Join(err, l.close())
	}
	return nil
}

// approve returns the function that decides on tool calls, or nil if all are allowed.
func (l *loop) approve() func(context.Context, tiers.Call) error {
	if l.cfg.Approve == nil {
		return nil
	}
	return func(ctx context.Context, call tiers.Call) error { return l.cfg.Approve(ctx, call, l.ledger.Spent()) }
}

// newAnswers returns the Answers for the calls of the loop's snippets, without sub-loops.
func (l *loop) newAnswers() *answers.Answers {
	return &answers.Answers{
		Caller: l.caller, Inputs: l.inputs, Node: l.node, Depth: l.depth, Turn: &l.turn,
		Model: l.cfg.SubModel, Models: l.allowed, Agents: l.cfg.Agents, Retries: l.cfg.Retries,
		ErrorTexts:  l.cfg.ErrorTexts,
		CallsAtOnce: l.cfg.CallsAtOnce, Loops: calls.NewGate(l.cfg.LoopsAtOnce), Lacks: &l.lacks,
	}
}

// keepsFiles reports whether the user receives the files of this loop.
func (l *loop) keepsFiles() bool { return l.depth == 0 && l.cfg.Out != "" }

// collect copies the files of the loop to the user's folder, even after an interrupt.
func (l *loop) collect(ctx context.Context) (*tiers.Collected, error) {
	if !l.keepsFiles() || l.session == nil {
		return nil, nil //nolint:nilnil // documented: there is nothing to collect
	}
	got, err := l.session.Collect(context.WithoutCancel(ctx), l.cfg.Out)
	return &got, err
}

// close ends the session, once.
func (l *loop) close() (err error) {
	if l.session != nil {
		err = l.session.Close()
		l.session = nil
	}
	if l.moved != nil {
		err = errors.Join(err, l.moved.Close())
	}
	return err
}

// writeOpening writes the first messages. Their size does not depend on the size of the
// inputs.
func (l *loop) writeOpening(ctx context.Context, functions, notes string) ([]llm.Message, error) {
	inputs, err := l.inputs.Describe(ctx, !l.cfg.NoPreview)
	if err != nil {
		return nil, err
	}
	contract := ""
	if l.contract != nil {
		contract = l.contract.Describe()
	}

	system, err := prompt("system", map[string]any{
		"Functions": functions, "ToolNotes": notes, "Depth": l.depth, "MaxDepth": l.cfg.MaxDepth,
		"Turns": l.cfg.MaxTurns, "Contract": contract,
		"SubChars":   l.describeSubCalls(),
		"HasContext": len(l.inputs) > 0, "Out": l.keepsFiles(), "Instructions": l.instructions(),
	})
	if err != nil {
		return nil, err
	}
	first, err := prompt("question", map[string]any{
		"Question": l.question, "MovedTo": l.movedTo(), "Inputs": inputs,
		"Fields": strings.Join(slices.Sorted(maps.Keys(l.fields)), ", "), "Notes": l.notes,
	})
	if err != nil {
		return nil, err
	}
	return []llm.Message{
		{Role: llm.RoleSystem, Content: system}, {Role: llm.RoleUser, Content: first},
	}, nil
}

// describeSubCalls returns a sentence about how many characters the prompt of a sub-call may have,
// or "" if the number is unknown.
func (l *loop) describeSubCalls() string {
	if chars := l.caller.UsualChars(l.cfg.SubModel); chars > 0 {
		return quantity.Comma(chars)
	}
	return ""
}

func (l *loop) metadata() trajectory.Metadata {
	return trajectory.Metadata{
		RootModel: l.model, MaxDepth: l.cfg.MaxDepth, MaxIterations: l.cfg.MaxTurns,
		EnvironmentType: "rlm", EnvironmentKwargs: l.environment(), OtherBackends: l.allowed,
	}
}

// environment describes the loop's place in the tree.
func (l *loop) environment() map[string]any {
	place := map[string]any{"depth": l.depth, "node": l.node}
	if l.agent != "" {
		place["agent"] = l.agent
	}
	return place
}

// setFields binds the signature's inputs to variables.
func (l *loop) setFields(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(l.fields)) {
		if err := l.session.Assign(ctx, name, l.fields[name]); err != nil {
			return err
		}
	}
	return nil
}

// take performs one turn. It returns the answer, or nil if there is none yet.
func (l *loop) take(ctx context.Context, turn int) (json.RawMessage, error) {
	if err := l.compact(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	l.tell(ledger.Event{Kind: ledger.EventTurnStarted, Model: l.model})
	sent, response, err := l.askFitting(ctx, "turn", "")
	if err == nil {
		err = calls.CheckRefusal(l.model, response)
	}
	if err != nil {
		return nil, err
	}

	within, cancel := l.leaveTime(ctx)
	defer cancel()
	done, err := l.execute(within, readReply(response))
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		l.record(turn, sent, response.Text, &done, nil, begun)
		l.noteStopped(response.Text, &done)
		return nil, nil //nolint:nilnil // documented: no answer yet
	}
	if err != nil {
		l.record(turn, sent, response.Text, &done, nil, begun)
		return nil, err
	}

	if done.IsSilent {
		l.takeJSON(&done, response)
	}
	if done.IsSilent {
		if err := l.takePlain(&done, response); err != nil {
			return nil, err
		}
	}
	if err := l.checkFailed(ctx, &done); err != nil {
		return nil, err
	}
	answer := l.judge(&done)
	l.record(turn, sent, response.Text, &done, answer, begun)
	if answer != nil {
		l.tell(ledger.Event{Kind: ledger.EventAnswer, Text: texts.Show(answer)})
		return answer, nil
	}

	noteEnding(&done, response)
	l.failures.add(&done, l.cfg.MaxErrors, l.cfg.Limits)

	told, err := done.Feedback(
		ctx, l.session,
		turns.FeedbackOptions{Cap: l.cfg.FeedbackChars, Turn: turn, Turns: l.cfg.MaxTurns},
	)
	if err != nil {
		return nil, err
	}

	l.messages = conversation.AppendReply(l.messages, response.Text, told)
	return nil, nil //nolint:nilnil // documented: no answer yet
}

// askFitting asks the loop's model, with an instruction after the messages if one is given. If
// the server rejects the messages as too long, it asks once more with shorter ones. Sent are the
// messages of the last attempt.
func (l *loop) askFitting(
	ctx context.Context, purpose, order string,
) (sent []llm.Message, response llm.Response, err error) {
	write := func() []llm.Message {
		if order == "" {
			return l.messages
		}
		return conversation.AppendUser(l.messages, order)
	}

	sent = write()
	response, err = l.ask(ctx, purpose, sent)
	if !errors.Is(err, llm.ErrContextLength) {
		return sent, response, err
	}

	if err := l.shorten(ctx, err); err != nil {
		return sent, response, err
	}
	sent = write()
	response, err = l.ask(ctx, purpose, sent)
	return sent, response, err
}

// ask asks the loop's model.
func (l *loop) ask(
	ctx context.Context, purpose string, messages []llm.Message,
) (llm.Response, error) {
	if purpose == "turn" {
		purpose = "root"
		if l.depth > 0 {
			purpose = "sub"
		}
	}

	a := calls.Ask{
		Node: l.node, Depth: l.depth, Turn: int(l.turn.Load()), Purpose: purpose,
		Model: l.model, Messages: messages, Agent: l.agent,
	}

	if l.cfg.Stream && l.depth == 0 && l.cfg.Progress != nil {
		a.Stream = func(delta string) { l.tell(ledger.Event{Kind: ledger.EventDelta, Model: l.model, Text: delta}) }
	}
	response, err := l.caller.Complete(ctx, a)
	if purpose != "compaction" {
		l.reply = response.Text
	}
	return response, err
}

// execute runs a reply's code and keeps the last output.
func (l *loop) execute(ctx context.Context, reply turns.Reply) (turns.Turn, error) {
	done, err := l.executor.Execute(ctx, reply)
	if output := turns.JoinOutput(done.Ran); strings.TrimSpace(output) != "" {
		l.last = output
	}
	return done, err
}

// recoverPartial returns the partial answer of a loop that has no answer: the value of
// answer["content"], or else the last output. It takes up to two seconds beyond the run's time.
func (l *loop) recoverPartial(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if l.session == nil { // the session could not be restored
		return ""
	}
	ran, err := l.session.Run(ctx, loopsession.Block{
		Language: tiers.Python, Source: `answer.get("content") and FINAL(answer["content"])`,
		WithoutCalls: true, // answer may be an object with methods that the model wrote
	})

	if err == nil && ran.Final != nil {
		return texts.Show(ran.Final.Value)
	}
	return texts.Truncate(strings.TrimSpace(l.last), turns.DefaultFeedback)
}

// record writes a turn to the trajectory.
func (l *loop) record(
	turn int, sent []llm.Message, reply string, done *turns.Turn, answer json.RawMessage,
	begun time.Time,
) {
	if l.trace == nil {
		return
	}
	var final any
	if answer != nil {
		final = texts.Show(answer)
	}

	l.trace.Turn(record.Iteration{
		Iteration: turn, Prompt: sent, Response: reply, CodeBlocks: done.CodeBlocks(l.session),
		FinalAnswer: final, IterationTime: time.Since(begun).Seconds(),
	})
}

// tell emits an event of this loop.
func (l *loop) tell(e ledger.Event) {
	e.Node, e.Depth, e.Turn, e.Agent = l.node, l.depth, int(l.turn.Load()), l.agent
	l.caller.Tell(e)
}
