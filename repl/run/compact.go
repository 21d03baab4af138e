package run

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/tokens"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// compact replaces the turns with a summary once they fill their share of the model's window.
func (l *loop) compact(ctx context.Context) error {
	window, known := l.caller.Window(l.model)
	if !known || len(l.messages) <= preamble ||
		conversation.CountTokens(l.messages) <= int64(l.cfg.CompactAt*float64(window)) {
		return nil
	}
	return l.summarise(ctx, window)
}

// shorten shortens the messages, because a server rejected them as too long. If that is not
// possible, it returns the refusal.
func (l *loop) shorten(ctx context.Context, refusal error) error {
	l.tell(ledger.Event{Kind: ledger.EventWarning, Purpose: "compaction", Error: refusal.Error()})
	if len(l.messages) <= preamble {
		return l.restart(ctx, refusal)
	}
	window := conversation.CountTokens(l.messages)
	if known, ok := l.caller.Window(l.model); ok {
		window = min(window, known)
	}
	return l.summarise(ctx, window)
}

// summarise replaces the turns with a summary that fits a window. The variable history keeps all
// messages.
func (l *loop) summarise(ctx context.Context, window int64) error {
	order, err := prompt("compact", nil)
	if err != nil {
		return err
	}
	limit := int64(l.cfg.CompactAt * float64(window))

	// The model cannot summarise messages that do not fit in its window. If even the last message
	// does not fit on its own, there is no summary.
	whole := l.messages
	ask := conversation.AppendUser(
		conversation.TrimTurns(whole, preamble, int(3*window)), order,
	)
	response, err := l.ask(ctx, "compaction", ask)
	if err != nil && !errors.Is(err, llm.ErrContextLength) {
		return err
	}

	summary := strings.TrimSpace(response.Text)
	if summary == "" || response.Finish == llm.FinishRefusal {
		summary = "(none was written)" // the variables and history remain
	} else if lack := calls.DescribeCut(response); lack != "" {
		summary += "\n(this summary is not whole: " + lack + ")"
	}
	if err := l.session.Assign(ctx, "history", l.extendHistory(whole[preamble:])); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.tell(ledger.Event{Kind: ledger.EventWarning, Purpose: "compaction", Error: err.Error()})
	}

	l.compactions++
	// The summary also covers the last message, so a quarter of the share is enough for that
	// message. With more, the next turn would be summarised immediately. The share is in tokens.
	// The same number of characters is usually a quarter of the share, but all of it if each
	// character is a token.
	last := texts.Truncate(whole[len(whole)-1].Content, int(limit))
	if tokens.Estimate(last) > limit/2 {
		last = texts.Truncate(last, int(limit/4))
	}
	l.messages = conversation.AppendReply(
		whole[:preamble],
		"Summary of my work so far:\n"+summary,
		"Your earlier messages were replaced by this summary; all of them are in `history`, a "+
			"list of dicts with role and content. "+
			"Your variables are as you left them. What came last:\n"+last,
	)

	l.tell(ledger.Event{Kind: ledger.EventCompaction, Text: summary})
	return nil
}

// listMessages returns the question, all turns and the ending of the loop.
func (l *loop) listMessages(outcome *Outcome) []llm.Message {
	if len(l.messages) < preamble {
		return nil
	}
	turns := l.messages[preamble:]
	if l.compactions > 0 {
		turns = turns[2:] // the last summary and its frame
	}
	all := slices.Concat([]llm.Message{{Role: llm.RoleUser, Content: l.question}}, l.history, turns)

	end := outcome.Text()
	if outcome.Answer == nil {
		end = "(no answer)"
	} else if l.reply != "" {
		all = append(all, llm.Message{Role: llm.RoleAssistant, Content: l.reply})
	}
	return append(all, llm.Message{Role: llm.RoleAssistant, Content: end})
}

// extendHistory adds the messages since the last compaction to the history and returns the whole
// history.
func (l *loop) extendHistory(turns []llm.Message) []llm.Message {
	if l.compactions > 0 {
		turns = turns[2:] // the last summary and its frame
	}
	l.history = append(l.history, turns...)
	return l.history
}
