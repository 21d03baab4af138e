package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
	"github.com/rlmhq/rlm/tiers"
)

// textFinal is an answer that a model gave in the text of its reply, outside of
// code: FINAL(...), FINAL_VAR(...) or SUBMIT(...) at a line's start.
type textFinal struct {
	// Call is "FINAL", "FINAL_VAR" or "SUBMIT".
	Call string
	// Argument is what stands between the parentheses, trimmed.
	Argument string
}

// finalAt begins an answer in text: a mark of a list or a quote, a short label ("Answer:"),
// and marks of emphasis may stand before it. What is indented like code is code.
var finalAt = regexp.MustCompile("(?m)^ {0,3}(?:(?:[-*+>]|\\d{1,3}[.)])[ \t]+)?" +
	"(?:[*_]{0,3}[A-Za-z][A-Za-z ]{0,30}:[*_]{0,3}[ \t]*)?" +
	"[*_`]{0,3}(FINAL_VAR|FINAL|SUBMIT)[*_`]{0,3}\\(")

// maxTries bounds how many places of one reply are tried: a flood of them must not
// take quadratic time.
const maxTries = 20

// intent are the words of a model that talks about an answer it has yet to give.
var intent = regexp.MustCompile(
	`(?i)\b(will|would|going to|then|when|once|if|until|should|could|can|may|must|need|not|never|` +
		`before|later|next|call|calling|use|using|like|example|such as|e\.g|format)\b|'ll\b|n't\b`,
)

// IsPutOff reports whether the words of a reply before its first bracket talk about an answer
// that the model has yet to give.
func IsPutOff(reply string) bool {
	words, _, _ := strings.Cut(reply, "{")
	words, _, _ = strings.Cut(words, "[")
	return intent.MatchString(words)
}

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
// finds no end (an apostrophe in prose opens no string) or an end within a sentence, it
// takes the last parenthesis that ends a line. It returns false for a call that the model
// only talks about.
func readArgument(text string) (string, bool) {
	end := pysyntax.Balanced(text)
	if end >= 0 {
		argument, rest := strings.TrimSpace(text[:end]), restOfLine(text[end+1:])
		if rest == "" {
			return argument, true
		}
		if expression.MatchString(argument) || json.Valid([]byte(argument)) {
			return argument, !intent.MatchString(rest)
		}
	}

	end = len(text)
	for range maxTries {
		if end = strings.LastIndexByte(text[:end], ')'); end < 0 {
			break
		}
		if restOfLine(text[end+1:]) == "" {
			argument := strings.TrimSpace(text[:end])
			return argument, !anyFinal.MatchString(argument)
		}
	}

	return "", false
}

// restOfLine returns what follows on a line, without marks of emphasis and full stops.
func restOfLine(text string) string {
	rest, _, _ := strings.Cut(text, "\n")
	return strings.Trim(rest, " \t\r*_`.;!")
}

// anyFinal finds a call anywhere in a reply.
var anyFinal = regexp.MustCompile(`\b(FINAL_VAR|FINAL|SUBMIT)\(`)

// finalCall returns the last balanced FINAL(...) in a reply without any other
// code: the third layer. What its parentheses hold must be a literal by its looks, and the
// words before it must not put it off, or prose about FINAL(...) would end a run.
func finalCall(reply string) string {
	places := anyFinal.FindAllStringIndex(reply, -1)
	for i := len(places) - 1; i >= max(0, len(places)-maxTries); i-- {
		at := places[i]
		end := pysyntax.Balanced(reply[at[1]:])
		if end < 0 {
			continue
		}
		sentence := reply[strings.LastIndexByte(reply[:at[0]], '\n')+1 : at[0]]
		if intent.MatchString(sentence) || intent.MatchString(restOfLine(reply[at[1]+end+1:])) {
			continue
		}

		argument := strings.TrimSpace(reply[at[1] : at[1]+end])
		f := textFinal{Call: strings.TrimSuffix(reply[at[0]:at[1]], "("), Argument: argument}
		_, isJSON := f.literal()
		if isJSON && f.Call != "FINAL_VAR" || literalStart.MatchString(argument) {
			return reply[at[0] : at[1]+end+1]
		}
	}

	return ""
}

var (
	// literalStart begins a text, a list or a dict.
	literalStart = regexp.MustCompile(`^([A-Za-z]{0,2}["']|\[[^\]]|\{)`)
	// expression is an argument that is code by its looks.
	expression = regexp.MustCompile(
		`^([A-Za-z]{0,2}["'\[{(]|[\pL_][\pL\d_]*([.(\[]|$|\s*=[^=]))`)
	// constants is an argument of numbers alone, whose signs are those of dates, ranges,
	// fractions, scores and lists as often as they are arithmetic.
	constants = regexp.MustCompile(`^[\d\s.,:/_-]*$|^[\d\s.]+(and|or|in|is)[\d\s.]+$`)
	// brokenCode is an argument that is code although it cannot be parsed: a sentence would
	// not begin so.
	brokenCode = regexp.MustCompile(`^([A-Za-z]{0,2}["'\[{(]|[A-Za-z_][\w.]*[(\[])`)
	// placeholder stands for an answer in the prompts of models.
	placeholder = regexp.MustCompile(
		`(?i)^(\.\.\.|…|<[^<>]*>|\[?(the |your )(final )?answer( here)?\]?)?$`)
	// hole is a place in a text that only an f-string fills, or a name of code.
	hole = regexp.MustCompile(`\{([A-Za-z_]\w*)[^{}]*\}|\b([A-Za-z]\w*_\w+)\b`)
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
// as a date.
func (f *textFinal) source() string {
	if f.Call == "FINAL_VAR" && variable.MatchString(f.Argument) {
		return "FINAL_VAR(" + f.Argument + ")"
	}
	if f.Call == "FINAL_VAR" {
		name := strings.Trim(f.Argument, "\"'` ")
		quoted, _ := json.Marshal(name) //nolint:errchkjson // a string always encodes
		return "FINAL_VAR(" + string(quoted) + ")"
	}

	if f.Call == "FINAL" && constants.MatchString(f.Argument) {
		return ""
	}
	if strings.Contains(f.Argument, "#") {
		return f.Call + "(" + f.Argument + "\n)" // a comment does not hide the parenthesis
	}
	return f.Call + "(" + f.Argument + ")"
}

// variable is the argument of FINAL_VAR as code: a quoted name, or a name and a
// value.
var variable = regexp.MustCompile(`^(["'][^"'\n]*["']\s*(,.+)?|[A-Za-z_]\w*\s*,.+)$`)

// text returns the argument as a JSON string.
func (f *textFinal) text() json.RawMessage {
	text, _ := json.Marshal(f.Argument) //nolint:errchkjson // a string always encodes
	return text
}

// hasHole reports whether a text names a variable of the session where its value should
// stand.
func hasHole(text string, variables map[string]string) bool {
	for _, m := range hole.FindAllStringSubmatch(text, -1) {
		if _, known := variables[m[1]+m[2]]; known {
			return true
		}
	}
	return false
}

// settleText finds the meaning of an answer in text. FINAL(x) is a literal, or Python that
// the session evaluates. What is no Python at all is text as it stands. An error of the
// evaluation is for the model: a name that does not exist is never the answer.
func (t *Turn) settleText(ctx context.Context, s *repl.Session, f *textFinal) error {
	if f.Call != "FINAL_VAR" && placeholder.MatchString(f.Argument) {
		t.reject(f, "it has no answer in it")
		return nil
	}
	if value, ok := f.literal(); ok && f.Call != "FINAL_VAR" {
		t.takeText(s, f, value)
		return nil
	}
	source := f.source()
	if source == "" {
		t.takeText(s, f, f.text())
		return nil
	}

	ran, err := s.Run(ctx, repl.Block{Language: tiers.Python, Source: source})
	if err != nil {
		return t.noteRefusal(err)
	}
	isText := ran.Exception != nil && slices.Contains(noPython, ran.Exception.Type) &&
		f.Call != "FINAL_VAR" && !brokenCode.MatchString(f.Argument)
	switch {
	case ran.Final != nil:
		t.Final = ran.Final
	case isText:
		t.takeText(s, f, f.text())
	default:
		t.Ran = append(t.Ran, ran) // FINAL_VAR lists the variables that exist
		if ran.Exception != nil && ran.Exception.Type == "NameError" {
			t.reject(f, ran.Exception.Message+". "+listVariables(s)+
				` For a text, write it in quotes: FINAL("...")`)
		}
	}

	return nil
}

// noPython are the exceptions of an argument that is no Python.
var noPython = []string{"SyntaxError", "IndentationError"}

// takeText takes a text as the answer, unless it has the name of a variable where the value
// belongs.
func (t *Turn) takeText(s *repl.Session, f *textFinal, value json.RawMessage) {
	if value[0] == '"' && hasHole(f.Argument, s.Variables()) {
		t.reject(f, "it names a variable where its value should stand; "+
			`use an f-string in code: FINAL(f"{name}")`)
		return
	}
	t.Final = &tiers.Final{Value: value}
}

// reject tells the model why its answer in text does not count.
func (t *Turn) reject(f *textFinal, reason string) {
	t.Notes = append(t.Notes, fmt.Sprintf("%s in your text was not taken: %s.", f.Call, reason))
}

// listVariables names the variables of a session.
func listVariables(s *repl.Session) string {
	names := slices.Sorted(maps.Keys(s.Variables()))
	if len(names) == 0 {
		return "There are no variables yet."
	}
	return "Variables: " + joinNames(names) + "."
}
