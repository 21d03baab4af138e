package inputs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/tiers"
)

// List holds the contexts of a session, in the order of their numbers in host calls.
type List []tiers.Input

// prefixLength bounds the excerpt of an input in a prompt, in characters.
const prefixLength = 200

// maxPart bounds the copy of a lazy text for a sub-call, in bytes.
const maxPart = 256 << 20

// textRef refers to the characters from Start to End of an input: see [tiers.Call].
type textRef struct {
	Input      int
	Start, End int64
}

// parseReference decodes a reference to a part of a lazy text.
func parseReference(value tiers.Value) (ref textRef, ok bool) {
	if !bytes.HasPrefix(value, []byte(`{"__rlm_text__"`)) {
		return ref, false
	}
	var object struct {
		Text *[3]int64 `json:"__rlm_text__"`
	}

	if json.Unmarshal(value, &object) != nil || object.Text == nil {
		return ref, false
	}
	return textRef{
		Input: int(object.Text[0]),
		Start: object.Text[1],
		End:   object.Text[2],
	}, true
}

// text returns the text to which a reference refers.
func (in List) text(ctx context.Context, ref textRef) (*bigtext.Text, error) {
	if ref.Input < 0 || ref.Input >= len(in) || in[ref.Input].Text == nil {
		return nil, errors.New("a file of more than 8 MiB in a directory cannot be handed to " +
			"a sub-call as a whole: pass slices of at most 8 MiB")
	}
	return bigtext.Of(ctx, in[ref.Input].Text)
}

// part copies the characters of a reference, as UTF-8. The copy does not depend on the mapping,
// which may be truncated at any time.
func (in List) part(ctx context.Context, ref textRef, limit int64) ([]byte, error) {
	text, err := in.text(ctx, ref)
	if err != nil {
		return nil, err
	}
	if ref.End-ref.Start > limit {
		return nil, fmt.Errorf(
			"%s characters are too many for one sub-call, which takes %s: split them",
			quantity.Comma(ref.End-ref.Start), quantity.Comma(limit),
		)
	}

	data, _, err := text.Slice(ctx, ref.Start, ref.End)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > maxPart {
		return nil, fmt.Errorf(
			"%s bytes are too many for one sub-call: split them", quantity.Comma(len(data)),
		)
	}

	var out []byte
	err = bigtext.Guard(text, func() {
		out = bytes.ToValidUTF8(bytes.Clone(data), []byte("\uFFFD"))
	})
	return out, err
}

// Text returns a value for a prompt: a str unchanged, a lazy text as its characters, any other
// value as JSON. Limit bounds it, in characters.
func (in List) Text(ctx context.Context, value tiers.Value, limit int64) (string, error) {
	if ref, ok := parseReference(value); ok {
		data, err := in.part(ctx, ref, limit)
		return string(data), err
	}
	text := string(value)
	if len(value) > 0 && value[0] == '"' {
		if err := json.Unmarshal(value, &text); err != nil {
			return "", err
		}
	} else if bytes.Contains(value, []byte(`"__rlm_text__"`)) {
		var err error
		if text, err = in.resolveAll(ctx, value, limit); err != nil {
			return "", err
		}
	}

	text = strings.ToValidUTF8(text, "\uFFFD") // a hostile guest's JSON may contain any bytes
	if n := int64(utf8.RuneCountInString(text)); n > limit {
		return "", fmt.Errorf(
			"%s characters are too many for one sub-call, which takes %s: split them",
			quantity.Comma(n), quantity.Comma(limit),
		)
	}

	return text, nil
}

// resolveAll returns JSON in which each lazy text is replaced by its characters.
func (in List) resolveAll(ctx context.Context, value tiers.Value, limit int64) (string, error) {
	resolved, err := in.resolve(ctx, value, &limit, 0)
	return string(resolved), err
}

func (in List) resolve(
	ctx context.Context, value tiers.Value, left *int64, depth int,
) (tiers.Value, error) {
	if depth > 100 {
		return value, nil // too deep to be meant as a lazy text
	}
	if ref, ok := parseReference(value); ok {
		data, err := in.part(ctx, ref, *left)
		if err != nil {
			return nil, err
		}
		*left -= int64(len(data))
		return json.Marshal(string(data))
	}

	switch {
	case len(value) > 0 && value[0] == '[':
		var list []tiers.Value
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = in.resolve(ctx, list[i], left, depth+1); err != nil {
				return nil, err
			}
		}
		return json.Marshal(list)
	case len(value) > 0 && value[0] == '{':
		var object map[string]tiers.Value
		if err := json.Unmarshal(value, &object); err != nil {
			return nil, err
		}
		for name, member := range object {
			var err error
			if object[name], err = in.resolve(ctx, member, left, depth+1); err != nil {
				return nil, err
			}
		}
		return json.Marshal(object)
	}

	return value, nil
}

// Open makes the input of a sub-loop from a snippet's value. A reference to a whole text yields
// the same text; any other value is copied. Call done after the sub-loop ends.
func (in List) Open(
	ctx context.Context, value tiers.Value,
) (input tiers.Input, done func() error, err error) {
	nothing := func() error { return nil }
	if ref, ok := parseReference(value); ok {
		text, err := in.text(ctx, ref)
		if err != nil {
			return input, nil, err
		}
		if all, err := text.Len(ctx); err == nil && ref.Start == 0 && ref.End == all {
			return in[ref.Input], nothing, nil
		}
		data, err := in.part(ctx, ref, maxPart)
		if err != nil {
			return input, nil, err
		}
		part := bigtext.FromBytes("part of "+in[ref.Input].Name, data)
		return tiers.Input{Name: part.Name(), Text: part}, part.Close, nil
	}

	if len(value) > 0 && value[0] == '"' {
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return input, nil, err
		}
		text := bigtext.FromBytes("context", []byte(s))
		return tiers.Input{Name: "context", Text: text}, text.Close, nil
	}

	resolved, err := in.resolveAll(ctx, value, maxPart)
	if err != nil {
		return input, nil, err
	}
	return tiers.Input{Name: "context", Value: tiers.Value(resolved)}, nothing, nil
}

// Shorten returns the beginning and the end of an input of more than limit characters, and a
// sentence that says that the variable context holds the whole input. For a shorter input it
// returns "".
func Shorten(ctx context.Context, input tiers.Input, limit, ends int64) (string, error) {
	if input.Text == nil {
		input.Text = bigtext.FromBytes("value", input.Value)
	}
	text, err := bigtext.Of(ctx, input.Text)
	if err != nil {
		return "", err
	}
	n, err := text.Len(ctx)
	if err != nil || n <= limit {
		return "", err
	}

	head, err := (List{input}).part(ctx, textRef{End: ends}, ends)
	if err != nil {
		return "", err
	}
	tail, err := (List{input}).part(ctx, textRef{Start: n - ends, End: n}, ends)
	return fmt.Sprintf("%s\n[... %s characters ...]\n%s\n\n(This is the beginning and the end of "+
		"your task. The variable `context` holds the whole of it: the task and its data.)",
		head, quantity.Comma(n-2*ends), tail), err
}

// Describe returns the description of the inputs for a prompt. Its size does not depend on the size
// of the inputs; without inputs it is empty. With preview, it quotes the beginning of each input.
func (in List) Describe(ctx context.Context, preview bool) (string, error) {
	var b strings.Builder
	for i, input := range in {
		name := "context"
		if i > 0 {
			name = fmt.Sprintf("context_%d", i)
		}
		if i == maxDescribed {
			fmt.Fprintf(&b, "... and %d more, up to context_%d\n", len(in)-i, len(in)-1)
			break
		}

		if input.Variable != "" {
			name = input.Variable
		}
		if err := describeInput(ctx, &b, name, input, preview); err != nil {
			return "", fmt.Errorf("cannot describe input %d (%s): %w", i, input.Name, err)
		}
	}

	return strings.TrimRight(b.String(), "\n"), nil
}

// maxDescribed bounds how many inputs a prompt describes.
const maxDescribed = 20

func describeInput(
	ctx context.Context, b *strings.Builder, name string, input tiers.Input, preview bool,
) error {
	begins := func(text string) string {
		if !preview {
			return ""
		}
		return fmt.Sprintf("  it begins with this data: %s\n", quote(text))
	}

	switch {
	case input.Text != nil:
		text, err := bigtext.Of(ctx, input.Text)
		if err != nil {
			return err
		}
		if text.IsBinary() {
			describeBytes(b, name, text)
			break
		}
		n, err := text.Len(ctx)
		if err != nil {
			return err
		}
		prefix, err := (List{input}).part(
			ctx, textRef{End: min(n, prefixLength)}, prefixLength,
		)
		if err != nil {
			return err
		}
		fmt.Fprintf(
			b,
			"- `%s`: %s, type %s\n%s"+
				"  access: slice it (`%s[:1000]`), `%s.find(...)`, `%s.split(...)`, `re`%s\n",
			name, describeLength(name, n), text.Kind(), begins(string(prefix)), name, name, name,
			suggestParser(text, name, n),
		)
		describePages(b, name, text)
	case input.Dir != nil:
		files := input.Dir.Names()
		shown := files[:min(len(files), 10)]
		fmt.Fprintf(
			b,
			"- `%s`: a mapping of %s paths to texts (a directory)\n%s"+
				"  access: `for path, text in %s.items()`, `%s[path]`\n",
			name, quantity.Comma(len(files)),
			begins(texts.Truncate(strings.Join(shown, ", "), prefixLength)), name, name,
		)
	default:
		describeValue(b, name, input.Value, begins)
	}

	for _, note := range input.Notes {
		fmt.Fprintf(b, "  note: %s\n", quote(note)) // file names may contain any characters
	}
	return nil
}

// pictures are the kinds of pictures that models accept.
var pictures = []bigtext.Kind{"png", "jpg", "gif", "webp"}

// describeBytes describes a file that is not text.
func describeBytes(b *strings.Builder, name string, text *bigtext.Text) {
	fmt.Fprintf(
		b,
		"- `%s`: a bytes object of %s bytes, type %s; it is not text and not decoded\n"+
			"  access: slice it (`%s[:100]`), `%s.open()` for a file-like object\n",
		name, quantity.Comma(text.Size()), text.Kind(), name, name,
	)
	if len(text.Tables()) > 0 {
		fmt.Fprintf(b, "  its rows are dicts: `for row in %s.table()`\n", name)
	}
	if slices.Contains(pictures, text.Kind()) {
		fmt.Fprintf(b, "  a model can look at it: `llm_query(\"...\", images=[%s])`\n", name)
	}
	describePages(b, name, text)
}

// describePages describes what code can do with pages in addition to reading their text.
func describePages(b *strings.Builder, name string, text *bigtext.Text) {
	if text.HasPages() {
		fmt.Fprintf(b, "  a model can look at a page: `llm_query(\"...\", images=[%s.parts[0].image()])`\n", name)
	}
}

// longestStr is the number of characters above which a context cannot be a real str.
const longestStr = math.MaxInt32

func describeLength(name string, n int64) string {
	if n > longestStr {
		return fmt.Sprintf("a text of %s characters, too long for a real str in some sandboxes: it then "+
			"behaves like one (`%s.size` instead of `len`, parts for what wants a str)", quantity.Comma(n), name)
	}
	return fmt.Sprintf("a str of %s characters", quantity.Comma(n))
}

// suggestParser returns a hint about parsing a text, or "" if none applies.
func suggestParser(text *bigtext.Text, name string, n int64) string {
	const small = 20 << 20 // above this size, a parsed copy would fill the sandbox
	kind := text.Kind()
	switch {
	case kind == bigtext.KindJSON && len(text.Tables()) > 0:
		return fmt.Sprintf(", `for row in %s.table()` for dicts", name)
	case len(text.Tables()) > 0:
		return fmt.Sprintf(", `for row in %s.table(%q)` for dicts", name, text.Tables()[0].Name)
	case kind == bigtext.KindJSON && n < small:
		return fmt.Sprintf(", `json.loads(%s)`", name)
	case kind == bigtext.KindJSONL:
		return fmt.Sprintf(", `for row in %s.json_lines()`", name)
	case kind == bigtext.KindCSV:
		return fmt.Sprintf(", `for row in %s.table()` for dicts of str", name)
	}

	return ""
}

func describeValue(
	b *strings.Builder, name string, value tiers.Value, begins func(string) string,
) {
	kind := "value"
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(value, &list) == nil && list != nil:
		kind = fmt.Sprintf("list of %s items", quantity.Comma(len(list)))
	case json.Unmarshal(value, &object) == nil && object != nil:
		kind = fmt.Sprintf("dict of %s keys", quantity.Comma(len(object)))
	}

	prefix := []rune(string(value[:min(len(value), 4*prefixLength)]))
	fmt.Fprintf(
		b,
		"- `%s`: a %s, type json, %s characters as JSON\n%s"+
			"  access: it is a Python value already\n",
		name, kind, quantity.Comma(utf8.RuneCount(value)),
		begins(string(prefix[:min(len(prefix), prefixLength)])),
	)
}

// quote returns text of an input on one line, so that it cannot be mistaken for part of the
// prompt.
func quote(text string) string { return fmt.Sprintf("%q", text) }
