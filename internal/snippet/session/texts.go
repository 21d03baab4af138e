package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// Guests refer to texts by number. The number of an input is its index; that of a file of a
// directory, or of the rows of a table, is firstFile plus its index among those that the session
// has opened.
const firstFile = 1 << 20

// maxFiles bounds the number of files of directories and of tables that one session may open.
const maxFiles = 100_000

// files holds the texts, other than the inputs, that have numbers in the guest. Each is reopened
// for each use, because a directory keeps few files open.
type files struct {
	list    []file
	numbers map[file]int
}

// file is a file of a directory, or a table in the text with number owner.
type file struct {
	dir  *bigtext.Dir
	path string

	owner, table int // used if dir is nil
}

// add returns the number of a file, assigning one if necessary.
func (f *files) add(added file) int {
	number, isKnown := f.numbers[added]
	if isKnown {
		return number
	}
	if f.numbers == nil {
		f.numbers = map[file]int{}
	}

	number = firstFile + len(f.list)
	f.list = append(f.list, added)
	f.numbers[added] = number
	return number
}

// checkRoom returns an error if no more files can be opened.
func (f *files) checkRoom(path string) error {
	if len(f.list) < maxFiles {
		return nil
	}
	return fmt.Errorf("cannot open %q: this session has already opened %d files, the maximum", path, maxFiles)
}

func (f *files) clone() files {
	return files{slices.Clone(f.list), maps.Clone(f.numbers)}
}

// openText opens the text with a number and returns its name.
func (a *Accounts) openText(number int) (*bigtext.Text, string, error) {
	if number >= 0 && number < len(a.cfg.Inputs) {
		text := a.textOf(number)
		if text == nil {
			return nil, "", errRequest // the input is not a text
		}
		return text, a.cfg.Inputs[number].Name, nil
	}

	at := number - firstFile
	if at < 0 || at >= len(a.files.list) {
		return nil, "", errRequest
	}
	f := a.files.list[at]
	if f.dir == nil {
		return a.openTable(f)
	}
	text, err := f.dir.Text(a.calls.ctx, f.path)
	return text, f.path, err
}

// openTable opens the rows of a table. The rows have the file's name.
func (a *Accounts) openTable(f file) (*bigtext.Text, string, error) {
	owner, name, err := a.openText(f.owner) // tables contain no tables
	if err != nil {
		return nil, "", err
	}
	text, err := owner.Table(a.calls.ctx, f.table)
	return text, name, err
}

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

	Variable string `json:"variable,omitempty"` // another name of an input
	Encoding string `json:"encoding"`           // the encoding of the bytes
	Raw      int64  `json:"raw"`                // bytes before decoding
	Binary   bool   `json:"binary,omitempty"`   // the bytes were not decoded

	Tables []fileName `json:"tables,omitempty"` // names of the tables
}

// fileName is a name that may contain bytes that are not UTF-8, as file systems allow. In JSON each
// such byte is a lone surrogate, as in Python (surrogateescape).
type fileName string

// MarshalJSON returns a JSON string with the bytes that are not UTF-8 escaped.
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

func (a *Accounts) describe() Reply {
	type function struct {
		Name string `json:"name"`
		Doc  string `json:"doc"`
	}
	config := struct {
		Functions []function        `json:"functions"`
		Variables map[string]string `json:"variables"` // by name, as JSON
		Inputs    []textInfo        `json:"inputs"`
		Memory    int64             `json:"memory"` // the limit, in bytes
		Out       bool              `json:"out"`    // snippets have the folder /out
		Packages  bool              `json:"packages"`
	}{
		[]function{},
		map[string]string{},
		[]textInfo{},
		a.cfg.Limits.Memory, a.cfg.Out,
		a.packages != nil,
	}
	for _, f := range a.cfg.Functions {
		if f.Value != nil {
			config.Variables[f.Name] = string(f.Value)
			continue
		}
		config.Functions = append(config.Functions, function{f.Name, f.Doc})
	}
	for i, in := range a.cfg.Inputs {
		info := textInfo{ID: i, Kind: "value", Name: fileName(in.Name)}
		switch {
		case in.Dir != nil:
			info.Kind = "dir"
		case in.Text != nil:
			var err error
			if info, err = a.textInfo(i); err != nil {
				return fail(err)
			}
		}
		info.Variable = in.Variable
		config.Inputs = append(config.Inputs, info)
	}
	return okJSON(config)
}

func (a *Accounts) textInfo(id int) (textInfo, error) {
	ctx := a.calls.ctx
	t, name, err := a.openText(id)
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

	info := textInfo{
		ID: id, Kind: "text", Name: fileName(name), Type: t.Kind(), Chars: chars, Bytes: t.Size(),
		ASCII: ascii, Invalid: invalid, Encoding: cmp.Or(t.Encoding(), "utf-8"),
		Raw: t.Original().Size(), Binary: t.IsBinary(),
	}
	if id < len(a.paths) {
		info.Path = a.paths[id]
	}
	for _, table := range t.Tables() {
		info.Tables = append(info.Tables, fileName(table.Name))
	}
	return info, nil
}

// describeText describes a text whose number the guest has from before a move.
func (a *Accounts) describeText(body []byte) Reply {
	id, err := strconv.Atoi(string(body))
	if err != nil {
		return fail(errRequest)
	}
	info, err := a.textInfo(id)
	if err != nil {
		return fail(err)
	}
	return okJSON(info)
}

// openRows describes the rows of a table, given the numbers of its text and of the table. The reply
// describes a text, and contains the names of the columns.
func (a *Accounts) openRows(body []byte) Reply {
	numbers, _, err := cutNumbers(body, 2, false)
	if err != nil || numbers[0] < 0 || numbers[0] > math.MaxInt32 {
		return fail(errRequest)
	}
	owner, name, err := a.openText(int(numbers[0]))
	if err != nil {
		return fail(err)
	}
	if numbers[1] < 0 || numbers[1] >= int64(len(owner.Tables())) {
		return fail(errRequest)
	}

	f := file{owner: int(numbers[0]), table: int(numbers[1])}
	if err := a.files.checkRoom(name); err != nil {
		return fail(err)
	}
	info, err := a.textInfo(a.files.add(f))
	if err != nil {
		return fail(err)
	}
	columns := []fileName{}
	for _, column := range owner.Tables()[f.table].Columns {
		columns = append(columns, fileName(column.Name))
	}
	return okJSON([]any{info, columns})
}

func (a *Accounts) value(body []byte) Reply {
	id, err := strconv.Atoi(string(body))
	if err != nil || id < 0 || id >= len(a.cfg.Inputs) || a.cfg.Inputs[id].Value == nil {
		return fail(errRequest)
	}
	return valueReply(a.cfg.Inputs[id].Value, nil)
}

func (a *Accounts) directory(body []byte) Reply {
	if len(body) == 0 {
		return fail(errRequest)
	}
	number, path, opens := strings.Cut(string(body[1:]), ",")
	id, err := strconv.Atoi(number)
	if err != nil || a.directoryOf(id) == nil {
		return fail(errRequest)
	}

	d := a.directoryOf(id)
	switch {
	case body[0] == 'l' && !opens:
		return listDir(d)
	case body[0] == 'o' && opens:
		return a.openFile(d, path)
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

func (a *Accounts) openFile(d *bigtext.Dir, path string) Reply {
	if len(path) > maxPath {
		return fail(fmt.Errorf("cannot open a path of %d bytes: a path may have at most %d",
			len(path), maxPath))
	}

	f := file{dir: d, path: path}
	if _, isKnown := a.files.numbers[f]; !isKnown {
		if err := a.files.checkRoom(path); err != nil {
			return fail(err)
		}
		if _, err := d.Size(path); err != nil { // a missing file gets no number
			return fail(noFile(path, err))
		}
	}
	info, err := a.textInfo(a.files.add(f))
	if err != nil {
		return fail(noFile(path, err))
	}
	return okJSON(info)
}

// maxPath bounds a path in a directory, in bytes.
const maxPath = 4096

// noFile reports a missing file without the host's own path.
func noFile(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot open %q: no such file in the context directory", path)
	}
	return err
}
