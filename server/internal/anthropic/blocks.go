package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/openai"
	"github.com/rlmhq/rlm/server/internal/wire"
)

// blocks is a list of blocks. In JSON, a string is also allowed.
type blocks []block

// block is a part of a message.
type block struct {
	Type   string          `json:"type"`
	Text   string          `json:"text"`
	Source json.RawMessage `json:"source"` // of a picture or a document; a text in a search result
	Title  string          `json:"title"`

	// The following fields belong to a call of a client's function.
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	// The following fields belong to the result of such a call. Content is also the content of a
	// search result. It stays encoded, because a client may nest blocks deeply.
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// source is the content of a picture or a document.
type source struct {
	Type      string          `json:"type"`
	MediaType string          `json:"media_type"`
	Data      string          `json:"data"`
	URL       string          `json:"url"`
	FileID    string          `json:"file_id"`
	Content   json.RawMessage `json:"content"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *blocks) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]block)(b))
	}

	var one string
	err := json.Unmarshal(data, &one)
	if *b = nil; one != "" {
		*b = blocks{{Type: "text", Text: one}}
	}
	return err
}

// readBlocks decodes the content of a block.
func readBlocks(raw json.RawMessage) (all blocks, err error) {
	if len(raw) > 0 {
		err = wire.Decode(raw, &all)
	}
	return all, err
}

func text(t string) openai.Part { return openai.Part{Type: "text", Text: t} }

// chat returns the message as messages of a chat completion. Each result of a call becomes a
// separate message.
func (m *message) chat(param string) (all []openai.Message, err error) {
	if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
		return nil, problem.Bad(param+".role", "unknown role %.40q: give user or assistant", m.Role)
	}

	plain := openai.Message{Role: m.Role}
	add := func() {
		if len(plain.Content) > 0 || len(plain.ToolCalls) > 0 {
			all = append(all, plain)
		}
		plain = openai.Message{Role: m.Role}
	}
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case "tool_use":
			one, err := b.call(param)
			if err != nil {
				return nil, err
			}
			plain.ToolCalls = append(plain.ToolCalls, one)
		case "tool_result":
			result, err := b.result(param)
			if err != nil {
				return nil, err
			}
			add()
			all = append(all, result)
		default:
			parts, err := b.parts(param, false)
			if err != nil {
				return nil, err
			}
			plain.Content = append(plain.Content, parts...)
		}
	}

	add()
	return all, nil
}

// call returns the block as a call of a client's function.
func (b *block) call(param string) (openai.Call, error) {
	c := openai.Call{ID: b.ID, Type: openai.KindFunction}
	if b.ID == "" || b.Name == "" {
		return c, problem.Bad(param, "a block of type tool_use needs an id and a name")
	}

	c.Function = &openai.Function{Name: b.Name, Arguments: "{}"}
	if len(b.Input) > 0 && string(b.Input) != "null" {
		c.Function.Arguments = string(b.Input)
	}
	return c, nil
}

// result returns the block as the result of a call.
func (b *block) result(param string) (openai.Message, error) {
	m := openai.Message{Role: "tool", ToolCallID: b.ToolUseID}
	if b.ToolUseID == "" {
		return m, problem.Bad(param, "a block of type tool_result has no tool_use_id")
	}

	if b.IsError {
		m.Content = append(m.Content, text("The call failed:"))
	}
	content, err := readBlocks(b.Content)
	if err != nil {
		return m, err
	}
	parts, err := content.parts(param, false)
	m.Content = append(m.Content, parts...)
	return m, err
}

// parts returns blocks as parts of a chat completion's message. If isInner is set, the blocks
// belong to a document.
func (b blocks) parts(param string, isInner bool) (all []openai.Part, err error) {
	for i := range b {
		parts, err := b[i].parts(param, isInner)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}

	return all, nil
}

// parts returns a block as parts of a chat completion's message. It omits the model's thoughts and
// the calls of server tools in an earlier answer, because that answer contains their findings.
func (b *block) parts(param string, isInner bool) ([]openai.Part, error) {
	if isInner && b.Type != "text" && b.Type != "image" {
		return nil, problem.Bad(param, "a block of a document has the type %.40q: give text or image", b.Type)
	}

	switch b.Type {
	case "text":
		return []openai.Part{text(b.Text)}, nil
	case "image", "document":
		var s source
		if err := wire.Decode(b.Source, &s); err != nil {
			return nil, problem.Bad(param, "a block of type %s needs a source", b.Type)
		}
		if b.Type == "image" {
			return s.picture(param)
		}
		return s.document(b.Title, param)
	case "search_result":
		return b.found()
	case "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "container_upload":
		return nil, nil
	}
	if strings.HasSuffix(b.Type, "_tool_result") {
		return nil, nil
	}
	return nil, problem.Bad(param,
		"a block has the type %.40q: give text, image, document, search_result, tool_use or tool_result", b.Type)
}

// found returns a search result as a text part.
func (b *block) found() ([]openai.Part, error) {
	content, err := readBlocks(b.Content)
	var from string
	_ = json.Unmarshal(b.Source, &from) // an address, or empty
	lines := []string{b.Title, from}
	for i := range content {
		lines = append(lines, content[i].Text)
	}
	return []openai.Part{text(strings.TrimSpace(strings.Join(lines, "\n")))}, err
}

// picture returns a picture as a part. The request itself must contain the picture.
func (s *source) picture(param string) ([]openai.Part, error) {
	address := s.URL
	switch s.Type {
	case "base64":
		address = "data:" + s.MediaType + ";base64," + s.Data
	case "url": // other URLs than data: are refused later, as in chat completions
	default:
		return nil, problem.Bad(param, "a picture has a source of type %.40q: give base64", s.Type)
	}

	quoted, err := wire.Marshal(address)
	return []openai.Part{{Type: "input_image", ImageURL: quoted}}, err
}

// document returns the parts of a document: its texts and pictures, or a file. A request with a
// file becomes a run.
func (s *source) document(title, param string) ([]openai.Part, error) {
	name := title
	if name == "" {
		name = "document"
	}

	switch s.Type {
	case "text":
		return []openai.Part{text(strings.TrimSpace(title + "\n\n" + s.Data))}, nil
	case "content":
		content, err := readBlocks(s.Content)
		if err != nil {
			return nil, err
		}
		return content.parts(param, true)
	case "base64":
		if s.MediaType == "application/pdf" && !strings.HasSuffix(strings.ToLower(name), ".pdf") {
			name += ".pdf"
		}
		return []openai.Part{{Type: "input_file", Data: s.Data, Name: name}}, nil
	case "file":
		return []openai.Part{{Type: "input_file", ID: s.FileID}}, nil
	}
	return nil, problem.Bad(param, "a document has a source of type %.40q: "+
		"give base64, text or content, or upload the file with POST /v1/files", s.Type)
}
