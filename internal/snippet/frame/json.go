package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errMessage is wrapped by the error for a payload that is not the message it should be.
var errMessage = errors.New("cannot parse a message")

// DecodeJSON decodes a payload into message, a pointer. Unknown fields are errors, and so
// are bytes after the message.
func DecodeJSON(body []byte, message any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(message); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}

	if decoder.More() {
		return fmt.Errorf("%w: it has extra bytes at the end", errMessage)
	}
	return nil
}
