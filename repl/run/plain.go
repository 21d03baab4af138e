package run

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// plainNext is the feedback on a first reply in words, if there is no input to look at.
const plainNext = "Your reply had neither code nor a final answer. If the answer needs code, write it in a ```repl " +
	"block. If words are enough, reply with the answer alone: your next reply in words is taken as the answer."

// takePlain accepts a reply in words as the answer, if there is nothing that the model would need a
// snippet for, and if plainNext has asked the model once for an answer in words.
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

// hasMaterial reports whether the loop has inputs, tools or agents, which only a snippet can use.
// For a sub-loop it returns true, because code receives its answer and could not tell an answer
// from an excuse.
func (l *loop) hasMaterial() bool {
	return l.depth > 0 || len(l.inputs) > 0 || len(l.fields) > 0 || l.cfg.Tools != nil || len(l.cfg.ToolFiles) > 0 ||
		len(l.cfg.Agents) > 0
}

// wasAskedForWords reports whether the last feedback is plainNext. Output of code cannot be
// mistaken for it, because output is never on the second line.
func (l *loop) wasAskedForWords() bool {
	_, told, _ := strings.Cut(l.messages[len(l.messages)-1].Content, "\n")
	return strings.HasPrefix(told, plainNext)
}
