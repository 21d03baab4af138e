package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/repl/ledger"
)

// maxQuestion is the maximum size of a question, in bytes.
const maxQuestion = 1 << 20

type askIn struct {
	Question string `json:"question"`
	Handle   string `json:"session,omitempty" jsonschema:"from rlm_open; the question is about it"`
}

func (s *Server) addAsk(server *mcp.Server) {
	open := true
	addTool(s, server, &mcp.Tool{
		Name: "rlm_ask", Title: "Let a model answer a question about inputs of any size",
		Description: "Lets a model answer a question about the contexts of a session: it writes snippets, looks at " +
			"parts and asks models about them. It costs money, and takes seconds to minutes. Use rlm_exec for " +
			"whatever code alone can answer.",
		Annotations: &mcp.ToolAnnotations{OpenWorldHint: &open},
	}, func(ctx context.Context, req *mcp.CallToolRequest, in askIn) (*mcp.CallToolResult, Answer, error) {
		return run(ctx, s, req, func(ctx context.Context, c *call) (*mcp.CallToolResult, Answer, error) {
			return s.ask(ctx, c, in)
		})
	})
}

// ask answers rlm_ask.
func (s *Server) ask(ctx context.Context, c *call, in askIn) (_ *mcp.CallToolResult, out Answer, err error) {
	if strings.TrimSpace(in.Question) == "" || len(in.Question) > maxQuestion {
		return nil, out, fmt.Errorf("the question has %d bytes: give 1 to %d", len(in.Question), maxQuestion)
	}

	note := func(e ledger.Event) {
		if text := describeEvent(e); text != "" {
			c.note(text)
		}
	}
	if s.cfg.Answer == nil {
		out, err = s.askSession(ctx, in, note)
	} else {
		out, err = s.askElsewhere(ctx, in, note)
	}
	if err != nil {
		return nil, out, err
	}

	answered := out.Answer != nil
	text := out.Partial
	if answered {
		text = string(out.Answer.(json.RawMessage)) //nolint:forcetypeassert // set above
		var plain string
		if json.Unmarshal([]byte(text), &plain) == nil {
			text = plain
		}
	}
	return &mcp.CallToolResult{
		IsError: !answered, Content: []mcp.Content{&mcp.TextContent{Text: joinLines([]string{text, out.Reason})}},
	}, out, nil
}

// askSession answers a question in a handle's session.
func (s *Server) askSession(ctx context.Context, in askIn, note func(ledger.Event)) (out Answer, err error) {
	record := s.runs.begin("rlm_ask", in.Handle, in.Question)
	err = s.with(ctx, in.Handle, func(h *handle) error {
		progress := func(e ledger.Event) {
			record.add(e)
			note(e)
		}
		h.progress.Store(&progress)
		defer h.progress.Store(nil)

		outcome, err := h.session.Ask(ctx, in.Question)
		out = Answer{
			Status: string(outcome.Status), Partial: outcome.Partial, Reason: outcome.Reason, Turns: outcome.Turns,
			Spent: outcome.Spent,
		}
		if outcome.Answer != nil {
			out.Answer = outcome.Answer
		}
		return err
	})
	out.Run = record.ID
	s.runs.end(record, out, err)
	return out, err
}

// askElsewhere answers a question about a handle's contexts by a run.
func (s *Server) askElsewhere(ctx context.Context, in askIn, note func(ledger.Event)) (out Answer, err error) {
	var given []Given
	if in.Handle != "" {
		h, leave, err := s.handles.use(ctx, in.Handle)
		if err != nil {
			return out, err
		}
		given = h.given
		leave()
	}
	return s.cfg.Answer(ctx, in.Question, given, note)
}

// describeEvent describes an event as a progress message, or returns "" for an event that is not
// reported.
func describeEvent(e ledger.Event) string {
	switch e.Kind {
	case ledger.EventTurnStarted:
		return fmt.Sprintf("turn %d of loop %s", e.Turn, e.Node)
	case ledger.EventSnippet:
		return fmt.Sprintf("a snippet of loop %s ran in tier %s: %s", e.Node, e.Tier, e.Status)
	case ledger.EventCall:
		return "a model call of loop " + e.Node + " has ended"
	case ledger.EventTool:
		return "called " + e.Text
	case ledger.EventWaiting, ledger.EventWarning, ledger.EventRefusal:
		return e.Text + e.Error
	default:
		return ""
	}
}

type searchIn struct {
	Query string `json:"query" jsonschema:"words of what the function should do"`
	Limit int    `json:"limit,omitempty" jsonschema:"from 1 to 100, 10 by default"`
}

type searchOut struct {
	Tools []foundTool `json:"tools"`
}

type foundTool struct {
	Name      string `json:"name"`
	Signature string `json:"signature"`
	Doc       string `json:"doc"`
}

func (s *Server) addSearch(server *mcp.Server) {
	closed := false
	addTool(s, server, &mcp.Tool{
		Name: "rlm_search_tools", Title: "Find functions for snippets",
		Description: "Finds the functions that fit some words best. Snippets of rlm_exec call them by their names.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in searchIn) (*mcp.CallToolResult, searchOut, error) {
		out := searchOut{Tools: []foundTool{}}
		if in.Limit == 0 {
			in.Limit = 10
		}
		found, err := s.cfg.Servers.Find(in.Query, in.Limit)
		if err == nil {
			err = json.Unmarshal(found, &out.Tools)
		}
		return nil, out, err
	})
}
