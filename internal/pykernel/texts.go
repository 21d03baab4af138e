package pykernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/bigtext"
)

// Bounds on what one request may ask for.
const (
	maxSlice   = 256 << 20 // bytes
	maxMatches = 4096
	maxTexts   = 100_000 // texts of directories that one session may open
)

// textInfo describes a text to the guest.
type textInfo struct {
	ID      int          `json:"id"`
	Kind    string       `json:"kind"`
	Name    fileName     `json:"name"`
	Type    bigtext.Kind `json:"type,omitempty"`
	Chars   int64        `json:"chars"`
	Bytes   int64        `json:"bytes"`
	ASCII   bool         `json:"ascii"`
	Invalid int64        `json:"invalid"`
	Path    string       `json:"path,omitempty"` // in the guest's file system
}

// fileName is a name that may have bytes that are not UTF-8, as file systems allow. In
// JSON each is a lone surrogate, as Python has it (surrogateescape).
type fileName string

// MarshalJSON returns a JSON string of ASCII and what is UTF-8.
func (n fileName) MarshalJSON() ([]byte, error) {
	out := []byte{'"'}
	for rest := string(n); rest != ""; {
		valid := len(rest)
		for i, r := range rest {
			if r == utf8.RuneError && !strings.HasPrefix(rest[i:], "\uFFFD") {
				valid = i
				break
			}
		}
		part, err := json.Marshal(rest[:valid])
		if err != nil {
			return nil, err
		}
		out = append(out, part[1:len(part)-1]...)
		if rest = rest[valid:]; rest != "" {
			out, rest = fmt.Appendf(out, `\udc%02x`, rest[0]), rest[1:]
		}
	}
	return append(out, '"'), nil
}

func (s *Session) describe() Reply {
	type function struct {
		Name string `json:"name"`
		Doc  string `json:"doc"`
	}
	config := struct {
		Functions []function `json:"functions"`
		Inputs    []textInfo `json:"inputs"`
	}{[]function{}, []textInfo{}}
	for _, f := range s.cfg.Functions {
		config.Functions = append(config.Functions, function{f.Name, f.Doc})
	}
	for i, in := range s.cfg.Inputs {
		info := textInfo{ID: i, Kind: "value", Name: fileName(in.Name)}
		switch {
		case in.Dir != nil:
			info.Kind = "dir"
		case in.Text != nil:
			var err error
			if info, err = s.textInfo(i, in.Name); err != nil {
				return fail(err)
			}
		}
		config.Inputs = append(config.Inputs, info)
	}
	return okJSON(config)
}

func (s *Session) textInfo(id int, name string) (textInfo, error) {
	ctx := s.calls.ctx
	t, err := s.texts[id].open()
	if err != nil {
		return textInfo{}, err
	}
	chars, err := t.Len(ctx)
	if err != nil {
		return textInfo{}, err
	}
	ascii, err := t.ASCII(ctx)
	if err != nil {
		return textInfo{}, err
	}
	invalid, err := t.Invalid(ctx)
	if err != nil {
		return textInfo{}, err
	}
	info := textInfo{id, "text", fileName(name), t.Kind(), chars, t.Bytes(), ascii, invalid, ""}
	if id < len(s.paths) {
		info.Path = s.paths[id]
	}
	return info, nil
}

// describeText describes a text that the guest knows by number from before a
// move.
func (s *Session) describeText(body []byte) Reply {
	id, err := strconv.Atoi(string(body))
	if err != nil || id < 0 || id >= len(s.texts) {
		return fail(errRequest)
	}
	name := s.texts[id].path
	if id < len(s.cfg.Inputs) {
		name = s.cfg.Inputs[id].Name
	}
	info, err := s.textInfo(id, name)
	if err != nil {
		return fail(err)
	}
	return okJSON(info)
}

func (s *Session) value(body []byte) Reply {
	id, err := strconv.Atoi(string(body))
	if err != nil || id < 0 || id >= len(s.cfg.Inputs) || s.cfg.Inputs[id].Value == nil {
		return fail(errRequest)
	}
	return valueReply(s.cfg.Inputs[id].Value, nil)
}

func (s *Session) dir(body []byte) Reply {
	if len(body) == 0 {
		return fail(errRequest)
	}
	number, path, opens := strings.Cut(string(body[1:]), ",")
	id, err := strconv.Atoi(number)
	if err != nil || id < 0 || id >= len(s.cfg.Inputs) || s.cfg.Inputs[id].Dir == nil {
		return fail(errRequest)
	}
	d := s.cfg.Inputs[id].Dir
	switch {
	case body[0] == 'l' && !opens:
		return listDir(d)
	case body[0] == 'o' && opens:
		return s.openFile(d, path)
	}
	return fail(errRequest)
}

func listDir(d *bigtext.Dir) Reply {
	list := [][2]any{}
	for _, name := range d.Names() {
		size, err := d.Size(name)
		if err != nil {
			return fail(err)
		}
		list = append(list, [2]any{fileName(name), size})
	}
	return okJSON(list)
}

func (s *Session) openFile(d *bigtext.Dir, path string) Reply {
	if len(path) > maxPath {
		return fail(fmt.Errorf("cannot open a path of %d bytes: no file has one that is longer than %d", len(path), maxPath))
	}
	if len(s.texts) >= maxTexts+len(s.cfg.Inputs) {
		return fail(fmt.Errorf("cannot open %q: %d files have been opened in this session, no more may be", path, maxTexts))
	}
	file := openText{dir: d, path: path}
	id, known := s.files[file]
	if !known {
		if _, err := d.Size(path); err != nil { // what is not there is not kept in mind
			return fail(noFile(path, err))
		}
		id = len(s.texts)
		s.texts = append(s.texts, file)
		s.files[file] = id
	}
	info, err := s.textInfo(id, path)
	if err != nil {
		return fail(noFile(path, err))
	}
	return okJSON(info)
}

// maxPath is how long a path in a directory can be, in bytes.
const maxPath = 4096

// noFile says that a file is not there without the host's own path.
func noFile(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot open %q: no such file in the context directory", path)
	}
	return err
}

// text answers the requests that begin with t.
func (s *Session) text(body []byte) Reply {
	if len(body) == 0 {
		return fail(errRequest)
	}
	op, body := body[0], body[1:]
	if op == 'i' {
		return s.describeText(body)
	}
	more := op != 's' && op != 'b'
	nums, rest, err := operands(body, 3, more)
	if err != nil {
		return fail(err)
	}
	if nums[0] < 0 || nums[0] >= int64(len(s.texts)) {
		return fail(errRequest)
	}
	t, err := s.texts[nums[0]].open()
	if err != nil {
		return fail(err)
	}
	a, b := nums[1], nums[2]
	switch op {
	case 's':
		return s.slice(t, a, b)
	case 'b':
		return s.bytes(t, a, b)
	}
	// What may take long ends with the snippet's time.
	ctx, cancel := context.WithTimeout(s.calls.ctx, max(0, s.meter.activeLeft())+time.Millisecond)
	defer cancel()
	switch op {
	case 'f':
		return number(t.Find(ctx, rest, a, b))
	case 'r':
		return number(t.RFind(ctx, rest, a, b))
	case 'c':
		return number(t.Count(ctx, rest, a, b))
	case 'p', 'l':
		return parts(ctx, t, op, a, b, rest)
	case 'x', 'g':
		return matches(ctx, t, op, a, b, rest)
	}
	return fail(errRequest)
}

func number(n int64, err error) Reply {
	if err != nil {
		return fail(err)
	}
	return okInt(n)
}

func (s *Session) slice(t *bigtext.Text, a, b int64) Reply {
	data, ascii, err := t.Slice(s.calls.ctx, a, b)
	if err != nil {
		return fail(err)
	}
	if len(data) > maxSlice {
		return fail(fmt.Errorf("cannot bring %d bytes into the sandbox at once: take smaller slices", len(data)))
	}
	return Reply{Data: data, ASCII: ascii, text: t}
}

// bytes copies raw bytes: a byte offset may lie within a character.
func (s *Session) bytes(t *bigtext.Text, a, b int64) Reply {
	if a < 0 || a > b || b > t.Bytes() || b-a > maxSlice {
		return fail(errRequest)
	}
	data, err := t.Raw(a, b)
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data, text: t}
}

// splitter reads the kind and leaves the operands after it.
func splitter(body []byte) (string, []byte, error) {
	kind, rest, found := strings.Cut(string(body), ",")
	if !found {
		return "", nil, errRequest
	}
	return kind, []byte(rest), nil
}

func parts(ctx context.Context, t *bigtext.Text, op byte, a, b int64, body []byte) Reply {
	kind, rest, err := splitter(body)
	if err != nil {
		return fail(err)
	}
	var span []int64
	if op == 'l' {
		if span, rest, err = operands(rest, 2, true); err != nil {
			return fail(err)
		}
	}
	by, err := splitterOf(kind, rest)
	if err != nil {
		return fail(err)
	}
	if op == 'p' {
		return number(t.Parts(ctx, by, a, b))
	}
	start, end, err := t.PartsRange(ctx, by, a, b, span[0], span[1])
	if err != nil {
		return fail(err)
	}
	return ok(fmt.Sprintf("%d,%d", start, end))
}

func splitterOf(kind string, sep []byte) (bigtext.Splitter, error) {
	switch kind {
	case "sep":
		if len(sep) == 0 {
			return bigtext.Splitter{}, errors.New("empty separator")
		}
		return bigtext.Sep(append([]byte(nil), sep...)), nil
	case "lines":
		return bigtext.Lines(), nil
	case "newlines":
		return bigtext.Newlines(), nil
	case "fields":
		return bigtext.Fields(), nil
	}
	return bigtext.Splitter{}, errRequest
}

func matches(ctx context.Context, t *bigtext.Text, op byte, a, b int64, body []byte) Reply {
	nums, expr, err := operands(body, 2, true)
	if err != nil || nums[1] < 1 || nums[1] > maxMatches {
		return fail(errRequest)
	}
	re, err := bigtext.CompileRegexp(string(expr))
	if err != nil {
		return fail(fmt.Errorf("regexp: %w", err))
	}
	var (
		spans [][]int64
		next  int64
	)
	if op == 'x' {
		spans, next, err = t.FindRegexp(ctx, re, a, b, nums[0], int(nums[1]))
	} else {
		spans, next, err = matchLines(ctx, t, re, a, b, nums[0], int(nums[1]))
	}
	if err != nil {
		return fail(err)
	}
	if spans == nil {
		spans = [][]int64{}
	}
	data, err := json.Marshal([]any{next, spans})
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data, ASCII: true}
}

// matchLines finds the lines, ends included, in which re matches; neighbours
// come as one run of at most about a mebibyte.
func matchLines(ctx context.Context, t *bigtext.Text, re *bigtext.Regexp, a, b, from int64, limit int) (runs [][]int64, next int64, err error) {
	const longest = 1 << 20
	next = from
	newline := []byte{'\n'}
	for next >= 0 && len(runs) < limit {
		found, _, err := t.FindRegexp(ctx, re, a, b, next, 1)
		if err != nil {
			return nil, 0, err
		}
		if len(found) == 0 {
			return runs, -1, nil
		}
		at := found[0][0]
		start, err := t.RFind(ctx, newline, max(a, from), at)
		if err != nil {
			return nil, 0, err
		}
		start = max(start+1, a, from)
		end, err := t.Find(ctx, newline, at, b)
		if err != nil {
			return nil, 0, err
		}
		if end < 0 {
			end = b
		} else {
			end++
		}
		last := len(runs) - 1
		if last >= 0 && runs[last][1] == start && end-runs[last][0] < longest {
			runs[last][1] = end
		} else {
			runs = append(runs, []int64{start, end})
		}
		next = end
		if end >= b {
			next = -1
		}
	}
	return runs, next, nil
}
