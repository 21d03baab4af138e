package skillbook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// member is a member of an ordered JSON object. The skills of a prompt have the order of the file,
// which a map would lose.
type member struct {
	name  string
	value json.RawMessage
	ids   []string // IDs of a section's skills
}

// members returns the members of a JSON object.
func members(raw []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	open, err := d.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, errors.New("it must be an object")
	}

	var all []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{}
		m.name, _ = name.(string) // member names are strings
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}

	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind the object")
	}
	return all, nil
}

// decode decodes a value; its error names the expected type.
func decode(raw json.RawMessage, to any) error {
	err := json.Unmarshal(raw, to)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		where := kind.Field
		if where != "" {
			where += " "
		}
		return fmt.Errorf("%smust be a %v, is a %s", where, kind.Type, kind.Value)
	}
	return err
}

// encode encodes a value without HTML escapes, as Python does.
func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// object returns a JSON object. A member without a value becomes an object with the members of the
// next list in inner.
func object(all []member, inner ...[]member) (json.RawMessage, error) {
	out := []byte("{")
	for i, m := range all {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := encode(m.name)
		if err != nil {
			return nil, err
		}

		if m.value == nil {
			if m.value, err = object(inner[0]); err != nil {
				return nil, err
			}
			inner = inner[1:]
		}
		out = append(append(append(out, name...), ':'), m.value...)
	}
	return append(out, '}'), nil
}
