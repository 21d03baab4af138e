package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/openai"
	"github.com/rlmhq/rlm/server/internal/wire"
)

// request is the body of POST /v1/messages.
type request struct {
	Model         string             `json:"model"`
	Messages      []message          `json:"messages"`
	System        blocks             `json:"system"`
	MaxTokens     *openai.Count      `json:"max_tokens"`
	Stream        bool               `json:"stream"`
	StopSequences []string           `json:"stop_sequences"`
	Temperature   *float64           `json:"temperature"`
	TopP          *float64           `json:"top_p"`
	Metadata      map[string]*string `json:"metadata"`
	Tools         []tool             `json:"tools"`
	ToolChoice    *struct {
		Type            string `json:"type"`
		Name            string `json:"name"`
		DisableParallel bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	OutputFormat *openai.Format `json:"output_format"` // as in the beta
	OutputConfig struct {
		Format *openai.Format `json:"format"`
		Effort string         `json:"effort"`
	} `json:"output_config"`
	Servers []json.RawMessage `json:"mcp_servers"`
}

type message struct {
	Role    string `json:"role"`
	Content blocks `json:"content"`
}

// tool is a tool that a client requests: its own function, or a tool of Anthropic's server.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      *bool           `json:"strict"`
}

// valuesDepth is the nesting depth of the text of a document in the result of a call.
const valuesDepth = 10

// question is a decoded request.
type question struct {
	*openai.Question

	model    string
	isStream bool
}

func (a *API) read(r *http.Request) (*question, error) {
	var q request
	if err := wire.ReadDeepJSON(r, &q, valuesDepth); err != nil {
		return nil, err
	}
	c, err := q.chat()
	if err != nil {
		return nil, err
	}
	asked, err := a.Chat.Read(r, c)
	return &question{asked, q.Model, q.Stream}, err
}

// chat returns the request as a chat completion.
func (q *request) chat() (*openai.Chat, error) {
	if len(q.Servers) > 0 {
		return nil, problem.Bad("mcp_servers",
			"this server connects to no MCP server of a request: start rlm serve with --mcp, and omit mcp_servers")
	}
	c := &openai.Chat{
		MaxTokens: q.MaxTokens, Stop: q.StopSequences, ReasoningEffort: q.OutputConfig.Effort,
		Format: q.OutputFormat,
	}
	c.Model, c.Temperature, c.TopP = q.Model, q.Temperature, q.TopP
	if q.OutputConfig.Format != nil {
		c.Format = q.OutputConfig.Format
	}
	c.Metadata = map[string]string{}
	for name, value := range q.Metadata {
		if value != nil {
			c.Metadata[name] = *value
		}
	}

	if err := q.addMessages(c); err != nil {
		return nil, err
	}
	if err := q.addTools(c); err != nil {
		return nil, err
	}
	err := q.choose(c)
	return c, err
}

// addMessages adds the instructions and the conversation.
func (q *request) addMessages(c *openai.Chat) error {
	if len(q.System) > 0 {
		m := openai.Message{Role: "system"}
		for i := range q.System {
			if q.System[i].Type != "text" {
				return problem.Bad("system", "a block of system has the type %.40q: give text", q.System[i].Type)
			}
			m.Content = append(m.Content, text(q.System[i].Text))
		}
		c.Messages = append(c.Messages, m)
	}

	for i := range q.Messages {
		all, err := q.Messages[i].chat(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return err
		}
		c.Messages = append(c.Messages, all...)
	}
	return nil
}

// sandboxPrefix is the beginning of the types of Anthropic's tool that runs code; a date follows.
const sandboxPrefix = "code_execution_"

// addTools adds the tools.
func (q *request) addTools(c *openai.Chat) error {
	for i := range q.Tools {
		t := &q.Tools[i]
		switch {
		case t.Type == "" || t.Type == "custom" || len(t.InputSchema) > 0:
			c.Tools = append(c.Tools, openai.Tool{
				Type: openai.KindFunction, Name: t.Name, Description: t.Description,
				Parameters: t.InputSchema, Strict: t.Strict,
			})
		case strings.HasPrefix(t.Type, sandboxPrefix):
			c.Tools = append(c.Tools, openai.Tool{Type: openai.KindSandbox})
		default:
			return problem.Bad("tools", "a tool has the type %.40q: this server has code_execution and custom tools; "+
				"give the tool an input_schema, or give snippets other tools with rlm serve --tool or --mcp", t.Type)
		}
	}
	return nil
}

// choose sets the client's restrictions on which tools the model may call.
func (q *request) choose(c *openai.Chat) (err error) {
	choice := q.ToolChoice
	if choice == nil {
		return nil
	}

	if choice.DisableParallel {
		isParallel := false
		c.ParallelToolCalls = &isParallel
	}
	switch choice.Type {
	case "auto":
	case "none":
		c.ToolChoice = json.RawMessage(`"none"`)
	case "any":
		c.ToolChoice = json.RawMessage(`"required"`)
	case "tool":
		c.ToolChoice, err = openai.FunctionChoice(choice.Name)
	default:
		err = problem.Bad("tool_choice", "unknown choice %.40q: give auto, any, tool or none", choice.Type)
	}
	return err
}
