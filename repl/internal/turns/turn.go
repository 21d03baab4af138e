package turns

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/internal/trajectory"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Turn is the outcome of one reply.
type Turn struct {
	// Ran is the code that ran, in order; Skipped counts blocks that did not,
	// because one before them failed or gave the answer.
	Ran     []ledger.Snippet
	Skipped int
	// Final is the answer, nil if there was none.
	Final *tiers.Final
	// Notes are for the model.
	Notes []string
	// Broke says that a tier broke, so that variables may be gone.
	Broke bool
}

// Failed returns the code that did not run to its end, nil if all did.
func (t *Turn) Failed() *ledger.Snippet {
	i := slices.IndexFunc(t.Ran, func(r ledger.Snippet) bool { return record.HasFailed(&r) })
	if i < 0 {
		return nil
	}
	return &t.Ran[i]
}

// execute runs a reply's code, block after block until one fails or answers, and
// then settles an answer in its text. An answer beside code that
// failed does not count: the model wrote it before it knew.
//
// Notes tell the model about code that no tier may run. An error means that the context
// ended or that a tier broke.
func execute(ctx context.Context, s *repl.Session, r Reply) (Turn, error) {
	t, err := runReply(ctx, s, r)
	if t.Final != nil && untouched.Match(t.Final.Value) {
		t.Final = nil
		t.Notes = append(t.Notes, "The variable answer is as you found it, so FINAL was not accepted: "+
			`put your answer into answer["content"], or give it to FINAL.`)
	}
	return t, err
}

// untouched is what the variable answer holds before a snippet has put anything into
// it. Some models hand it over although they mean another variable.
var untouched = regexp.MustCompile(`^\{"content": ?"", ?"ready": ?false\}$`)

func runReply(ctx context.Context, s *repl.Session, r Reply) (Turn, error) {
	var t Turn
	for i, block := range r.Blocks {
		ran, err := s.Run(ctx, block)
		if err != nil {
			if err := t.noteRefusal(err); err != nil {
				if ctx.Err() != nil {
					// A run that is out of time shows how far its snippet came.
					t.Ran = append(t.Ran, ran)
				}
				return t, err
			}
			t.Skipped = len(r.Blocks) - i - 1
			return t, nil
		}

		t.Ran = append(t.Ran, ran)
		if ran.Final != nil {
			t.Final = ran.Final
		}
		if record.HasFailed(&ran) || ran.Final != nil {
			t.Skipped = len(r.Blocks) - i - 1
			break
		}
	}

	if r.Final == nil || t.Final != nil {
		return t, nil
	}
	if t.Failed() != nil {
		t.Notes = append(t.Notes, r.Final.Call+
			" in your text was not taken, because your code failed. Mend it, then answer.")
		return t, nil
	}

	err := t.settleText(ctx, s, r.Final)
	return t, err
}

// noteRefusal notes that no tier may run a snippet. It returns any other error.
func (t *Turn) noteRefusal(err error) error {
	if !errors.Is(err, router.ErrNoTier) {
		return err
	}
	t.Notes = append(t.Notes, "The code was not run: "+err.Error())
	return nil
}

// signsOfText are the exceptions of an argument that was text after all.
var signsOfText = []string{"SyntaxError", "NameError", "IndentationError"}

// settleText finds the meaning of an answer in text. FINAL(x) may name a variable,
// be a Python expression, or be text as it stands: the session decides, and what
// it cannot read is text.
func (t *Turn) settleText(ctx context.Context, s *repl.Session, f *textFinal) error {
	if value, ok := f.literal(); ok && f.Call != "FINAL_VAR" {
		t.Final = &tiers.Final{Value: value}
		return nil
	}
	source := f.source()
	if source == "" {
		t.Final = &tiers.Final{Value: f.text()}
		return nil
	}

	ran, err := s.Run(ctx, repl.Block{Language: tiers.Python, Source: source})
	if err != nil {
		return t.noteRefusal(err)
	}
	switch {
	case ran.Final != nil:
		t.Final = ran.Final
	case f.Call == "FINAL_VAR":
		t.Ran = append(t.Ran, ran) // it lists the variables there are
	case ran.Exception != nil && slices.Contains(signsOfText, ran.Exception.Type):
		t.Final = &tiers.Final{Value: f.text()}
	default:
		t.Ran = append(t.Ran, ran)
	}

	return nil
}

// NothingDone is the feedback on a reply with neither code nor an answer.
const NothingDone = "Your reply had neither code nor a final answer, so nothing happened. " +
	"Write code in a ```repl block, or give your answer with FINAL(...)."

// Feedback returns the feedback on a turn and keeps its output in the session. The run goes
// on if the session cannot take the output, for example because its memory is full.
func (t *Turn) Feedback(ctx context.Context, s *repl.Session, o FeedbackOptions) (string, error) {
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

// CodeBlocks returns the records of a turn's code.
func (t *Turn) CodeBlocks(s *repl.Session) []trajectory.CodeBlock {
	blocks := make([]trajectory.CodeBlock, 0, len(t.Ran))
	for i := range t.Ran {
		blocks = append(blocks, record.BlockOf(&t.Ran[i], s.Variables()))
	}
	return blocks
}

// keepOutput binds _stdout_N to the whole output of turn N, for the snippets after it.
func keepOutput(
	ctx context.Context, s *repl.Session, turn int, output string,
) (name string, err error) {
	name = fmt.Sprintf("_stdout_%d", turn)
	return name, s.Assign(ctx, name, output)
}
