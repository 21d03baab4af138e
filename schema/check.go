package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Check coerces a value, guided by the contract, and validates what it became.
//
// It returns the value as JSON if it meets the contract, else what is wrong: at
// most maxViolations, in the order of their paths, and only one if the value is
// no acceptable JSON. A value that needs no coercion comes back byte for byte.
// The error says that the check itself could not be done, for the work that the
// contract asks for this value.
func (c *Contract) Check(value json.RawMessage) (coerced json.RawMessage, violations []Violation, err error) {
	n, err := decode(value, valueBounds)
	if err != nil {
		return nil, refusal(err), nil
	}
	checked, violations, err := c.check(n)
	if err != nil || len(violations) > 0 {
		return nil, violations, err
	}
	if checked == n {
		return value, nil, nil
	}
	return checked.appendJSON(nil), nil, nil
}

// refusal returns what is wrong with a value that could not be decoded.
func refusal(err error) []Violation {
	var m *malformed
	if errors.As(err, &m) {
		return []Violation{{Path: pathText(m.path), Message: m.reason}}
	}
	return []Violation{{Path: pathText(nil), Message: err.Error()}}
}

// check is Check for a decoded value.
func (c *Contract) check(n *node) (checked *node, wrong []Violation, err error) {
	left := maxWork
	found, err := c.validate(c.root, n, &left)
	if err != nil || found == nil && !n.hasFraction() {
		return n, nil, err
	}
	k := coercer{c: c, left: maxWork}
	if coerced := k.value(n, c.root); coerced != n {
		left = maxWork
		better, err := c.validate(c.root, coerced, &left)
		if err != nil || better == nil {
			return coerced, nil, err
		}
		if found != nil { // show what is wrong with the best that can be made of it
			found = better
		}
	}
	if found != nil {
		return nil, violations(found), nil
	}
	return n, nil, nil
}

// hasFraction reports whether an integer in the value is written with a fraction
// or an exponent.
func (n *node) hasFraction() bool {
	if n.kind == numberKind {
		literal, ok := whole(n.text)
		return ok && literal != n.text
	}
	for _, kid := range n.kids {
		if kid.hasFraction() {
			return true
		}
	}
	return false
}

// validate applies one schema and charges the work to an account. It returns
// what the library found, nil if the value is valid.
func (c *Contract) validate(s *jsonschema.Schema, n *node, left *int) (found *jsonschema.ValidationError, err error) {
	if *left -= c.cost(s, n); *left <= 0 {
		return nil, errWork
	}
	defer func() {
		if r := recover(); r != nil { // the library states its invariants by panics
			err = fmt.Errorf("cannot check the value: the schema broke the validator: %v", r)
		}
	}()
	invalid := s.Validate(n.plain)
	if invalid == nil {
		return nil, nil
	}
	if errors.As(invalid, &found) {
		return found, nil
	}
	return nil, fmt.Errorf("cannot check the value: %w", invalid)
}
