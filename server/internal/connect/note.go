package connect

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
)

// note reports how a request ended.
func (s *server) note(method string, params jsonrpc.Raw, err error) {
	if s.options.Note == nil {
		return
	}
	s.options.Note(method, sessionIn(params), outcomeOf(err))
}

// outcomeOf returns ok, or the kind of an error on the wire.
func outcomeOf(err error) string {
	if err == nil {
		return "ok"
	}

	var known *jsonrpc.Error
	var d details
	if errors.As(err, &known) && json.Unmarshal(known.Data, &d) == nil && d.Kind != "" {
		return d.Kind
	}
	return kindInvalid // it was refused before it reached a session
}

// sessionIn returns the ID of the session in the parameters, or the name for a new session, or "".
func sessionIn(params jsonrpc.Raw) string {
	if params.Kind() != '{' {
		return ""
	}

	decoder := jsontext.NewDecoder(bytes.NewReader(params))
	_, err := decoder.ReadToken() // the brace
	for err == nil && decoder.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = decoder.ReadToken(); err != nil {
			break
		}
		is := name.String() == "session" || name.String() == "name"
		if is && decoder.PeekKind() == '"' {
			if value, err := decoder.ReadToken(); err == nil {
				return value.String()
			}
			return ""
		}
		err = decoder.SkipValue()
	}
	return ""
}
