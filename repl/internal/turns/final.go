package turns

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
)

// textFinal is an answer that a model gave in the text of its reply, outside of code:
// FINAL(...), FINAL_VAR(...) or SUBMIT(...).
type textFinal struct {
	// Call is "FINAL", "FINAL_VAR" or "SUBMIT".
	Call string
	// Argument is the text between the parentheses, trimmed.
	Argument string

	begin, end int  // its position in the text
	isInline   bool // words precede it on its line
	isVague    bool // it is not marked as the answer, or is quoted
}

// String returns the call as the model wrote it, shortened.
func (f *textFinal) String() string {
	argument := f.Argument
	if len(argument) > 60 {
		argument = strings.ToValidUTF8(argument[:60], "") + "…"
	}
	return f.Call + "(" + argument + ")"
}

var (
	// anyFinal matches a call anywhere in a reply.
	anyFinal = lazyregexp.New("\\b(FINAL_VAR|FINAL|SUBMIT)[*_`]{0,3}\\(")
	// answerStart is like anyFinal, but allows a space before the parenthesis.
	answerStart = lazyregexp.New("\\b(FINAL_VAR|FINAL|SUBMIT)(?:[*_`]{0,3}| )\\(")
	// partOfFinal also matches a call inside a word. Text with such a call is program text, not an
	// answer.
	partOfFinal = lazyregexp.New("(?:FINAL_VAR|FINAL|SUBMIT)[*_`]{0,3}\\(")
	// beforeFinal matches what may precede an answer on its line: a list or quotation mark, a
	// short label ("Answer:"), a tag, and marks of emphasis. Text indented like code is code.
	beforeFinal = lazyregexp.New("^ {0,3}(?:(?:[-*+>]|\\d{1,3}[.)])[ \t]+)?" +
		"(?:[*_]{0,3}[A-Za-z][A-Za-z ]{0,30}:[*_]{0,3}[ \t]*)?(?:<(?:final|answer|final_answer|response)>)?[*_`]{0,3}$")
	// intent matches the words of a model that announces an answer.
	intent = lazyregexp.New(
		`(?i)\b(will|would|going to|then|when|once|if|until|should|could|can|may|must|need|not|never|` +
			`before|later|next|call|calling|use|using|like|example|such as|e\.g|format)\b|'ll\b|n't\b`,
	)
	// assertion matches the words before an answer in a sentence that states the answer.
	assertion = lazyregexp.New(
		`(?i)\b(is|are|answer|result|total|therefore|thus|hence|so|gives?|yields?|equals?)\b|[:=→]\s*$`)
	// report matches words that attribute the answer after them to someone else.
	report = lazyregexp.New(
		`(?i)\b(?:says?|said|saying|prints?|printed|wrote|writes?|written|reads|shows|showed|shown|` +
			`contains?|contained|quotes?|quoted|logs|logged)\b[^\pL\pN.!?]*$`)
	// condition matches words, before an answer on its line, that mean that the answer is not given
	// yet.
	condition = lazyregexp.New(
		`(?i)\b(?:once|until|if|unless|later|formats?|examples?|templates?|such as|would|should)\b`)
)

// maxTries bounds how many places in one reply are tried, so that a flood of them does not take
// quadratic time.
const maxTries = 20

// IsPutOff reports whether the words of a reply before its first bracket announce an answer that
// the model has yet to give.
func IsPutOff(reply string) bool {
	words, _, _ := strings.Cut(reply, "{")
	words, _, _ = strings.Cut(words, "[")
	return intent.MatchString(words)
}

// textReading is the result of reading the text of a reply outside of its code.
type textReading struct {
	final *textFinal
	// notes explain why answers in the text were ignored.
	notes []string
	// unread holds the lines from the first to the last that look like code; empty if there are
	// none.
	unread string
	// after is the text after the answer, or after the last line of code.
	after string
}

// readText reads the text of a reply outside of its code.
func readText(text string) (r textReading) {
	finals, notes := findFinals(text)
	r.notes = notes
	rest, at := "", 0
	for _, f := range finals {
		rest += text[at:f.begin] + "\n"
		at = f.end
	}
	rest += text[at:]
	r.after = text[at:]
	if len(finals) == 0 {
		r.after = behindCode(text)
	}
	if slices.ContainsFunc(strings.Split(rest, "\n"), isCodeLine) {
		r.unread = cutLines(bareText(text), func(line string) bool {
			return isCodeLine(line) || anyFinal.MatchString(line)
		})
	}

	f, note := pickFinal(finals)
	if note == "" && f != nil && r.unread == "" {
		if name := findClaim(rest, f); name != "" {
			note = f.refuse("your text sets " + name + ", but only code in a ```repl block sets variables")
		}
	}
	if note != "" {
		r.notes = append(r.notes, note)
		return r
	}
	r.final = f
	return r
}

// findFinals returns the answers in text in order, except those that are only mentioned, and notes
// about those that cannot be read.
func findFinals(text string) (finals []*textFinal, notes []string) {
	places := answerStart.FindAllStringSubmatchIndex(text, -1)
	places = places[max(0, len(places)-maxTries):]
	for i, at := range places {
		if len(finals) > 0 && at[0] < finals[len(finals)-1].end {
			continue // this place is part of the previous answer
		}
		line := lineBefore(text, at[0])
		f := &textFinal{Call: text[at[2]:at[3]], begin: at[0]}
		f.isInline = !beforeFinal.MatchString(line) && strings.ContainsFunc(line, isWordRune)
		if f.isInline && intent.MatchString(line) {
			continue
		}

		limit := len(text)
		for _, next := range places[i+1:] {
			if before := lineBefore(text, next[0]); beforeFinal.MatchString(before) {
				limit = next[0] - len(before)
				break
			}
		}

		length, problem := f.read(text[at[1]:limit])
		f.end = at[1] + length
		rest := restOfLine(text[f.end:])
		isSpaced := text[at[1]-2] == ' '
		switch {
		case isSpaced && (f.isInline || problem != "" || rest != ""): // words such as "FINAL (draft)"
		case problem != "" && !f.isInline:
			notes = append(notes, problem)
		case problem != "", f.isInline && placeholder.MatchString(f.Argument):
		case intent.MatchString(rest) && !doubt.MatchString(rest):
		default:
			isClear := assertion.MatchString(line) && (f.isLiteral() || f.isExpression())
			isQuestion := strings.HasPrefix(strings.TrimLeft(text[f.end:], "*_` "), "?")
			f.isVague = f.isInline && !isClear || isQuestion || isQuote(text, f)
			finals = append(finals, f)
		}
	}
	return finals, notes[:min(len(notes), 1)]
}

// isWordRune reports whether a character before an answer is more than a symbol such as a tick:
// part of words, a comment, a table or a quotation.
func isWordRune(r rune) bool {
	return r > ' ' && r < utf8.RuneSelf || unicode.IsLetter(r) || unicode.IsDigit(r) ||
		strings.ContainsRune(openQuotes, r)
}

const openQuotes = "\"'“‘„«"

// isQuote reports whether text quotes an answer: in quotation marks, after words that introduce a
// quotation, or in a Markdown quotation next to other words.
func isQuote(text string, f *textFinal) bool {
	line := lineBefore(text, f.begin)
	bare := strings.TrimRight(line, "*_` ")
	last, _ := utf8.DecodeLastRuneInString(bare)
	if bare != "" && strings.ContainsRune(openQuotes, last) || report.MatchString(line) {
		return true
	}

	before := strings.TrimRight(strings.TrimSuffix(text[:f.begin], line), " \t\n")
	lead := lineBefore(before, len(before))
	if strings.HasSuffix(lead, ":") && (report.MatchString(lead) || condition.MatchString(lead)) {
		return true
	}
	return quoteMark.MatchString(line) && slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.TrimSpace(line) != "" && !quoteMark.MatchString(line)
	})
}

// pickFinal returns the single answer among those in the text, or a note that explains why there is
// none.
func pickFinal(finals []*textFinal) (picked *textFinal, note string) {
	for _, f := range finals {
		switch {
		case picked == nil:
			picked = f
		case picked.Call != f.Call || picked.Argument != f.Argument:
			return nil, fmt.Sprintf("Your text has two answers, %s and %s, so none was taken. Give one.", picked, f)
		case picked.isVague:
			picked = f
		}
	}
	if picked != nil && picked.isVague {
		return nil, fmt.Sprintf("%s in the middle of a line, in a quotation or in a question was not taken. "+
			"Write your answer at the beginning of a line: FINAL(...)", picked)
	}
	return picked, ""
}

// read reads the argument from the text after the opening parenthesis. It returns the length up to
// the closing parenthesis, or the problem. It first counts parentheses outside of quoted strings,
// as in code. In words, any quotes and parentheses may occur; the words end at the first
// parenthesis that ends a line and has no match.
func (f *textFinal) read(text string) (length int, problem string) {
	if end := pysyntax.Balanced(text); end >= 0 {
		f.Argument = strings.TrimSpace(text[:end])
		isValue := json.Valid([]byte(f.Argument)) || f.Argument != "" && constants.MatchString(f.Argument)
		rest, _, _ := strings.Cut(text[end+1:], "\n")
		if isValue && isInWords(rest) {
			return 0, f.unclear()
		}
		if f.quoteWords(); isValue || expression.MatchString(f.Argument) || remark.MatchString(text[end+1:]) {
			return end + 1, ""
		}
	}

	opened, at, end, isClear := 0, 0, -1, true
	for line := range strings.SplitAfterSeq(text, "\n") {
		inner, closes := strings.CutSuffix(strings.TrimRight(line, endMarks+"\n"), ")")
		opened += strings.Count(inner, "(") - strings.Count(inner, ")")
		switch {
		case closes && opened <= 0 && end < 0:
			end, opened = at+len(inner), 0
		case closes && opened <= 0:
			isClear = false
		case closes:
			opened--
		}
		at += len(line)
	}

	switch {
	case end < 0:
		return 0, f.Call + "( in your text was not taken: its closing parenthesis is missing."
	case !isClear || partOfFinal.MatchString(text[:end]) || strings.Contains(text[:end], "```"):
		return 0, f.unclear()
	}

	f.Argument = strings.TrimSpace(text[:end])
	f.quoteWords()
	return end + 1, ""
}

// isInWords reports whether words end with a parenthesis that they do not open, so that the
// parenthesis before the words is part of the answer, as in FINAL(1) Ann, 2) Eve).
func isInWords(words string) bool {
	words, closes := strings.CutSuffix(strings.TrimRight(words, endMarks), ")")
	isOpen := strings.Count(words, ")") < strings.Count(words, "(")
	return closes && !isOpen && strings.ContainsFunc(words, unicode.IsLetter)
}

// unclear returns the problem of an answer whose end is ambiguous.
func (f *textFinal) unclear() string {
	return f.Call + "( in your text was not taken: it is not clear where its text ends. " +
		`Write it in quotes: FINAL("...")`
}

var (
	// remark matches words in parentheses, up to the end of the line.
	remark = lazyregexp.New(`^[ \t]*\([^()\n]*\)[.!;*_` + "`" + ` \t]*(?:\n|$)`)
	// phrase matches several words with capital letters: names, in a list or with an addition.
	phrase = lazyregexp.New(`^` + capital + `(?:(?:, |,? (?:and|or|&) |\.? )` + capital + `)*(?: \([^()"'=\[\n]*\))?$`)
	// sign matches answers that have an unintended meaning in code: #5, ~50, N/A, 50 [1], not
	// found, a telephone number, an address.
	sign = lazyregexp.New(`^(?:#\d+|~ ?\d[\d.,]*|N/A|\d[\d.,]* \[\d+(?:, ?\d+)*\]|\(\d+\) ?\d[\d -]*|` +
		`(?i:yes|no|unknown|not (?:found|available|applicable|given|known|listed|mentioned|present|provided|` +
		`specified|stated))|` + `[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})$`)
	// contraction matches the beginning of words that looks like the start of a string in code.
	contraction = lazyregexp.New(`^(\pL+)['’](?:s|t|m|d|re|ve|ll)\b`)
	// textPrefix matches the letters that may precede a string in code.
	textPrefix = lazyregexp.New(`(?i)^(?:[rbuf]|br|rb|fr|rf)$`)
)

// capital matches a word such as Paris, because variables begin with a lower-case letter.
const capital = `\p{Lu}[\p{Ll}'’-]+`

// quoteWords puts an argument of FINAL in quotes if it consists of words although it resembles
// code.
func (f *textFinal) quoteWords() {
	if f.Call != "FINAL" {
		return
	}
	if strings.HasPrefix(f.Argument, "“") || strings.HasPrefix(f.Argument, "‘") {
		plain := plainPunctuation(f.Argument)
		if (plain[0] == '"' || plain[0] == '\'') && pysyntax.StringEnd(plain, 0) == len(plain)-1 {
			f.Argument = plain
		}
		return
	}

	isPhrase := strings.Contains(f.Argument, " ") && phrase.MatchString(f.Argument) &&
		!pythonConstant.MatchString(f.Argument)
	m := contraction.FindStringSubmatch(f.Argument)
	if isPhrase || sign.MatchString(f.Argument) || len(m) > 1 && !textPrefix.MatchString(m[1]) {
		f.Argument = quoteJSON(f.Argument)
	}
}

// quoteJSON returns a value as JSON on one line, without escaping characters such as <.
func quoteJSON(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil { //nolint:errchkjson // the value came from JSON
		return ""
	}
	return strings.TrimSpace(out.String())
}

// endMarks are the characters that may follow an answer on its line: marks of emphasis and full
// stops.
const endMarks = " \t\r*_`.;!"

// maxLine bounds the words that are examined before and after an answer, in bytes.
const maxLine = 500

// lineBefore returns the text before a position on its line.
func lineBefore(text string, at int) string {
	line := text[max(0, at-maxLine):at]
	return line[strings.LastIndexByte(line, '\n')+1:]
}

// restOfLine returns the rest of a line, without endMarks.
func restOfLine(text string) string {
	rest, _, _ := strings.Cut(text[:min(len(text), maxLine)], "\n")
	return strings.Trim(rest, endMarks)
}
