package tables

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// pythonScript compares each batch on standard input with CPython's result for the same text.
const pythonScript = `
import base64, csv, io, itertools, json, marshal, sys
def lines_of(text):
    for n, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if line.strip(" \t\r"):
            yield n, line.strip(" \t\r")
def expect(text, case):
    if case["kind"] == "lines":
        lines = text.replace("\r\n", "\n").split("\n")
        return lines if lines[-1] else lines[:-1]
    if case["kind"] == "json":
        rows = []
        for n, line in lines_of(text):
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                rows.append(type(error).__name__)
        return rows
    csv.field_size_limit(case["limit"])
    file = io.StringIO(text, newline="")
    make = csv.DictReader if case["kind"] == "dicts" else csv.reader
    reader = make(file, delimiter=case["delimiter"], quotechar=case["quote"])
    rows = []
    try:
        for row in reader:
            rows.append((row, reader.line_num))
    except csv.Error:
        rows.append("stuck")
    return rows
def got(case):
    rows, line = [], case.get("line", 1)
    for batch in case["batches"]:
        some, line_after, more, stuck, at = marshal.loads(base64.b64decode(batch))
        if case["kind"] == "json":
            for place, n, source in more:
                assert some[place] is None
                try:
                    some[place] = json.loads(source)
                except (ValueError, RecursionError) as error:
                    some[place] = type(error).__name__
            rows += some
        elif case["kind"] == "lines":
            assert line_after == line + len(some) and more is None and not stuck
            rows += some
        else:
            rows += zip(some, more or itertools.count(line))
            if stuck:
                rows.append("stuck")
        line = line_after
    return rows
sys.set_int_max_str_digits(4300)
for n, line in enumerate(sys.stdin):
    case = json.loads(line)
    text = base64.b64decode(case["text"]).decode("utf-8", "surrogateescape")
    want, have = expect(text, case), got(case)
    if repr(have) != repr(want):
        print(n, ascii(text), case["kind"], ascii(have), ascii(want), sep="\n")
        sys.exit(1)
print("equal")
`

// pythonCase is a text, with the batches in which a guest receives it.
type pythonCase struct {
	Text      []byte   `json:"text"`
	Kind      string   `json:"kind"`
	Delimiter string   `json:"delimiter"`
	Quote     string   `json:"quote"`
	Limit     int      `json:"limit"`
	Line      int64    `json:"line"`
	Batches   [][]byte `json:"batches"`
}

func (c *pythonCase) read(t *testing.T) {
	t.Helper()
	at, line := 0, int64(1)
	var names [][]byte
	dialect := Dialect{Delimiter: c.Delimiter[0], Quote: c.Quote[0], Limit: c.Limit}
	if c.Kind == "dicts" {
		r := &rowReader{Dialect: dialect, data: c.Text, line: 1}
		if isRow, err := r.next(); err != nil || !isRow || len(r.fields) == 0 {
			c.Kind = "lists" // in this case, a guest does not request dicts
		} else {
			for _, field := range r.fields {
				names = append(names, slices.Clone(field))
			}
			at, line = r.at, r.line
		}
	}
	c.Line, c.Batches = line, [][]byte{}

	for at < len(c.Text) {
		var batch *Batch
		var err error
		isStuck := false
		switch c.Kind {
		case "lines":
			batch = Lines(c.Text, at, line)
		case "json":
			if batch, err = JSONLines(c.Text, at, line); err != nil {
				t.Fatal(err)
			}
		default:
			batch = CSVRows(c.Text, at, line, dialect, names, 3)
			isStuck = batch.Stuck
		}
		c.Batches = append(c.Batches, batch.Encode(int64(batch.Next)))
		if isStuck {
			break
		}
		if batch.Next <= at {
			t.Fatalf("no progress at byte %d of %q", at, c.Text)
		}
		at, line = batch.Next, batch.Line
	}
}

func randomPieces(r *rand.Rand, pieces []string, most int) []byte {
	var text strings.Builder
	for range r.IntN(most) {
		text.WriteString(pieces[r.IntN(len(pieces))])
	}
	return []byte(text.String())
}

var csvPieces = []string{
	"a", "b", "é", "中文", "\xff", "\xed\xa0\x80", ",", ",", ",", ";", "\t", `"`, `"`, `""`, `"x,y"`, "\n", "\n",
	"\r\n",
	"\r", "\x00", " ", "'", "\u2028", "\x0b", "\x1c", "\ufeff", "long text of a field", "long text of a field",
}

var jsonPieces = []string{
	`{"a": 1, "b": "x"}`, `{"a": 1, "b": "x"}`, `{"b":[1,2,{"c":null}],"a":true}`, "\n", "\n", "\n", "\r\n", " ",
	"{", "}", "[", "]", ",", ":", `"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\udE00x\u0041"`, `"\"\\\/\b\f\n\r\t"`,
	`"\x"`, "\"\x01\"",
	"\"\xff\"", "\"\xed\xa0\x80\"", `"é中"`, "1", "-0", "-0.0", "01", "1.", ".5", "1e5", "1E+400", "1e-400", "2.5e-3",
	"123456789012345678", "1234567890123456789", "-99999999999", "2147483648", "-2147483648", "NaN", "Infinity",
	"-Infinity", "true", "nul", "\ufeff", "\u2028", "\x0b", `{"a":1,"a":2}`, `{"":{}}`, `{"k\u0041":1}`,
	`{"long key of an object":"long value"}`,
	`["long value","long value","long value!"]`, "\"\x7f\"", strings.Repeat("[", 120) + strings.Repeat("]", 120),
}

// TestAgainstCPython compares lines with those of split, and rows with those of csv.reader,
// csv.DictReader and json.loads.
func TestAgainstCPython(t *testing.T) {
	cmd := exec.Command(skip.WithoutCPython(t), "-c", pythonScript)
	r := rand.New(rand.NewPCG(1, 2))
	var input bytes.Buffer
	encoder := json.NewEncoder(&input)
	for i := range 8000 {
		kind := []string{"json", "lists", "dicts", "lines"}[i%4]
		c := pythonCase{Kind: kind, Delimiter: ",", Quote: `"`, Limit: 131072}
		if c.Kind == "json" {
			c.Text = randomPieces(r, jsonPieces, 12)
		} else {
			c.Text = randomPieces(r, csvPieces, 30)
			c.Delimiter, c.Quote = []string{",", ",", ";", "\t"}[r.IntN(4)], []string{`"`, `"`, "'"}[r.IntN(3)]
			c.Limit = []int{131072, 131072, 25, 5}[r.IntN(4)]
		}
		c.read(t)
		if err := encoder.Encode(c); err != nil {
			t.Fatal(err)
		}
	}

	cmd.Stdin, cmd.Stderr = &input, os.Stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "equal\n" {
		t.Fatalf("%v: %s", err, out)
	}
}
