package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Turn is the outcome of one reply.
type Turn struct {
	// Ran is the code that ran, in order. Skipped counts blocks that did not run because an
	// earlier one failed or gave the answer.
	Ran     []ledger.Snippet
	Skipped int
	// Final is the answer, or nil.
	Final *tiers.Final
	// Notes are for the model.
	Notes []string
	// Broke reports that a tier broke, so variables may be lost.
	Broke bool
	// IsSilent reports that the reply contained no code and no answer.
	IsSilent bool
	// Refused reports that an answer was not accepted; the notes explain why.
	Refused bool

	why    string   // for the user: why an answer or code was refused
	seen   string   // the output of earlier turns
	unread []string // the notes on ignored parts of the reply, such as code in another language
}

// Refuse drops the answer. Why explains the reason to the user, and note explains it to the model.
func (t *Turn) Refuse(why, note string) {
	t.Final, t.Refused, t.why = nil, true, why
	t.Notes = append(t.Notes, note)
}

// volatile matches the parts of an error that vary between occurrences of the same failure.
var volatile = lazyregexp.New(`<snippet \d+>|\bline \d+|0x[0-9a-f]+`)

// Failure describes why the turn made no progress, or returns "" if it made progress. Turns that
// fail in the same way have the same description.
func (t *Turn) Failure() string {
	text := ""
	if failed := t.Failed(); failed != nil {
		text = cmp.Or(record.FormatFailure(failed), "the code ended as "+string(failed.Status)+" "+string(failed.Limit))
	} else if len(t.Ran) == 0 || t.Refused {
		text = strings.Join(t.Notes, " ")
	}
	return strings.TrimSpace(volatile.ReplaceAllString(text, "…"))
}

// Failed returns the code that ended early, or nil if there is none.
func (t *Turn) Failed() *ledger.Snippet {
	i := slices.IndexFunc(t.Ran, func(r ledger.Snippet) bool { return record.HasFailed(&r) })
	if i < 0 {
		return nil
	}
	return &t.Ran[i]
}

// Shows reports whether the output and the errors of the turn show every string of a list to the
// model.
func (t *Turn) Shows(list []string) bool {
	var shown strings.Builder
	for i := range t.Ran {
		shown.WriteString(t.Ran[i].Stdout + record.FormatTraceback(&t.Ran[i]))
	}
	return !slices.ContainsFunc(list, func(text string) bool {
		return !strings.Contains(shown.String(), strings.TrimPrefix(text, "Error: "))
	})
}

// execute runs a reply's code block by block until one fails or answers, and then decides whether
// an answer in its text is accepted. An answer in a reply whose code failed is not accepted,
// because the model wrote it before the failure.
//
// Notes inform the model about code that no tier may run. An error means that the context ended
// or that a tier broke.
func execute(ctx context.Context, s *loopsession.Session, r Reply, seen string) (Turn, error) {
	t := Turn{seen: seen}
	err := t.run(ctx, s, r)
	switch {
	case t.Final == nil:
	case untouched.Match(t.Final.Value) || isEmptyAnswer(t.Final):
		t.Refuse("the variable answer was never set",
			"The variable answer is as you found it, so FINAL was not accepted: "+
				`put your answer into answer["content"], or give it to FINAL.`)
	case isPlaceholder(t.Final.Value):
		t.Refuse("the answer was a placeholder",
			"FINAL was not accepted: it has no answer in it. Pass the value itself.")
	case r.TakenBack:
		t.Refuse("the reply took its answer back",
			"Your answer was not taken, because your text takes it back. "+
				"Check it, then give it again with nothing behind it.")
	}
	return t, err
}

// settleBare uses the session to determine whether an unfenced text is code.
func (r *Reply) settleBare(ctx context.Context, s *loopsession.Session) error {
	if len(r.Bare) == 0 {
		return nil
	}
	list, err := json.Marshal(r.Bare) // also valid as a Python list of strings
	if err != nil {
		return err
	}
	source := fmt.Sprintf("FINAL(%s(%s))", protocol.FindCode, list)
	ran, err := s.Run(ctx, loopsession.Block{Language: tiers.Python, Source: source})
	if err != nil && !errors.Is(err, router.ErrNoTier) {
		return err
	}

	found := -1
	if ran.Final != nil && json.Unmarshal(ran.Final.Value, &found) == nil &&
		found >= 0 && found < len(r.Bare) {
		r.runBare(r.Bare[found])
	}
	return nil
}

// runBare makes an unfenced text the code of the reply.
func (r *Reply) runBare(source string) {
	source, r.Final = cutAnswer(source)
	r.Blocks = []loopsession.Block{{Language: tiers.Python, Source: source}}
}

// settleUnread handles text that looks like code but is not Python according to the session. The
// text runs, so that the model receives the error, unless it would run with a different meaning.
func (r *Reply) settleUnread() {
	if !otherMeaning.MatchString(r.Unread) {
		r.runBare(r.Unread)
		return
	}
	name := cmp.Or(guessLanguage(r.Unread), "another language")
	r.Notes = append(r.Notes, "Your code was not run. This looks like "+name+": "+onlyPython)
}

// untouched matches the initial value of the variable answer. Some models submit it although they
// mean another variable.
var untouched = lazyregexp.New(`^\{"content": ?"", ?"ready": ?false\}$`)

// isPlaceholder reports whether an answer is a placeholder from the prompts.
func isPlaceholder(answer json.RawMessage) bool {
	var text string
	return json.Unmarshal(answer, &text) == nil && text != "" && placeholder.MatchString(text)
}

// isEmptyAnswer reports whether a snippet set answer["ready"] without content.
func isEmptyAnswer(f *tiers.Final) bool {
	return f.Name == "answer" && (string(f.Value) == `""` || string(f.Value) == "null")
}

// run runs the code of a reply, and then decides whether an answer in its text is accepted.
func (t *Turn) run(ctx context.Context, s *loopsession.Session, r Reply) error {
	if err := r.settleBare(ctx, s); err != nil {
		return err
	}
	if len(r.Blocks) == 0 && r.Unread != "" {
		r.settleUnread()
	}
	t.IsSilent = len(r.Blocks) == 0 && r.Final == nil
	t.Notes, t.unread = slices.Clone(r.Notes), r.Notes
	source := "" // of the blocks that ran
	for i, block := range r.Blocks {
		ran, err := s.Run(ctx, block)
		if err != nil {
			if err := t.noteRefusal(err); err != nil {
				if ctx.Err() != nil {
					// If the run is out of time, the turn shows how far its snippet got.
					t.Ran = append(t.Ran, ran)
				}
				return err
			}
			t.Skipped = len(r.Blocks) - i - 1
			return nil
		}

		source += block.Source + "\n"
		t.Ran = append(t.Ran, ran)
		if ran.Final != nil && statesAnswer(source) && t.isUnseen(ran.Final.Value) &&
			!isCalculated(source, ran.Final.Value) {
			t.Skipped = len(r.Blocks) - i - 1
			t.Refuse("the answer was written before the output of the code",
				"The answer in your code was not taken: you wrote it before you saw the output of "+
					"your code, which does not contain it; read the output above, then answer.")
			break
		}

		t.Final = ran.Final
		if record.HasFailed(&ran) || ran.Final != nil {
			t.Skipped = len(r.Blocks) - i - 1
			t.compareBlocks(r.Blocks[i], r.Blocks[i+1:])
			break
		}
	}

	failed := t.Failed()
	if failed != nil {
		if hint := hintLanguage(failed); hint != "" {
			t.Notes = append(t.Notes, hint)
		}
	}

	if r.Final == nil || t.Refused {
		return nil
	}
	if t.Final != nil {
		return t.compareText(ctx, s, r.Final)
	}
	if failed != nil {
		t.Refuse("the code failed",
			r.Final.Call+" in your text was not taken, because your code failed. Mend it, then answer.")
		return nil
	}
	if len(r.Notes) > 0 {
		return nil
	}

	return t.settleText(ctx, s, r.Final)
}

// noteRefusal adds a note if no tier may run a snippet. It returns any other error.
func (t *Turn) noteRefusal(err error) error {
	if !errors.Is(err, router.ErrNoTier) {
		return err
	}
	t.why = err.Error()
	t.Notes = append(t.Notes, "The code was not run: "+err.Error())
	return nil
}

// NothingDone is the feedback on a reply without code and without an answer.
const NothingDone = "Your reply had neither code nor a final answer, so nothing happened. " +
	"Write code in a ```repl block, or give your answer with FINAL(...)."

// Feedback returns the feedback on a turn and keeps its output in the session. The run continues
// if the session cannot hold the output, for example because its memory is full.
func (t *Turn) Feedback(ctx context.Context, s *loopsession.Session, o FeedbackOptions) (string, error) {
	if output := JoinOutput(t.Ran); output != "" {
		name, err := keepOutput(ctx, s, o.Turn, output)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			o.Notes = append(slices.Clone(o.Notes),
				"The whole output could not be kept: "+texts.Truncate(err.Error(), 300))
		case isCut(t.Ran, o.Cap):
			o.Kept = name
		}
	}

	o.Notes = append(slices.Clone(t.Notes), o.Notes...)
	return writeFeedback(t.Ran, t.Skipped, o), nil
}

// CodeBlocks returns the record of each piece of a turn's code.
func (t *Turn) CodeBlocks(s *loopsession.Session) []trajectory.CodeBlock {
	blocks := make([]trajectory.CodeBlock, 0, len(t.Ran))
	for i := range t.Ran {
		blocks = append(blocks, record.BlockOf(&t.Ran[i], s.Variables()))
	}
	return blocks
}

// keepOutput binds _stdout_N to the whole output of turn N, for later snippets.
func keepOutput(
	ctx context.Context, s *loopsession.Session, turn int, output string,
) (name string, err error) {
	name = fmt.Sprintf("_stdout_%d", turn)
	return name, s.Assign(ctx, name, output)
}
