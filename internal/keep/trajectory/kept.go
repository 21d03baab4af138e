package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// IsRunLog reports whether a file with this beginning is the log of a run, as written by rlm runs
// export.
func IsRunLog(begin []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(begin), []byte(`{"turn":`)) }

// Kept is a line of a record as stored in the run log.
type Kept struct {
	// File is the path of the line's file, relative to the folder of the record.
	File string `json:"file"`
	// Opens marks the first line of the run. A process that continues the run writes it again.
	Opens bool `json:"opens,omitempty"`
	// Prompt replaces the prompt of the line, which is null. It may be nil.
	Prompt *Prompt         `json:"prompt,omitempty"`
	Line   json.RawMessage `json:"line"`
}

// Size returns the length of the line and the new messages, in bytes.
func (k *Kept) Size() int {
	size := len(k.Line)
	if k.Prompt != nil {
		for _, message := range k.Prompt.New {
			size += len(message)
		}
	}
	return size
}

// Prompt is a list of messages: the first messages of the previous prompt in the same file, and new
// ones. So a run log does not repeat a loop's messages in every turn.
type Prompt struct {
	Same int               `json:"same,omitempty"`
	New  []json.RawMessage `json:"new"`
}

// KeptTurn is the record of a turn in a run log, or a part of it.
type KeptTurn struct {
	// Part counts from 0. The first part of a turn replaces an earlier attempt.
	Part  int    `json:"part,omitempty"`
	Lines []Kept `json:"lines"`
	// LeftOut counts the lines that exceeded the bounds.
	LeftOut int `json:"left_out,omitempty"`
}

// Prompts expands the prompts of lines, in their order. The zero value is ready to use.
type Prompts struct{ last map[string][]json.RawMessage }

// Forget frees the messages of a file that has ended.
func (p *Prompts) Forget(file string) { delete(p.last, file) }

// promptKey precedes null for an omitted prompt. It cannot occur in a string, because the quotes in
// a string are escaped.
const promptKey = `"prompt":`

// Expand returns the complete line.
func (p *Prompts) Expand(k *Kept) ([]byte, error) {
	if k.Prompt == nil {
		return k.Line, nil
	}
	before := p.last[k.File]
	if k.Prompt.Same < 0 || k.Prompt.Same > len(before) {
		return nil, fmt.Errorf("a prompt has %d messages of one with %d", k.Prompt.Same, len(before))
	}

	messages := slices.Concat(before[:k.Prompt.Same], k.Prompt.New)
	if messages == nil {
		messages = []json.RawMessage{} // a list without messages is not null
	}
	if p.last == nil {
		p.last = map[string][]json.RawMessage{}
	}
	p.last[k.File] = messages

	size := 2
	for _, message := range messages {
		size += len(message) + 1
	}
	if size > maxPrompt {
		return nil, fmt.Errorf("a prompt would have more than %d bytes", maxPrompt)
	}

	whole, err := json.Marshal(messages)
	if err != nil {
		return nil, err
	}
	return bytes.Replace(k.Line, []byte(promptKey+"null"), append([]byte(promptKey), whole...), 1), nil
}

// These bounds, in bytes, apply to a record rebuilt from a run log, because its prompts repeat
// messages.
const (
	maxRebuilt = 1 << 30
	maxPrompt  = 64 << 20
)

var errTooLarge = fmt.Errorf("the record would have more than %d bytes", maxRebuilt)

// Rebuilt is the record of a run, rebuilt from its run log. The zero value is empty.
type Rebuilt struct{ turns []rebuiltTurn }

type rebuiltTurn struct {
	number int
	KeptTurn
}

// Add adds the record of a turn. A repeated turn replaces the earlier one and all turns after it.
func (r *Rebuilt) Add(turn int, data []byte) error {
	kept := rebuiltTurn{number: turn}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&kept.KeptTurn); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	for i := range kept.Lines {
		switch k := &kept.Lines[i]; {
		case !validFile.MatchString(k.File):
			return fmt.Errorf("%.80q is not a file of a record", k.File)
		case len(k.Line) == 0:
			return fmt.Errorf("a line of %s is missing", k.File)
		}
	}

	for len(r.turns) > 0 && kept.Part == 0 && r.turns[len(r.turns)-1].number >= turn {
		r.turns = r.turns[:len(r.turns)-1]
	}
	r.turns = append(r.turns, kept)
	return nil
}

// validFile matches a file of a record: of the root, or of a sub-loop in its folder.
var validFile = lazyregexp.New(`^(sub_[0-9]{4,9}/){0,32}(trajectory|events)\.jsonl$`)

// IsEmpty reports whether no line was kept.
func (r *Rebuilt) IsEmpty() bool { return len(r.turns) == 0 }

// HasUntil reports whether the record starts at or before the given turn.
func (r *Rebuilt) HasUntil(turn int) bool { return !r.IsEmpty() && r.turns[0].number <= turn }

// Until returns the record up to the given turn.
func (r *Rebuilt) Until(turn int) *Rebuilt {
	n := slices.IndexFunc(r.turns, func(t rebuiltTurn) bool { return t.number > turn })
	if n < 0 {
		n = len(r.turns)
	}
	return &Rebuilt{r.turns[:n:n]}
}

// Last returns the last line, or nil.
func (r *Rebuilt) Last() []byte {
	if r.IsEmpty() {
		return nil
	}

	lines := r.turns[len(r.turns)-1].Lines
	if len(lines) == 0 {
		return nil
	}
	return lines[len(lines)-1].Line
}

// Each passes the lines of the record to take, in order. The notes describe what was left out.
func (r *Rebuilt) Each(take func(file string, line []byte) error) (notes []string, err error) {
	var prompts Prompts
	opened, size := map[string]bool{}, 0
	for _, turn := range r.turns {
		for i := range turn.Lines {
			k := &turn.Lines[i]
			if k.Opens && opened[k.File] {
				continue // another process continued the run
			}
			opened[k.File] = opened[k.File] || k.Opens

			line, err := prompts.Expand(k)
			if err != nil {
				return notes, err
			}
			if size += len(line) + 1; size > maxRebuilt {
				return notes, errTooLarge
			}
			if err := take(k.File, line); err != nil {
				return notes, err
			}
		}

		if turn.LeftOut > 0 {
			notes = append(notes,
				fmt.Sprintf("turn %d: %d lines were too much for the run log", turn.number, turn.LeftOut))
		}
	}
	return notes, nil
}

// Write writes the record to a new or empty folder.
func (r *Rebuilt) Write(dir string) (notes []string, err error) {
	if r.IsEmpty() {
		return nil, errors.New("the run log has no record: an earlier version of rlm wrote it, or no turn has ended")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()

	begun := map[string]bool{}
	return r.Each(func(file string, line []byte) error {
		how := os.O_WRONLY | os.O_APPEND
		if !begun[file] {
			begun[file], how = true, how|os.O_CREATE|os.O_EXCL
			if folder := path.Dir(file); folder != "." {
				if err := root.MkdirAll(filepath.FromSlash(folder), 0o700); err != nil {
					return err
				}
			}
		}
		return appendLine(root, file, line, how)
	})
}

// appendLine appends a line. It opens the file each time, because a record may have more files than
// a process can open.
func appendLine(root *os.Root, name string, line []byte, how int) error {
	file, err := root.OpenFile(filepath.FromSlash(name), how, 0o600)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%w: name a new or empty folder", err)
	}
	if err != nil {
		return err
	}

	_, err = io.Copy(file, io.MultiReader(bytes.NewReader(line), strings.NewReader("\n")))
	return errors.Join(err, file.Close())
}
