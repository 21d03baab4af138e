package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addTool adds a tool whose arguments are a struct. Clients receive a plain schema, because Gemini
// and old clients support neither lists of types nor schemas without a type. The server accepts
// more: null for each optional argument, and any JSON for an argument of type any, which is a
// string in the plain schema. The SDK does not get the schema of the result, because it would then
// decode and encode each result, and so lose digits of its numbers.
func addTool[In, Out any](s *Server, server *mcp.Server, tool *mcp.Tool, h mcp.ToolHandlerFor[In, Out]) {
	accepted, shown := schemaOf[In](nil), schemaOf[In](&jsonschema.Schema{Type: "string"})
	acceptNull(accepted)
	makePlain(shown)

	tool.InputSchema = accepted
	mcp.AddTool(server, tool, func(
		ctx context.Context, req *mcp.CallToolRequest, in In,
	) (*mcp.CallToolResult, any, error) {
		return h(ctx, req, in)
	})
	s.shown[tool.Name] = shownSchemas{arguments: shown, result: schemaOf[Out](nil)}
}

// shownSchemas are the schemas of a tool that are sent to clients.
type shownSchemas struct{ arguments, result *jsonschema.Schema }

// schemaOf returns the schema of a struct. If ofAny is not nil, it is the schema of members of type
// any.
func schemaOf[In any](ofAny *jsonschema.Schema) *jsonschema.Schema {
	options := &jsonschema.ForOptions{}
	if ofAny != nil {
		options.TypeSchemas = map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[any](): ofAny}
	}
	schema, err := jsonschema.For[In](options)
	if err != nil {
		panic(fmt.Sprintf("the arguments of a tool have no schema: %v", err)) // a mistake in this package
	}
	return schema
}

// acceptNull allows each optional member to be null.
func acceptNull(schema *jsonschema.Schema) {
	required := map[string]bool{}
	for _, name := range schema.Required {
		required[name] = true
	}
	for name, member := range schema.Properties {
		if !required[name] && member.Type != "" {
			member.Type, member.Types = "", []string{"null", member.Type}
		}
		acceptNull(member)
	}
	if schema.Items != nil {
		acceptNull(schema.Items)
	}
}

// makePlain reduces each list of types to one type, and removes the rules about additional members.
func makePlain(schema *jsonschema.Schema) {
	for _, name := range schema.Types {
		if name != "null" {
			schema.Type, schema.Types = name, nil
			break
		}
	}
	schema.AdditionalProperties = nil
	for _, member := range schema.Properties {
		makePlain(member)
	}
	if schema.Items != nil {
		makePlain(schema.Items)
	}
}

// showPlain replaces the schemas in a list of tools with those for clients.
func (s *Server) showPlain(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		list, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return result, err
		}

		for i, tool := range list.Tools {
			if shown, has := s.shown[tool.Name]; has {
				plain := *tool
				plain.InputSchema, plain.OutputSchema = shown.arguments, shown.result
				list.Tools[i] = &plain
			}
		}
		return list, nil
	}
}

// nameArguments adds the names of a tool's arguments to the result of a call with unknown
// arguments.
func (s *Server) nameArguments(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		called, ok := result.(*mcp.CallToolResult)
		params, isCall := req.GetParams().(*mcp.CallToolParamsRaw)
		if err != nil || !ok || !isCall || !called.IsError || len(called.Content) != 1 {
			return result, err
		}
		shown := s.shown[params.Name].arguments
		if shown == nil {
			return result, err
		}

		text, ok := called.Content[0].(*mcp.TextContent)
		if ok && strings.HasPrefix(text.Text, `validating "arguments"`) {
			names := slices.Sorted(maps.Keys(shown.Properties))
			text.Text += fmt.Sprintf("; the arguments of %s are %s", params.Name, strings.Join(names, ", "))
		}
		return called, nil
	}
}

// json returns the value of a context. It may also be a string that contains JSON, because the
// plain schema only allows strings.
func (c *contextIn) json() (json.RawMessage, error) {
	value, err := json.Marshal(c.Value)
	var text string
	if err != nil || json.Unmarshal(value, &text) != nil {
		return value, err
	}

	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("the value %.40q is not JSON: give a text as text", text)
	}
	return json.RawMessage(text), nil
}
