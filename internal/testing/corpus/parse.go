package corpus

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
)

//go:embed sentences.txt
var source string

// parsed parses the embedded file, once.
var parsed = sync.OnceValues(func() (*archive, error) { return parse(source) })

// archive is a parsed file of sentences.
type archive struct {
	branches, users, domains, currencies []string
	languages                            []language
}

// language is the material for one language.
type language struct {
	code, join                 string
	given, family, city, title []string
	name                       sentence
	sentences                  []sentence
}

// sentence is literal text with slots in between.
type sentence []piece

// piece is a literal and the slot after it. The last piece may have no slot.
type piece struct {
	literal string
	fill    filler
}

// parse parses a file of sentences. The format is described at the top of the file.
func parse(text string) (*archive, error) {
	a := &archive{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := a.line(line); err != nil {
			return nil, fmt.Errorf("sentences, line %d: %w", n, err)
		}
	}

	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the sentences: %w", err)
	}
	err := a.check()
	return a, err
}

// line parses one line that is neither blank nor a comment.
func (a *archive) line(line string) error {
	if code, ok := strings.CutPrefix(line, "= "); ok {
		code, _, _ = strings.Cut(code, " ")
		a.languages = append(a.languages, language{code: code, join: " "})
		return nil
	}

	if text, ok := strings.CutPrefix(line, "- "); ok {
		l, err := a.current()
		if err != nil {
			return err
		}

		s, err := parseSentence(text)
		l.sentences = append(l.sentences, s)
		return err
	}

	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return fmt.Errorf("%q is neither a language nor a list nor a sentence", line)
	}
	return a.list(key, strings.TrimSpace(value))
}

// list parses a line "key: value | value".
func (a *archive) list(key, value string) error {
	shared := map[string]*[]string{
		"branches": &a.branches, "users": &a.users,
		"domains": &a.domains, "currencies": &a.currencies,
	}
	if into, ok := shared[key]; ok {
		*into = strings.Split(value, " | ")
		return nil
	}

	l, err := a.current()
	if err != nil {
		return err
	}
	return l.list(key, value)
}

// list parses a line that belongs to one language.
func (l *language) list(key, value string) error {
	lists := map[string]*[]string{
		"given": &l.given, "family": &l.family, "city": &l.city, "title": &l.title,
	}
	if into, ok := lists[key]; ok {
		*into = strings.Split(value, " | ")
		return nil
	}

	var err error
	switch key {
	case "join":
		l.join = value
	case "name":
		l.name, err = parseSentence(value)
	default:
		err = fmt.Errorf("there is no list %q", key)
	}

	return err
}

// current returns the language of the current section.
func (a *archive) current() (*language, error) {
	if len(a.languages) == 0 {
		return nil, errors.New("no language has begun")
	}
	return &a.languages[len(a.languages)-1], nil
}

// check returns an error if anything is missing.
func (a *archive) check() error {
	if len(a.branches)*len(a.users)*len(a.domains)*len(a.currencies) == 0 {
		return errors.New("a list that every language shares is empty")
	}

	for i := range a.languages {
		l := &a.languages[i]
		if len(l.given)*len(l.family)*len(l.city)*len(l.title)*len(l.sentences) == 0 {
			return fmt.Errorf("language %q lacks sentences or one of its lists", l.code)
		}

		if l.name == nil {
			l.name = sentence{{fill: fillers["given"]}, {literal: " ", fill: fillers["family"]}}
		}
	}
	return nil
}

// parseSentence splits a sentence at its slots.
func parseSentence(text string) (sentence, error) {
	var s sentence
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if !found {
			return append(s, piece{literal: literal}), nil
		}

		slot, after, closed := strings.Cut(rest, "}")
		fill, known := fillers[slot]
		if !closed || !known {
			return nil, fmt.Errorf("there is no slot {%s}", slot)
		}

		s = append(s, piece{literal, fill})
		text = after
	}
	return s, nil
}
