package turns

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/tiers"
)

var (
	// literalStart matches the beginning of a string, a list or a dict.
	literalStart = lazyregexp.New(`^([A-Za-z]{0,2}["']|\[[^\]]|\{)`)
	// expression matches an argument that looks like code.
	expression = lazyregexp.New(
		`^([A-Za-z]{0,2}["'\[{(]|[\pL_][\pL\d_]*([.(\[]|$|\s*=[^=]))`)
	// arithmetic matches an argument that calculates with names.
	arithmetic = lazyregexp.New(`^[\pL_][\pL\d_.]*(\s*[-+*/%]{1,2}\s*[\pL\d_.]+)+$`)
	// constants matches an argument that consists of numbers. Its operators belong to dates,
	// ranges, fractions, scores and lists as often as to arithmetic.
	constants = lazyregexp.New(`^[\d\s.,:/_<>=-]*$|^[\d\s.]+(and|or|in|is)[\d\s.]+$|^0[xX][\da-fA-F]+$`)
	// choice matches the rest of two strings with a word between them.
	choice = lazyregexp.New(`^\s+(?:and|or)\s+$`)
	// brokenCode matches an argument that must be code although it cannot be parsed, because no
	// sentence begins like this.
	brokenCode = lazyregexp.New(`^([A-Za-z]{0,2}["'\[{(]|[A-Za-z_][\w.]*[(\[])`)
	// placeholder matches the placeholders for an answer in prompts.
	placeholder = lazyregexp.New(
		`(?i)^(\.\.\.|…|<[^<>]*>|\[?(the |your )(final )?answer( here)?\]?|\?+|TODO|TBD)?$`)
	// hole matches a field in a string that only an f-string fills in, or a name from code.
	hole = lazyregexp.New(`\{([A-Za-z_]\w*)[^{}]*\}|\b([A-Za-z]\w*_\w+)\b`)
)

// isLiteral reports whether the argument is a number or begins like a string, a list or a dict.
func (f *textFinal) isLiteral() bool {
	_, isJSON := f.literal()
	return f.Call != "FINAL_VAR" && (isJSON || literalStart.MatchString(f.Argument))
}

// isExpression reports whether the argument looks like code.
func (f *textFinal) isExpression() bool {
	return expression.MatchString(f.Argument) || arithmetic.MatchString(f.Argument)
}

// literal returns the argument as JSON, if it is a number, a quoted string, a list, an object,
// true, false or null.
func (f *textFinal) literal() (json.RawMessage, bool) {
	if f.Argument == "" || !json.Valid([]byte(f.Argument)) {
		return nil, false
	}
	return json.RawMessage(f.Argument), true
}

// source returns the Python code with which a session determines the meaning of the answer: a
// variable, a string, a call. It is empty if the argument can only be text, such as a date.
func (f *textFinal) source() string {
	if f.Call == "FINAL_VAR" && variable.MatchString(f.Argument) {
		return "FINAL_VAR(" + f.Argument + ")"
	}
	if f.Call == "FINAL_VAR" {
		name := strings.Trim(f.Argument, "\"'` ")
		quoted, _ := json.Marshal(name) //nolint:errchkjson // a string always encodes
		return "FINAL_VAR(" + string(quoted) + ")"
	}

	isChoice := choice.MatchString(blankTexts(f.Argument)) // Python would choose one of the strings
	if f.Call == "FINAL" && (constants.MatchString(f.Argument) || isChoice) {
		return ""
	}
	if strings.Contains(f.Argument, "#") {
		return f.Call + "(" + f.Argument + "\n)" // so that a comment does not hide the parenthesis
	}
	return f.Call + "(" + f.Argument + ")"
}

// variable matches the argument of FINAL_VAR as code: a quoted name, or a name and a value.
var variable = lazyregexp.New(`^(["'][^"'\n]*["']\s*(,.+)?|[A-Za-z_]\w*\s*,.+)$`)

// text returns the argument as a JSON string.
func (f *textFinal) text() json.RawMessage {
	text, _ := json.Marshal(f.Argument) //nolint:errchkjson // a string always encodes
	return text
}

// hasHole reports whether text contains the name of a session variable instead of its value.
func hasHole(text string, variables map[string]string) bool {
	for _, m := range hole.FindAllStringSubmatch(text, -1) {
		if _, known := variables[m[1]+m[2]]; known {
			return true
		}
	}
	return false
}

// settleText determines the meaning of an answer in text. FINAL(x) is a literal, or Python that the
// session evaluates. An argument that is not Python is a string, taken verbatim. The model receives
// an evaluation error, because a name that does not exist is never the answer.
func (t *Turn) settleText(ctx context.Context, s *loopsession.Session, f *textFinal) error {
	if f.Call != "FINAL_VAR" && placeholder.MatchString(f.Argument) {
		t.reject(f, "the answer was a placeholder", "it has no answer in it")
		return nil
	}
	hasRun := len(t.Ran) > 0
	if value, ok := f.literal(); ok && f.Call != "FINAL_VAR" {
		t.takeText(s, f, value)
		return nil
	}
	source := f.source()
	if source == "" {
		t.takeText(s, f, f.text())
		return nil
	}

	ran, err := s.Run(ctx, loopsession.Block{Language: tiers.Python, Source: source})
	if err != nil {
		return t.noteRefusal(err)
	}
	isText := ran.Exception != nil && slices.Contains(noPython, ran.Exception.Type) &&
		f.Call != "FINAL_VAR" && !brokenCode.MatchString(f.Argument)
	switch {
	case ran.Final != nil && hasRun && f.isConstant() && t.isUnseen(ran.Final.Value):
		t.rejectUnseen(f)
	case ran.Final != nil:
		t.Final = ran.Final
	case isText:
		t.takeText(s, f, f.text())
	default:
		t.Ran = append(t.Ran, ran) // the error of FINAL_VAR lists the existing variables
		if f.Call != "FINAL_VAR" && ran.Exception != nil && ran.Exception.Type == "NameError" {
			t.reject(f, "NameError: "+ran.Exception.Message, ran.Exception.Message+". "+listVariables(s)+
				` For a text, write it in quotes: FINAL("...")`)
		}
	}

	return nil
}

// noPython holds the exceptions for an argument that is not Python.
var noPython = []string{"SyntaxError", "IndentationError"}

// takeText accepts a value as the answer, unless it contains the name of a variable instead of its
// value.
func (t *Turn) takeText(s *loopsession.Session, f *textFinal, value json.RawMessage) {
	if value[0] == '"' && hasHole(f.Argument, s.Variables()) {
		t.reject(f, "the answer named a variable in place of its value",
			"it names a variable where its value should stand; "+
				`use an f-string in code: FINAL(f"{name}")`)
		return
	}
	if len(t.Ran) > 0 && t.isUnseen(value) {
		t.rejectUnseen(f)
		return
	}
	t.Final = &tiers.Final{Value: value}
}

// rejectUnseen rejects an answer that the model could not know yet.
func (t *Turn) rejectUnseen(f *textFinal) {
	t.reject(f, "the answer was not in the output of its code",
		"you wrote it before you saw the output of your code, which does not contain it; "+
			"read the output above, then answer")
}

// reject tells the user and the model why an answer in text is not accepted.
func (t *Turn) reject(f *textFinal, why, reason string) {
	t.Refuse(why, f.refuse(reason))
}

// refuse formats the reason why an answer in text is not accepted.
func (f *textFinal) refuse(reason string) string {
	return f.Call + " in your text was not taken: " + reason + "."
}

// listVariables returns the names of a session's variables.
func listVariables(s *loopsession.Session) string {
	names := slices.Sorted(maps.Keys(s.Variables()))
	if len(names) == 0 {
		return "There are no variables yet."
	}
	return "Variables: " + joinNames(names) + "."
}
