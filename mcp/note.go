package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// noteRequests reports how each request ended.
func (s *Server) noteRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		outcome := "ok"
		if called, is := result.(*mcp.CallToolResult); is && called != nil && called.IsError {
			outcome = "failed"
		}
		if err != nil {
			outcome = "error"
		}

		request := ""
		if extra := req.GetExtra(); extra != nil {
			request = extra.Header.Get("X-Request-Id")
		}
		s.cfg.Note(request, method, objectOf(req.GetParams()), outcome)
		return result, err
	}
}

// objectOf returns the object that a request's parameters name, or "".
func objectOf(params mcp.Params) string {
	switch p := params.(type) {
	case *mcp.CallToolParamsRaw:
		if p != nil {
			return p.Name
		}
	case *mcp.ReadResourceParams:
		if p != nil {
			return p.URI
		}
	case *mcp.GetPromptParams:
		if p != nil {
			return p.Name
		}
	case *taskParams:
		if p != nil {
			return p.TaskID
		}
	}
	return ""
}
