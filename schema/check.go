package schema

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Check coerces a value, guided by the contract, and validates the result.
//
// If the value meets the contract, Check returns it as JSON. A value that needs no coercion is
// returned byte for byte. If the value does not meet the contract, Check returns at most
// maxViolations violations in the order of their paths, and only one if the value is not acceptable
// JSON.
//
// An error means that the check itself was impossible, because the contract demands too much
// work on this value.
func (c *Contract) Check(
	value json.RawMessage,
) (coerced json.RawMessage, violations []Violation, err error) {
	n, err := decode(value, valueBounds)
	if err != nil {
		return nil, violationOf(err), nil
	}

	left := allWork
	checked, violations, err := c.check(n, &left)
	if err != nil || len(violations) > 0 {
		return nil, violations, err
	}
	if checked == n {
		return value, nil, nil
	}
	return checked.appendJSON(nil), nil, nil
}

// violationOf returns the violation of a value that could not be decoded.
func violationOf(err error) []Violation {
	var m *malformedError
	if errors.As(err, &m) {
		return []Violation{{Path: formatPath(m.path), Message: m.reason}}
	}
	return []Violation{{Path: formatPath(nil), Message: err.Error()}}
}

// check is Check for a decoded value; it subtracts the work from left. If the value does not meet
// the contract even after coercion, it returns the violations of the coerced value.
func (c *Contract) check(n *node, left *int) (checked *node, wrong []Violation, err error) {
	found, err := validate(c.root, n, left)
	if err != nil || found == nil && !n.hasIntegerFraction() {
		return n, nil, err
	}

	most := min(maxWork, *left)
	k := coercer{left: most}
	coerced := k.coerce(n, c.root)
	*left -= most - k.left
	if coerced != n {
		better, err := validate(c.root, coerced, left)
		if err != nil || better == nil {
			return coerced, nil, err
		}
		if found != nil {
			found = better
		}
	}
	if found != nil {
		return nil, listViolations(found), nil
	}
	return n, nil, nil
}

// hasIntegerFraction reports whether an integer in the value is written with a fraction
// or an exponent.
func (n *node) hasIntegerFraction() bool {
	if n.kind == numberKind {
		literal, ok := parseInteger(n.text)
		return ok && literal != n.text
	}
	for _, kid := range n.kids {
		if kid.hasIntegerFraction() {
			return true
		}
	}
	return false
}

// validate applies one schema and subtracts the work from left. It returns the fault of the value,
// or nil if the value is valid.
func validate(s *subschema, n *node, left *int) (found *fault, err error) {
	defer func() {
		if r := recover(); r != nil { // our own bug must not end the host
			found, err = nil, fmt.Errorf("cannot check the value: the schema broke the validator: %v", r)
		}
	}()

	work := s.boundWork(n)
	if *left -= work; work >= maxWork || *left <= 0 {
		return nil, errWork
	}
	v := validator{path: make([]step, 0, 8)}
	return v.apply(s, n, nil), nil
}
