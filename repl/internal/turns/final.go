package turns

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/pysyntax"
)

// textFinal is an answer that a model gave in the text of its reply, outside of
// code: FINAL(...), FINAL_VAR(...) or SUBMIT(...) at a line's start.
type textFinal struct {
	// Call is "FINAL", "FINAL_VAR" or "SUBMIT".
	Call string
	// Argument is what stands between the parentheses, trimmed.
	Argument string
}

// finalAt begins an answer in text; marks of emphasis may stand around the name.
// What is indented like code is code.
var finalAt = regexp.MustCompile("(?m)^ {0,3}[*_`]{0,3}(FINAL_VAR|FINAL|SUBMIT)[*_`]{0,3}\\(")

// maxTries bounds how many places of one reply are tried: a flood of them must not
// take quadratic time.
const maxTries = 20

// findTextFinal returns the last answer in text: a model that gives two means the
// second.
func findTextFinal(text string) *textFinal {
	places := finalAt.FindAllStringSubmatchIndex(text, -1)
	for i := len(places) - 1; i >= max(0, len(places)-maxTries); i-- {
		at := places[i]
		limit := len(text)
		if i+1 < len(places) {
			limit = places[i+1][0]
		}
		if argument, ok := readArgument(text[at[1]:limit]); ok {
			return &textFinal{text[at[2]:at[3]], argument}
		}
	}

	return nil
}

// readArgument returns the text before the parenthesis that closes it. It
// counts parentheses outside of quoted strings first, as code is read; where that
// finds no end (an apostrophe in prose opens no string), it takes the last
// parenthesis that ends a line.
func readArgument(text string) (string, bool) {
	if end := pysyntax.Balanced(text); end >= 0 {
		return strings.TrimSpace(text[:end]), true
	}
	end := len(text)
	for range maxTries {
		if end = strings.LastIndexByte(text[:end], ')'); end < 0 {
			break
		}
		rest, _, _ := strings.Cut(text[end+1:], "\n")
		if strings.Trim(rest, " \t*_`.") == "" {
			return strings.TrimSpace(text[:end]), true
		}
	}

	return "", false
}

// anyFinal finds a call anywhere in a reply.
var anyFinal = regexp.MustCompile(`\b(FINAL_VAR|FINAL|SUBMIT)\(`)

// finalCall returns the last balanced FINAL(...) in a reply without any other
// code: the third layer. What its parentheses hold must be a Python expression by
// its looks, or prose about FINAL(...) would end a run.
func finalCall(reply string) string {
	places := anyFinal.FindAllStringIndex(reply, -1)
	for i := len(places) - 1; i >= max(0, len(places)-maxTries); i-- {
		at := places[i]
		end := pysyntax.Balanced(reply[at[1]:])
		if end < 0 {
			continue
		}
		argument := strings.TrimSpace(reply[at[1] : at[1]+end])
		f := textFinal{Call: strings.TrimSuffix(reply[at[0]:at[1]], "("), Argument: argument}
		if _, literal := f.literal(); literal && f.Call != "FINAL_VAR" ||
			quoted.MatchString(argument) {
			return reply[at[0] : at[1]+end+1]
		}
	}

	return ""
}

var (
	quoted     = regexp.MustCompile(`^[A-Za-z]{0,2}["']`)
	expression = regexp.MustCompile(`^([A-Za-z]{0,2}["'\[{(]|[A-Za-z_]\w*([.(\[]|$|\s*=[^=]))`)
)

// literal returns the argument as JSON, if that is what it is: a number, a quoted
// string, a list, an object, true, false, null.
func (f *textFinal) literal() (json.RawMessage, bool) {
	if f.Argument == "" || !json.Valid([]byte(f.Argument)) {
		return nil, false
	}
	return json.RawMessage(f.Argument), true
}

// source returns the Python by which a session decides what the answer means: a
// variable, a string, a call. It is empty if the argument can only be text, such
// as a sentence or a date.
//
// A snippet that fails on it settles that it was text after all: see [textFinal.text].
func (f *textFinal) source() string {
	if f.Call == "FINAL_VAR" && variable.MatchString(f.Argument) {
		return "FINAL_VAR(" + f.Argument + ")"
	}
	if f.Call == "FINAL_VAR" {
		name := strings.Trim(f.Argument, "\"'` ")
		quoted, _ := json.Marshal(name) //nolint:errchkjson // a string always encodes
		return "FINAL_VAR(" + string(quoted) + ")"
	}

	if f.Call == "SUBMIT" || expression.MatchString(f.Argument) {
		return f.Call + "(" + f.Argument + ")"
	}
	return ""
}

// variable is the argument of FINAL_VAR as code: a quoted name, or a name and a
// value.
var variable = regexp.MustCompile(`^(["'][^"'\n]*["']\s*(,.+)?|[A-Za-z_]\w*\s*,.+)$`)

// text returns the argument as a JSON string.
func (f *textFinal) text() json.RawMessage {
	text, _ := json.Marshal(f.Argument) //nolint:errchkjson // a string always encodes
	return text
}
