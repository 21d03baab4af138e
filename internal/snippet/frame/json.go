package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errMessage is wrapped by the error for a payload that cannot be parsed as the expected message.
var errMessage = errors.New("cannot parse a message")

// DecodeJSON decodes a payload into message, a pointer. Unknown fields and trailing bytes are
// errors.
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
