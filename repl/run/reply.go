package run

import (
	"github.com/rlmhq/rlm/repl/internal/finish"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/llm"
)

// readReply finds code and answers in a reply, without parts that a truncated reply left
// incomplete. An answer in words next to a tool call is dropped, because the model has not seen the
// tool's result.
func readReply(response llm.Response) turns.Reply {
	reply := turns.Extract(response.Text)
	switch response.Finish {
	case llm.FinishStop:
	case finish.ToolCalls:
		reply.Final = nil
	default:
		reply.DropUnfinished()
	}
	return reply
}

// noteEnding adds a note for the model if its reply is incomplete or did nothing.
func noteEnding(done *turns.Turn, response llm.Response) {
	isSilent := done.IsSilent && len(done.Notes) == 0
	isCall := response.Finish == finish.ToolCalls
	switch {
	case response.Finish != llm.FinishStop && !isCall:
		done.Notes = append(done.Notes, turns.ReplyCut)
	case isSilent && isCall:
		done.Notes = append(done.Notes, turns.ToolCalled)
	case isSilent:
		done.Notes = append(done.Notes, turns.NothingDone)
	}
}
