package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is undecoded JSON.
type Raw = jsontext.Value

// The error codes of JSON-RPC 2.0, and the code of the Language Server Protocol for a cancelled
// request.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeUnknownMethod  = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeServer         = -32000
	CodeCancelled      = -32800
)

// Error is the error of a request, as sent over the connection.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Data holds details for programs, or is nil.
	Data Raw `json:"data,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// NewError returns an error with details, which must be encodable as JSON.
func NewError(code int, data any, format string, args ...any) *Error {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...)}
	if data != nil {
		e.Data = mustMarshal(data)
	}
	return e
}

// Decode strictly decodes parameters or a result into the struct that into points to: it refuses
// unknown and repeated names, names that differ in case, and invalid UTF-8. Missing parameters are
// treated as an empty object.
func Decode(params Raw, into any) error {
	if len(params) == 0 {
		params = Raw("{}")
	}
	if params.Kind() != '{' {
		return NewError(CodeInvalidParams, nil, "the parameters must be an object by name")
	}
	if err := strict.Unmarshal(params, into, strict.RejectUnknownMembers(true)); err != nil {
		return NewError(CodeInvalidParams, nil, "%s", describe(err))
	}
	return nil
}

// describe describes a JSON error without naming the decoder or Go types.
func describe(err error) string {
	var semantic *strict.SemanticError
	if !errors.As(err, &semantic) {
		return "invalid JSON: " + err.Error()
	}

	place := string(semantic.JSONPointer)
	switch {
	case errors.Is(err, strict.ErrUnknownName):
		return fmt.Sprintf("%q is not a parameter", place)
	case semantic.Err != nil:
		return fmt.Sprintf("%q: %v", place, semantic.Err)
	}
	return fmt.Sprintf("%q has the wrong type: %s", place, semantic.JSONKind)
}

// message is a request, a notification or a response.
type message struct {
	Version string `json:"jsonrpc"`
	ID      Raw    `json:"id,omitempty"`
	Method  string `json:"method,omitempty"`
	Params  Raw    `json:"params,omitempty"`
	Result  Raw    `json:"result,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// maxID and maxMethod bound the parts of messages that responses and logs repeat, in bytes.
const (
	maxID     = 200
	maxMethod = 100
)

// decodeMessage decodes one line. An error is a *Error. It does not check a heavy message for
// repeated names, because that would need memory for each name and the message is refused anyway.
func decodeMessage(line []byte, isHeavy bool) (*message, error) {
	m := &message{}

	if Raw(line).Kind() == '[' {
		return nil, NewError(CodeInvalidRequest, nil, "send one message a line, not a batch")
	}

	err := strict.Unmarshal(line, m, strict.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(isHeavy))
	var semantic *strict.SemanticError
	switch {
	case errors.As(err, &semantic):
		return nil, NewError(CodeInvalidRequest, nil, "not a message: %s", describe(err))
	case err != nil:
		return nil, NewError(CodeParse, nil, "the line is not JSON: %v", err)
	}

	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// check refuses a message that is neither a request nor a response.
func (m *message) check() error {
	fail := func(format string, args ...any) error {
		return NewError(CodeInvalidRequest, nil, format, args...)
	}

	switch {
	case m.Version != "2.0":
		return fail(`a message needs "jsonrpc": "2.0"`)
	case len(m.Method) > maxMethod:
		return fail("the method has a name of %d bytes, more than %d", len(m.Method), maxMethod)
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return fail("a request has no result and no error")
	case m.Method != "" && m.ID == nil:
		return nil // a notification
	case m.Method == "" && m.Params != nil:
		return fail("parameters need a method")
	case m.Method == "" && (m.Result == nil) == (m.Error == nil):
		return fail("a message has a method, a result or an error")
	case m.Method == "" && m.ID.Kind() == 'n' && m.Error != nil:
		return nil //nolint:nilerr // the peer could not read one of our messages
	}
	return checkID(m.ID)
}

// checkID refuses IDs that two programs may read differently.
func checkID(id Raw) error {
	fail := NewError(CodeInvalidRequest, nil, "an id is a string of at most %d bytes or an integer", maxID)
	if len(id) > maxID {
		return fail
	}
	if id.Kind() == '"' {
		return nil
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil || math.Abs(float64(n)) >= 1<<53 {
		return fail
	}
	return nil
}

// key returns the same string for all spellings of an ID.
func key(id Raw) string {
	id = id.Clone()
	if id.Canonicalize() != nil {
		return ""
	}
	return string(id)
}

// encode returns a message as a line.
func encode(m *message) ([]byte, error) {
	m.Version = "2.0"

	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		return nil, err
	}
	return line.Bytes(), nil
}

// marshal returns a value as JSON without needless HTML escapes. Nil becomes an empty object.
func marshal(value any) (Raw, error) {
	if value == nil {
		return Raw("{}"), nil
	}

	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// mustMarshal is like marshal, for values of this program that JSON can always represent.
func mustMarshal(value any) Raw {
	raw, err := marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}
