package turns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
)

// RefuseWords returns the reason why a reply is not an answer in words, or "" if it may be one. It
// is for replies outside of a loop, because a loop would run the code and ask again.
func RefuseWords(reply string) string {
	r := Extract(reply)
	text := strings.TrimSpace(reply)
	switch {
	case text == "":
		return "the reply is empty"
	case texts.IsToolCall(text):
		return "the reply is a call of a tool that does not exist"
	case len(r.Blocks) > 0 || r.Unread != "" || r.Final != nil:
		return "the reply is code"
	case len(r.Notes) > 0:
		return retell(r.Notes[0])
	case anyFinal.MatchString(text):
		return "the reply talks about an answer without giving one"
	case r.TakenBack || doubt.MatchString(text[max(0, len(text)-maxDoubt):]):
		return "the reply takes back what it says"
	}
	return ""
}

// doubt matches words with which a model retracts its previous words.
var doubt = lazyregexp.New(
	`(?i)(?:^|[.!?:;,)…—–-]|\n)[\s*_>]*(?:wait|hold on|hmm+|oops|actually|scratch that|no,|on second thought)\b` +
		`|\b(?:this|that|it|which|answer|result)(?: is|'s| was| seems| looks) (?:probably |clearly |likely )?` +
		`(?:wrong|incorrect|mistaken|not (?:right|correct|(?:the|my) (?:final )?answer))\b` +
		`|\bi (?:was wrong|made an? (?:error|mistake))\b` +
		`|\b(?:let me|i(?:'ll| will)?(?: need to| should| must| have to)?) ` +
		`(?:re-?(?:count|check|do|compute|calculate|think|consider|examine|run|verify)|` +
		`double[- ]check|verify|check|correct|fix|redo|try again)\b`)

// maxDoubt bounds the end of a reply in words that is searched for doubts, in bytes.
const maxDoubt = 200

// compareBlocks rejects the answer of a block if a later block, which did not run, has a
// different one.
func (t *Turn) compareBlocks(answered loopsession.Block, behind []loopsession.Block) {
	if t.Final == nil {
		return
	}
	given := listFinals(answered.Source)
	for _, block := range behind {
		for _, other := range listFinals(block.Source) {
			if !slices.Contains(given, other) {
				t.Refuse("the reply had two answers", fmt.Sprintf(
					"Your reply has two answers: a block gave one, and a block behind it has %s. "+
						"None was taken. Give one.", texts.Truncate(onOneLine(other), 80)))
				return
			}
		}
	}
}

// listFinals returns the calls in code that give an answer, except those in comments.
func listFinals(source string) (calls []string) {
	for _, at := range anyFinal.FindAllStringIndex(source, maxTries) {
		if strings.HasPrefix(strings.TrimSpace(lineBefore(source, at[0])), "#") {
			continue
		}
		end := at[1] + max(0, pysyntax.Balanced(source[at[1]:]))
		calls = append(calls, strings.TrimSpace(source[at[0]:end])+")")
	}
	return calls
}

// compareText rejects the answer of code if the text around it gives a different one. Text without
// an answer is ignored.
func (t *Turn) compareText(ctx context.Context, s *loopsession.Session, f *textFinal) error {
	var other Turn
	if err := other.settleText(ctx, s, f); err != nil || other.Final == nil {
		return err
	}
	byCode, byText := texts.Show(t.Final.Value), texts.Show(other.Final.Value)
	if byCode != byText {
		t.Refuse("the reply had two answers", fmt.Sprintf(
			"Your reply has two answers: your code gave %s, and %s in your text gives %s. "+
				"None was taken. Give one.", texts.Truncate(byCode, 80), f, texts.Truncate(byText, 80)))
	}
	return nil
}
