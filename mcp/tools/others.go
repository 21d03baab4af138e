package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/tiers"
)

// maxListed is the maximum number of resources or prompts in a list.
const maxListed = 10_000

// textParam returns a required parameter of type str.
func textParam(name string) param { return param{name: name, given: name, kind: "str", required: true} }

// textOf returns a string argument.
func textOf(args map[string]json.RawMessage, name string) (text string, err error) {
	if args[name] == nil {
		return "", fmt.Errorf("the argument %s is missing", name)
	}
	if err := json.Unmarshal(args[name], &text); err != nil {
		return "", fmt.Errorf("the argument %s must be a text", name)
	}
	return text, nil
}

// maxShort is the maximum size, in bytes of JSON, of an argument with a name or a few words.
const maxShort = 1 << 20

// shortTextOf returns an argument with a name or a few words.
func shortTextOf(args map[string]json.RawMessage, name string) (string, error) {
	if len(args[name]) > maxShort {
		return "", fmt.Errorf("the argument %s has more than %d bytes", name, maxShort)
	}
	return textOf(args, name)
}

// resourceTools returns functions for a server's resources.
func resourceTools(s *server, taken map[string]bool) []*tool {
	list := &tool{
		server: s, name: makeName("list_resources", "_mcp", taken),
		doc: "Returns the resources of the server, and its templates of addresses, as dicts.",
		call: func(ctx context.Context, _ map[string]json.RawMessage) (tiers.Value, error) {
			all := []any{}
			for r, err := range s.session.Resources(ctx, nil) {
				if err != nil {
					return nil, err
				}
				if all = append(all, r); len(all) > maxListed {
					return nil, fmt.Errorf("the server has more than %d resources", maxListed)
				}
			}
			for r, err := range s.session.ResourceTemplates(ctx, nil) {
				if err != nil {
					break // many servers have none, and return an error
				}
				if all = append(all, r); len(all) > maxListed {
					return nil, fmt.Errorf("the server has more than %d resources", maxListed)
				}
			}
			return json.Marshal(all)
		},
	}
	read := &tool{
		server: s, name: makeName("read_resource", "_mcp", taken), params: []param{textParam("uri")},
		doc: "Returns the text of a resource, or a list of its parts.",
		call: func(ctx context.Context, args map[string]json.RawMessage) (tiers.Value, error) {
			uri, err := textOf(args, "uri")
			if err != nil {
				return nil, err
			}
			r, err := s.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				return nil, err
			}
			if len(r.Contents) == 1 && r.Contents[0].Blob == nil {
				return json.Marshal(r.Contents[0].Text)
			}
			return json.Marshal(r.Contents)
		},
	}
	return []*tool{list, read}
}

// promptTools returns functions for a server's prompts.
func promptTools(s *server, taken map[string]bool) []*tool {
	list := &tool{
		server: s, name: makeName("list_prompts", "_mcp", taken),
		doc: "Returns the prompts of the server, with their arguments, as dicts.",
		call: func(ctx context.Context, _ map[string]json.RawMessage) (tiers.Value, error) {
			all := []*mcp.Prompt{}
			for p, err := range s.session.Prompts(ctx, nil) {
				if err != nil {
					return nil, err
				}
				if all = append(all, p); len(all) > maxListed {
					return nil, fmt.Errorf("the server has more than %d prompts", maxListed)
				}
			}
			return json.Marshal(all)
		},
	}
	get := &tool{
		server: s, name: makeName("get_prompt", "_mcp", taken), isOpen: true,
		params: []param{textParam("name")},
		doc:    "Returns the messages of a prompt, as dicts. Its arguments are texts.",
		call: func(ctx context.Context, args map[string]json.RawMessage) (tiers.Value, error) {
			params := &mcp.GetPromptParams{Arguments: map[string]string{}}
			for name := range args {
				text, err := textOf(args, name)
				if err != nil {
					return nil, err
				}
				params.Arguments[name] = text
			}
			params.Name = params.Arguments["name"]
			delete(params.Arguments, "name")
			r, err := s.session.GetPrompt(ctx, params)
			if err != nil {
				return nil, err
			}
			return json.Marshal(r.Messages)
		},
	}
	return []*tool{list, get}
}
