package wheels

import (
	"fmt"
	"slices"
	"strings"

	version "github.com/aquasecurity/go-pep440-version"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// tokenForm matches a token in the condition of a requirement, such as python_version < "3.11" and
// extra == "test".

var tokenForm = lazyregexp.New(`^(?:\s+)?(\(|\)|"[^"]*"|'[^']*'|~=|===?|!=|<=|>=|<|>|[a-z_]+(?:\.[a-z_]+)?)`)

// maxMarkerDepth bounds the nesting of parentheses.
const maxMarkerDepth = 20

// marker is a condition being parsed, and the facts to which it refers.
type marker struct {
	tokens []string
	facts  map[string]string
	extras []string
	depth  int
}

// holds reports whether a condition is true for the facts and any of the extras.
func holds(text string, facts map[string]string, extras []string) (bool, error) {
	if text == "" {
		return true, nil
	}
	m := marker{facts: facts, extras: extras}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		found := tokenForm.FindStringSubmatch(rest)
		if found == nil {
			return false, fmt.Errorf("cannot read the condition %q", text)
		}
		m.tokens = append(m.tokens, found[1])
		rest = rest[len(found[0]):]
	}

	result, err := m.readOr()
	if err == nil && len(m.tokens) > 0 {
		err = fmt.Errorf("unexpected %q", m.tokens[0])
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the condition %q: %w", text, err)
	}
	return result, nil
}

// next consumes the next token; it returns an empty string at the end.
func (m *marker) next() string {
	if len(m.tokens) == 0 {
		return ""
	}
	token := m.tokens[0]
	m.tokens = m.tokens[1:]
	return token
}

// takes consumes the next token if it is the given one, and reports whether that was the case.
func (m *marker) takes(token string) bool {
	if len(m.tokens) == 0 || m.tokens[0] != token {
		return false
	}
	m.tokens = m.tokens[1:]
	return true
}

func (m *marker) readOr() (bool, error) {
	result, err := m.readAnd()
	for err == nil && m.takes("or") {
		var other bool
		other, err = m.readAnd()
		result = result || other
	}
	return result, err
}

func (m *marker) readAnd() (bool, error) {
	result, err := m.readOne()
	for err == nil && m.takes("and") {
		var other bool
		other, err = m.readOne()
		result = result && other
	}
	return result, err
}

// readOne parses a comparison, or a condition in parentheses.
func (m *marker) readOne() (bool, error) {
	if m.takes("(") {
		if m.depth++; m.depth > maxMarkerDepth {
			return false, fmt.Errorf("parentheses are nested more than %d deep", maxMarkerDepth)
		}
		result, err := m.readOr()
		m.depth--
		if err == nil && !m.takes(")") {
			err = fmt.Errorf("a parenthesis is missing")
		}
		return result, err
	}

	left, operator := m.next(), m.next()
	if operator == "not" && m.takes("in") {
		operator = "not in"
	}
	right := m.next()

	if isExtra := left == "extra" || right == "extra"; isExtra {
		return m.compareExtra(left, operator, right)
	}

	a, aIsVersion, err := m.value(left)
	if err != nil {
		return false, err
	}
	b, bIsVersion, err := m.value(right)
	if err != nil {
		return false, err
	}

	return compareFacts(a, operator, b, aIsVersion || bIsVersion)
}

// compareExtra compares the requested extras with a name.
func (m *marker) compareExtra(left, operator, right string) (bool, error) {
	name := left
	if left == "extra" {
		name = right
	}
	if len(name) < 2 || name[0] != '"' && name[0] != '\'' {
		return false, fmt.Errorf("cannot compare extra with %q", name)
	}

	has := slices.Contains(m.extras, Normalise(name[1:len(name)-1]))
	switch operator {
	case "==":
		return has, nil
	case "!=":
		return !has, nil
	}
	return false, fmt.Errorf("cannot compare extra with the operator %q", operator)
}

// value returns the value of a token, and reports whether the token is the name of a version.
func (m *marker) value(token string) (text string, isVersion bool, err error) {
	if len(token) >= 2 && (token[0] == '"' || token[0] == '\'') {
		return token[1 : len(token)-1], false, nil
	}
	text, known := m.facts[token]
	if !known {
		return "", false, fmt.Errorf("%q is unknown", token)
	}
	return text, strings.HasSuffix(token, "_version") && token != "platform_version", nil
}

// compareFacts compares two values as versions if asVersions is set, otherwise as strings.
func compareFacts(a, operator, b string, asVersions bool) (bool, error) {
	switch operator {
	case "in":
		return strings.Contains(b, a), nil
	case "not in":
		return !strings.Contains(b, a), nil
	}

	if asVersions {
		v, err := version.Parse(a)
		if err != nil {
			return false, err
		}
		return allows(operator+b, v)
	}

	switch operator {
	case "==":
		return a == b, nil
	case "!=":
		return a != b, nil
	}
	return false, fmt.Errorf("cannot compare the texts %q and %q with the operator %q", a, b, operator)
}
