package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// maxLevels is the maximum depth of a structured result, which is also the protocol library's
// limit on a message.
const maxLevels = 1_000

// members are the members of a JSON object.
type members = map[string]json.RawMessage

// repair converts a message or a batch for the protocol library. In the result of a tool, the
// structured content becomes a string of JSON, since the library would decode its numbers as
// float64; [server.callTool] decodes this string.
func repair(message []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(message), []byte("[")) {
		return repairOne(message)
	}

	var batch []json.RawMessage
	if json.Unmarshal(message, &batch) != nil {
		return message, nil //nolint:nilerr // the library reports it
	}
	for i, one := range batch {
		repaired, err := repairOne(one)
		if err != nil {
			return nil, err
		}
		batch[i] = repaired
	}
	return encode(batch, message), nil
}

// repairOne repairs an answer. It leaves other messages unchanged.
func repairOne(message []byte) ([]byte, error) {
	answer := readAnswer(message)
	if answer == nil {
		return message, nil
	}

	answer["jsonrpc"] = json.RawMessage(`"2.0"`)
	if id, isText := unquote(answer["id"]); isText {
		if !isNumber(id) { // the IDs of all requests are numbers
			return nil, fmt.Errorf("it answers with the ID %q, which no request has", texts.Truncate(id, 100))
		}
		answer["id"] = json.RawMessage(id)
	}

	switch {
	case isSet(answer["error"]):
	case answer["result"] == nil:
		answer["error"] = json.RawMessage(
			`{"code":-32603,"message":"the server's answer has neither a result nor an error"}`)
	default:
		answer["result"] = repairResult(answer["result"])
	}
	return encode(answer, message), nil
}

// readAnswer returns the members of a message that answers a request, and nil for any other
// message.
func readAnswer(message []byte) (answer members) {
	if json.Unmarshal(message, &answer) != nil || answer["method"] != nil || !isSet(answer["id"]) {
		return nil
	}
	return answer
}

// repairResult repairs the result of a tool: structuredContent becomes a string of JSON. The string
// is empty if there is none and the content is an empty list, so that an empty result differs from
// a missing one. In a result of the first protocol version, the member toolResult is a result in
// today's format or any other value.
func repairResult(result json.RawMessage) json.RawMessage {
	var parts members
	if json.Unmarshal(result, &parts) != nil {
		return result
	}
	if old := parts["toolResult"]; old != nil && parts["content"] == nil {
		var today members
		if json.Unmarshal(old, &today) == nil && isList(today["content"]) {
			parts = today
		} else {
			parts = members{"content": json.RawMessage("[]"), "structuredContent": old}
		}
		result = encode(parts, result)
	}

	structured, text := parts["structuredContent"], ""
	switch {
	case isSet(structured):
		if levels(structured) > maxLevels {
			return result // the library refuses this result
		}
		text = string(bytes.ToValidUTF8(structured, []byte("\uFFFD")))
	case !isList(parts["content"]) || len(bytes.Trim(parts["content"], "[] \t\r\n")) > 0:
		return result
	}
	parts["structuredContent"] = encode(text, nil)
	return encode(parts, result)
}

// encode returns the JSON of a value in one line, or the original if that fails.
func encode(value any, original []byte) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)      // escaping would take six times the bytes
	if encoder.Encode(value) != nil { //nolint:errchkjson // the value came from JSON
		return original
	}
	return b.Bytes()
}

// isSet reports whether a member exists and is not null.
func isSet(value json.RawMessage) bool { return value != nil && string(value) != "null" }

func isList(value json.RawMessage) bool { return bytes.HasPrefix(value, []byte("[")) }

// unquote returns the value of a JSON string.
func unquote(value json.RawMessage) (text string, isText bool) {
	return text, bytes.HasPrefix(value, []byte(`"`)) && json.Unmarshal(value, &text) == nil
}

// isNumber reports whether a string has the form of the IDs of our requests.
func isNumber(text string) bool {
	return text != "" && len(text) < 19 && strings.Trim(text, "0123456789") == "" && text[0] != '0'
}

// levels returns the nesting depth of a JSON value.
func levels(value []byte) (most int) {
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := d.ReadToken(); err != nil {
			return max(most, d.StackDepth())
		}
		most = max(most, d.StackDepth())
	}
}

var errNoContent = errors.New("the server's result has neither content nor structuredContent; " +
	"the tool may have done its work")

// callTool calls a tool. The numbers of its structured result keep all their digits.
func (s *server) callTool(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	result, err := s.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}

	text, isText := result.StructuredContent.(string) // made by repairResult
	switch {
	case isText && text == "":
		result.StructuredContent = nil
	case isText:
		result.StructuredContent = nil
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&result.StructuredContent); err != nil {
			return nil, fmt.Errorf("cannot decode the structured result: %w", err)
		}
	case result.StructuredContent == nil && len(result.Content) == 0 && !result.IsError && !result.NeedsInput():
		return nil, errNoContent
	}
	return result, nil
}

// repairedBody repairs the messages of an HTTP reply: the whole reply, or each of its events.
type repairedBody struct {
	io.ReadCloser

	isEvents bool
	lines    *bufio.Reader
	rest     []byte
	err      error // returned after the rest
}

// Read implements [io.Reader].
func (r *repairedBody) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.rest, r.err = r.next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next returns the next repaired part.
func (r *repairedBody) next() ([]byte, error) {
	if !r.isEvents {
		body, err := io.ReadAll(r.ReadCloser)
		if err != nil {
			return nil, err
		}
		repaired, err := repair(body)
		if err != nil {
			return nil, err
		}
		return repaired, io.EOF
	}

	var message []byte
	for {
		line, err := r.lines.ReadBytes('\n')
		data, isData := bytes.CutPrefix(line, []byte("data:"))
		if isData {
			message = append(message, data...) // JSON does not need the line break
		}
		if isData && err == nil {
			continue
		}

		if len(message) > 0 {
			repaired, failed := repair(message)
			if failed != nil {
				return nil, failed
			}
			repaired = bytes.ReplaceAll(bytes.TrimSpace(repaired), []byte("\n"), []byte("\ndata:"))
			message = append(append([]byte("data: "), repaired...), '\n')
		}
		if !isData {
			message = append(message, line...)
		}
		return message, err
	}
}
