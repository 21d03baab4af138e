package rlm

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/repl"
)

// addGraph adds the functions over a graph to tools. Without a graph, there are none, and the
// closer is nil. Close it after the task or the session.
func addGraph(
	ctx context.Context, tools *repl.Tools, g *graph.Graph, o graph.ToolOptions,
) (*repl.Tools, io.Closer, error) {
	if g == nil {
		return tools, nil, nil
	}
	box, err := graph.NewToolbox(ctx, g, o)
	if err != nil {
		return nil, nil, err
	}
	tools, err = tools.With(box.Tools()...)
	return tools, box, err
}

// withGraph calls use with tools and the functions over a graph, if there is one.
func withGraph(
	ctx context.Context, tools *repl.Tools, g *graph.Graph, o graph.ToolOptions,
	use func(*repl.Tools) error,
) error {
	tools, box, err := addGraph(ctx, tools, g, o)
	if err != nil {
		return refuse(ctx, err)
	}
	if box != nil {
		defer box.Close() // scratch graphs: nothing is lost
	}
	return use(tools)
}
