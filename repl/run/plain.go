package run

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// plainNext is the feedback on a first reply in words, where there is nothing to look at.
const plainNext = "Your reply had neither code nor a final answer. If the answer needs code, write it in a ```repl " +
	"block. If words are enough, reply with the answer alone: your next reply in words is taken as the answer."

// takePlain accepts a reply in words as the answer, if there is no input that the model would have
// to look at, and if the model has been asked once whether it means that.
func (l *loop) takePlain(done *turns.Turn, response llm.Response) error {
	if l.hasMaterial() || response.Finish != llm.FinishStop || len(done.Notes) > 0 ||
		turns.IsPutOff(response.Text) || turns.RefuseWords(response.Text) != "" {
		return nil
	}
	if !l.wasAskedForWords() {
		done.Notes = append(done.Notes, plainNext)
		return nil
	}

	value, err := texts.Quote(strings.TrimSpace(response.Text))
	if err != nil {
		return err
	}
	done.Final, done.IsSilent = &tiers.Final{Value: value}, false
	return nil
}

// hasMaterial reports whether the loop has anything that only a snippet can look at or use. A
// sub-loop's words go to code, which could not tell an answer from an excuse.
func (l *loop) hasMaterial() bool {
	return l.depth > 0 || len(l.inputs) > 0 || len(l.fields) > 0 || l.cfg.Tools != nil || len(l.cfg.ToolFiles) > 0 ||
		len(l.cfg.Agents) > 0
}

// wasAskedForWords reports whether the last feedback is plainNext. Output of code cannot pass for
// it: it is never the second line.
func (l *loop) wasAskedForWords() bool {
	_, told, _ := strings.Cut(l.messages[len(l.messages)-1].Content, "\n")
	return strings.HasPrefix(told, plainNext)
}
