package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/text/spelling"
)

// Value is the storage of a setting: a field of a [Config], and its text form.
type Value interface {
	pflag.Value
	// JSON returns the value for display, without secrets.
	JSON() any
}

// whole is an integer within bounds.
type whole struct {
	to       *int64
	min, max int64
}

func (w whole) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < w.min || n > w.max {
		return fmt.Errorf("%q: give a whole number from %d to %d", text, w.min, w.max)
	}
	*w.to = n
	return nil
}

func (w whole) String() string {
	return showValue(w.to, func(n int64) string { return strconv.FormatInt(n, 10) })
}
func (w whole) Type() string { return "number" }
func (w whole) JSON() any    { return *w.to }

// amount is a positive number, possibly with a fraction.
type amount struct{ to *float64 }

func (a amount) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n <= 0 {
		return fmt.Errorf("%q: give a number above zero, such as 2.5", text)
	}
	*a.to = n
	return nil
}

func (a amount) String() string {
	return showValue(a.to, func(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) })
}
func (a amount) Type() string { return "amount" }
func (a amount) JSON() any    { return *a.to }

// within is a number in a closed range.
type within struct {
	to       *float64
	min, max float64
}

func (w within) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= w.min && n <= w.max) {
		return fmt.Errorf("%q: give a number from %g to %g", text, w.min, w.max)
	}
	*w.to = n
	return nil
}

func (w within) String() string {
	return showValue(w.to, func(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) })
}
func (w within) Type() string { return "amount" }
func (w within) JSON() any    { return *w.to }

// toggle is true or false.
type toggle struct{ to *bool }

func (t toggle) Set(text string) error {
	switch normaliseBool(text) {
	case "true":
		*t.to = true
	case "false":
		*t.to = false
	default:
		return fmt.Errorf("%q: give true or false", text)
	}
	return nil
}

// normaliseBool normalises a boolean as YAML, Python and shells write it. It returns other strings
// unchanged.
func normaliseBool(text string) string {
	switch strings.ToLower(text) {
	case "true", "1":
		return "true"
	case "false", "0":
		return "false"
	}
	return text
}
func (t toggle) String() string { return showValue(t.to, strconv.FormatBool) }
func (t toggle) Type() string   { return "bool" }
func (t toggle) JSON() any      { return *t.to }

// span is a positive duration.
type span struct {
	to     *time.Duration
	orNone bool // 0 is allowed
}

func (s span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, bare := strconv.ParseFloat(text, 64); bare == nil && n > 0 {
		return fmt.Errorf("%q: give the time with its unit, such as %ss", text, text)
	}
	if s.orNone && err == nil && d == 0 {
		*s.to = 0
		return nil
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: give a time above zero, such as 30s or 5m", text)
	}

	*s.to = d
	return nil
}

func (s span) String() string {
	return showValue(s.to, ShowSpan)
}
func (s span) Type() string { return "time" }
func (s span) JSON() any    { return s.String() }

// ShowSpan formats a duration as 10m instead of 10m0s.
func ShowSpan(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// maxSize is the largest size, in bytes.
const maxSize = 1 << 50

// size is a positive number of bytes. An empty value leaves the size to the command.
type size struct {
	to *int64
	// optional sizes may be empty.
	optional bool
	// least is the smallest sensible size, in bytes.
	least uint64
}

func (s size) Set(text string) error {
	if text == "" && s.optional {
		*s.to = 0
		return nil
	}

	n, err := quantity.ParseBytes(text)
	// The parser would ignore a comma, and read 1,5GiB as 15 GiB.
	if err != nil || n == 0 || n > maxSize || strings.Contains(text, ",") {
		return fmt.Errorf("%q: give a size above zero, such as 20000, 64KiB or 512MiB", text)
	}
	if n < s.least {
		return fmt.Errorf("%q: give at least %s", text, bytesText(int64(s.least)))
	}

	*s.to = int64(n)
	return nil
}
func (s size) String() string { return showValue(s.to, bytesText) }
func (s size) Type() string   { return "size" }
func (s size) JSON() any      { return *s.to }

// bytesText formats a size so that Set reads back the same number.
func bytesText(n int64) string {
	switch {
	case n == 0:
		return ""
	case n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return strconv.FormatInt(n, 10)
}

// text is a line of text.
type text struct{ to *string }

func (t text) Set(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%q: give one line, without control characters", s)
	}
	*t.to = s
	return nil
}
func (t text) String() string { return showValue(t.to, func(s string) string { return s }) }
func (t text) Type() string   { return "text" }
func (t text) JSON() any      { return *t.to }

// lines is text with any number of lines.
type lines struct{ to *string }

func (l lines) Set(s string) error {
	if len(s) > maxFile || strings.ContainsRune(s, 0) {
		return fmt.Errorf("give a text of at most %d bytes, without zero bytes", maxFile)
	}
	*l.to = s
	return nil
}
func (l lines) String() string { return showValue(l.to, func(s string) string { return s }) }
func (l lines) Type() string   { return "text" }
func (l lines) JSON() any      { return *l.to }

// choice is one word of a fixed set.
type choice struct {
	to   *string
	from []string
}

func (c choice) Set(s string) error {
	if !slices.Contains(c.from, s) {
		return fmt.Errorf("%q: give %s", s, orList(c.from))
	}
	*c.to = s
	return nil
}
func (c choice) String() string { return showValue(c.to, func(s string) string { return s }) }
func (c choice) Type() string   { return "word" }
func (c choice) JSON() any      { return *c.to }

// orList formats words as "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// list is a list of strings; its text form is separated by commas.
type list struct{ to *[]string }

func (l list) Set(s string) error { return l.setAll(splitList(s)) }

func (l list) setAll(items []string) error {
	for _, item := range items {
		if item == "" {
			return errors.New("an entry is empty")
		}
		if err := (text{new(string)}).Set(item); err != nil {
			return err
		}
	}

	*l.to = items
	return nil
}

func (l list) String() string {
	return showValue(l.to, func(items []string) string { return strings.Join(items, ",") })
}
func (l list) Type() string { return "list" }
func (l list) JSON() any    { return append([]string{}, *l.to...) }

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	items := strings.Split(s, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// pairs maps some names to strings; its text form is name=text pairs, separated by commas.
type pairs struct {
	to    *map[string]string
	names []string
	// shown returns the displayable part of a value.
	shown func(string) string
}

func (p pairs) Set(s string) error {
	all := map[string]string{}
	for _, item := range splitList(s) {
		name, value, found := strings.Cut(item, "=")
		if !found {
			// The error does not quote the string, which may be a secret.
			return errors.New("give NAME=VALUE pairs, separated by commas")
		}
		if _, twice := all[name]; twice {
			return errors.New("a name is given twice")
		}

		all[name] = value
	}
	return p.setAll(all)
}

func (p pairs) setAll(all map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(p.names, name) {
			// The error does not quote an unknown name, which may be a misplaced secret.
			if meant := spelling.Nearest(name, p.names); meant != "" {
				return fmt.Errorf("one of the names is unknown; did you mean %s?", meant)
			}
			return fmt.Errorf("one of the names is unknown: use %s", orList(p.names))
		}
		if all[name] == "" || (text{new(string)}).Set(all[name]) != nil {
			return fmt.Errorf("the value of %s is empty or contains control characters", name)
		}
	}

	*p.to = all
	return nil
}

func (p pairs) String() string {
	if p.to == nil {
		return ""
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(*p.to)) {
		items = append(items, name+"="+p.shown((*p.to)[name]))
	}
	return strings.Join(items, ",")
}
func (p pairs) Type() string { return "pairs" }
func (p pairs) JSON() any {
	out := map[string]string{}
	for name, value := range *p.to {
		out[name] = p.shown(value)
	}
	return out
}

// hidden replaces a secret for display.
func hidden(string) string { return "(set)" }

// address returns the displayable part of a URL, which may contain a password or a key.
func address(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(set)"
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}

// showValue formats a value; flag packages also call it with the zero value.
func showValue[T any](to *T, text func(T) string) string {
	if to == nil {
		return ""
	}
	return text(*to)
}

// quoted quotes a string for a JSON document or an error.
func quoted(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(out)
}

// unknownName returns the error for an unknown name, with the known name that was probably meant.
func unknownName(what, name string, known []string) error {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	meant := spelling.Nearest(name, known)
	if meant == "" {
		return fmt.Errorf("unknown %s %s", what, quoted(name))
	}
	return fmt.Errorf("unknown %s %s; did you mean %s?", what, quoted(name), meant)
}
