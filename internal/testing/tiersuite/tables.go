package tiersuite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// testTables compares the rows read by the host with those of CPython's own csv and json.
func (s *suite) testTables(t *testing.T) {
	t.Run("Short", s.testShortTables)
	if !s.opt.KnownGuest {
		t.Run("Long", s.testLongTables)
		t.Run("Loops", s.testLoopsOverJSONLines)
	}
	t.Run("Layouts", s.testLayouts)
	t.Run("Refused", s.testTablesRefused)
	t.Run("Files", s.testTablesOfFiles)
	t.Run("Described", s.testDescribedTables)
}

// tableScript is code that compares the rows of the texts whose names end in .csv and .jsonl.
const tableScript = `
import csv, io, itertools, json
def outcome(make):
    rows, reader = [], None
    try:
        reader = make()
        for row in reader:
            rows.append((row, reader.line_num))
        end = None
    except Exception as error:
        end = type(error).__name__, str(error)
    return rows, end, getattr(reader, "fieldnames", None) if end is None else None
def whole(text):
    return "".join(text[i:i + (1 << 20)] for i in range(0, text.size, 1 << 20))
WAYS = [{}, {"delimiter": ";"}, {"quotechar": "'"}, {"dialect": "excel-tab"},
        {"skipinitialspace": True}, {"strict": True}, {"escapechar": "\\"}, {"quoting": csv.QUOTE_NONE},
        {"quoting": csv.QUOTE_ALL}, {"doublequote": False, "escapechar": "'"}]
KEYS = [{}, {"fieldnames": ["p", "q"]}, {"restkey": "more"}, {"restval": "none"}, {"fieldnames": "xyz"}]
def check_csv(text, ways, keys):
    plain = whole(text)
    assert type(plain) is str and io.StringIO(plain).read(1) == plain[:1]
    for way in ways:
        want = outcome(lambda: csv.reader(io.StringIO(plain, newline=""), **way))
        for lines in (text.lines(), text.lines(keepends=True)):
            assert outcome(lambda: csv.reader(lines, **way)) == want, (plain[:300], way)
        for key in keys:
            want = outcome(lambda: csv.DictReader(io.StringIO(plain, newline=""), **key, **way))
            assert outcome(lambda: csv.DictReader(text.lines(), **key, **way)) == want, (plain[:300], way, key)
            assert isinstance(csv.DictReader(text.lines()), csv.DictReader)
def loads(line):
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return error
def check_json(text):
    lines = [line.strip(" \t\r") for line in whole(text).removeprefix("\ufeff").split("\n")]
    want = [loads(line) for line in lines if line]
    good = [row for row in want if not isinstance(row, Exception)]
    bad = next((n for n, row in enumerate(want) if isinstance(row, Exception)), None)
    rows, raised = [], None
    try:
        for row in text.json_lines():
            rows.append(row)
    except (ValueError, RecursionError) as error:
        raised = error
    assert repr(rows) == repr(want[:bad]), ascii(whole(text)[:300])
    assert repr(raised) == repr(None if bad is None else want[bad]), (raised, bad)
    if not any(isinstance(row, RecursionError) for row in want):
        skipping = text.json_lines(errors="skip")
        assert repr(list(skipping)) == repr(good) and skipping.skipped == len(want) - len(good)
`

var (
	csvPieces = []string{
		"a", "é", "中", "\xff", ",", ",", ",", ";", "\t", `"`, `"`, `""`, `"x,y"`, "\n", "\n", "\r\n", "\r", "\x00", " ",
		"'", "\u2028", "\x0b", "\ufeff", "a field", "a field", `\`,
	}
	jsonPieces = []string{
		`{"a": 1, "b": "x"}`, `{"b":[1,2,{"c":null}],"a":true}`, "\n", "\n", "\n", "\r\n", " ", "{", "}", "[", "]",
		",", ":", `"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\""`, `"\x"`, "\"\x01\"", "\"\xff\"", `"é中"`, "1", "-0",
		"-0.0", "01", "1.", "1e5", "1E+400", "123456789012345678", "1234567890123456789012", "2147483648", "NaN",
		"-Infinity", "nul", "\ufeff", "\u2028", `{"a":1,"a":2}`, strings.Repeat("9", 5000),
		strings.Repeat("[", 200) + strings.Repeat("]", 200),
	}
)

func pickPieces(r *rand.Rand, pieces []string, most int) string {
	var text strings.Builder
	for range r.IntN(most) {
		text.WriteString(pieces[r.IntN(len(pieces))])
	}
	return text.String()
}

func (s *suite) testShortTables(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	inputs := []tiers.Input{
		makeTextInput(t, "quoted.csv", "id,note\r\n1,\"two\r\nlines\"\r\n\r\n2,\"a \"\"b\"\"\"\r\n3\r\n4,x,y,z\r\n"),
		makeTextInput(t, "field.csv", "a,b\n1,2\n3,"+strings.Repeat("x", 140_000)+"\n5,6\n"),
		makeTextInput(t, "empty.csv", ""),
		makeTextInput(t, "header.csv", strings.Repeat("h", 140_000)+",b\n1,2\n"),
		makeTextInput(t, "rows.jsonl", "\ufeff{\"a\": 1}\r\n\n  \n{\"a\": [1.5, \"x\"]}\n{\"b\": 1"),
	}
	for range 40 {
		inputs = append(inputs, makeTextInput(t, "random.csv", pickPieces(r, csvPieces, 40)),
			makeTextInput(t, "random.jsonl", pickPieces(r, jsonPieces, 12)))
	}
	box := s.open(t, tiers.Config{Inputs: inputs, Limits: tiers.Limits{Wall: s.opt.Patience}})
	box.mustPrint(t, tableScript+`
texts = [value for name, value in globals().items() if name.startswith("context_")]
for text in texts:
    if text.name.endswith(".csv"):
        check_csv(text, WAYS, KEYS)
    else:
        check_json(text)
print(len(texts))`, "85\n")
}

// testLongTables reads texts that need several batches.
func (s *suite) testLongTables(t *testing.T) {
	skip.Short(t, "it reads long tables in each way there is")
	r := rand.New(rand.NewPCG(5, 6))
	var csv, json strings.Builder
	csv.WriteString("id,name,note\n")
	for csv.Len() < lazy {
		csv.WriteString("1,Zoë,\"two\nlines\"\n2,plain,\"a, b\"\n")
		if r.IntN(100) == 0 {
			csv.WriteString(pickPieces(r, csvPieces[:9], 30) + "\n\n")
		}
	}
	for json.Len() < lazy {
		json.WriteString(`{"id": 1, "name": "Zoë", "tags": ["a", "b"], "x": 1.5}` + "\n")
		if r.IntN(1000) == 0 {
			json.WriteString(`{"id": 123456789012345678901234567890}` + "\n")
		}
	}

	box := s.open(t, tiers.Config{
		Inputs: []tiers.Input{
			makeTextInput(t, "long.csv", csv.String()), makeTextInput(t, "long.jsonl", json.String()),
		},
		Limits: tiers.Limits{Memory: 1 << 30, Wall: s.opt.Patience},
	})
	box.mustPrint(t, tableScript+`
check_csv(context, WAYS[:1], KEYS[:1])
check_json(context_1)
some, rest = context.lines()[99:99999], context[1000:]
print(list(csv.reader(some)) == list(csv.reader(io.StringIO("\n".join(some), newline=""))))
print(list(csv.reader(rest.lines())) == list(csv.reader(io.StringIO(whole(rest), newline=""))))
reader = csv.DictReader(context.lines())
reader.fieldnames = [name.upper() for name in reader.fieldnames]
first = next(reader)
print(first, reader.line_num, len([first, *reader]) > 1000)
del context, rest
print(sum(row["x"] for row in context_1.json_lines() if "x" in row) > 1000)`,
		"True\nTrue\n{'ID': '1', 'NAME': 'Zoë', 'NOTE': 'two\\nlines'} 3 True\nTrue\n")
}

// testLoopsOverJSONLines calls json.loads for the lines of a text, which the host then decodes in
// advance. For any other argument, CPython's own json.loads must run.
func (s *suite) testLoopsOverJSONLines(t *testing.T) {
	skip.Short(t, "it reads long texts again and again")
	r := rand.New(rand.NewPCG(7, 8))
	const row = `{"id": 1, "name": "Zoë", "tags": ["a", "b"], "x": 1.5}` + "\n"
	good := strings.Repeat("null\r\n1234567890123456789012\n"+strings.Repeat(row, 100), lazy/len(row)/100)
	odd := strings.Builder{}
	for odd.Len() < lazy {
		odd.WriteString(strings.Repeat(row, 20+r.IntN(9000)) + pickPieces(r, jsonPieces, 6) + "\n")
	}
	box := s.open(t, tiers.Config{
		Inputs: []tiers.Input{
			makeTextInput(t, "good.jsonl", "\ufeff"+good+"1"), makeTextInput(t, "odd.jsonl", odd.String()),
		},
		Limits: tiers.Limits{Memory: 1 << 30, Wall: s.opt.Patience},
	})
	box.mustPrint(t, `
import json
def load(line, **way):
    try:
        return repr(json.loads(line, **way))
    except (ValueError, RecursionError) as error:
        return repr(error)
want = [load(line, parse_float=float) for line in context_1.lines()]
for often in (1, 40):
    assert [load(line) for n, line in enumerate(context_1.lines()) if n % often == 0] == want[::often]
n = 0
for line, other in zip(context_1.lines(), context_1.lines()):
    if n % 3 == 0:
        assert load(line) == load(other) == load(line)
    n += 1
for n, line in enumerate(context.lines()):
    if n % 102 > 1:
        row = json.loads(line)
        row["id"] += 1
        assert row["id"] == 2 and json.loads(line)["id"] == 1
for line in context_1.lines():
    json.loads(line)
    break
print(json.loads(line)["id"], n > 100_000)`, "1 True\n")
}

// testLayouts checks the layouts that are determined for texts with tables.
func (s *suite) testLayouts(t *testing.T) {
	for name, c := range map[string]struct{ file, text, prints string }{
		"comma":     {"a.csv", "a,b\n1,2\n\n3\n", "['a', 'b'] [{'a': '1', 'b': '2'}, {'a': '3', 'b': None}]"},
		"semicolon": {"a.csv", "a;b\n1,5;2\n2,5;3\n", "['a', 'b'] [{'a': '1,5', 'b': '2'}, {'a': '2,5', 'b': '3'}]"},
		"tab":       {"a.tsv", "a\tb\n1,5\t2\n", "['a', 'b'] [{'a': '1,5', 'b': '2'}]"},
		"quoted": {
			"a.csv", "\ufeff\"a,x\",b\n\"1\n2\",\"|\"\n", `['a,x', 'b'] [{'a,x': '1\n2', 'b': '|'}]`,
		},
		"names": {
			"a.csv", "a,,a,a_2,A\n1,2,3,4,5\n",
			"['a', 'column_2', 'a_3', 'a_2', 'A'] [{'a': '1', 'column_2': '2', 'a_3': '3', 'a_2': '4', 'A': '5'}]",
		},
		"one column": {"a.csv", "a\n1\n", "['a'] [{'a': '1'}]"},
		"more":       {"a.csv", "a,b\n1,2,3,4\n", "['a', 'b'] [{'a': '1', 'b': '2', None: ['3', '4']}]"},
		"JSON Lines": {"a.jsonl", "{\"a\": 1}\n{\"b\": [2], \"a\": 3}\n", "['a', 'b'] [{'a': 1}, {'b': [2], 'a': 3}]"},
	} {
		t.Run(name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Inputs: []tiers.Input{makeTextInput(t, c.file, c.text)}})
			box.mustPrint(t, "rows = context.table()\nprint(rows.columns, list(rows))", c.prints+"\n")
		})
	}
}

func (s *suite) testTablesRefused(t *testing.T) {
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{
		makeTextInput(t, "prose.txt", "Call me Ishmael."), makeTextInput(t, "empty.csv", "\n\n"),
	}})
	for _, c := range []struct{ source, says string }{
		{"context.table()", "prose.txt seems to be text, not a table"},
		{"context_1.table()", "the table has no rows"},
		{"context.table(delimiter='ab')", "one character of ASCII"},
		{"context.table(delimiter='\\n')", "cannot separate or quote"},
		{"context.table(delimiter='\"')", "both separate and quote"},
		{"context_1.table('Sales')", "has no tables with names"},
		{"context.json_lines(errors='other')", `"raise" or "skip"`},
		{"list(context.json_lines())", "Expecting value"},
	} {
		r := box.run(t, c.source)
		if r.Exception == nil || !strings.Contains(r.Exception.Traceback, c.says) {
			t.Errorf("%s: want an exception that says %q\n%s", c.source, c.says, describe(r))
		}
	}
	box.mustPrint(t, "try:\n    list(context.json_lines())\nexcept ValueError as e:\n    print(e.__notes__)",
		"['in line 1 of prose.txt; json_lines(errors=\"skip\") leaves such lines out']\n")
}

// testTablesOfFiles reads tables that the host makes from bytes and from a document.
func (s *suite) testTablesOfFiles(t *testing.T) {
	for _, isBinary := range []bool{true, false} {
		text := bigtext.FromBytes("book", []byte("not its rows"))
		if isBinary {
			text.MarkBinary("sqlite")
		}
		rows := func(lines string) func(context.Context) (*bigtext.Text, error) {
			return func(context.Context) (*bigtext.Text, error) { return bigtext.FromBytes("rows", []byte(lines)), nil }
		}
		text.MarkTables([]bigtext.Table{
			{Name: "Sales", Columns: []bigtext.Column{{Name: "a"}, {Name: "b"}}, Read: rows("{\"a\":1,\"b\":null}\n")},
			{Name: "No rows", Columns: []bigtext.Column{{Name: "c"}}, Read: rows("")},
			{Name: "Bad", Read: func(context.Context) (*bigtext.Text, error) {
				return nil, errors.New("it is damaged")
			}},
		})
		t.Cleanup(func() { _ = text.Close() }) // the session is over

		box := s.open(t, tiers.Config{Inputs: []tiers.Input{{Name: "book", Text: text}}})
		box.mustPrint(t, "print(context.tables, [context.table().columns, *context.table('Sales')])",
			"['Sales', 'No rows', 'Bad'] [['a', 'b'], {'a': 1, 'b': None}]\n")
		box.mustPrint(t, "rows = context.table('No rows'); print(rows.columns, list(rows), rows)",
			"['c'] [] <rows of 'book'>\n")
		box.mustPrint(t, "try:\n    context.table('X')\nexcept KeyError as e:\n    print(e)",
			"\"book has no table 'X'; its tables are: 'Sales', 'No rows', 'Bad'\"\n")
		r := box.run(t, "context.table('Bad')")
		if r.Exception == nil || !strings.Contains(r.Exception.Traceback, "it is damaged") {
			t.Errorf("a table that cannot be read: %s", describe(r))
		}
	}
}

// testDescribedTables checks the descriptions of tables' columns.
func (s *suite) testDescribedTables(t *testing.T) {
	var long strings.Builder
	long.WriteString("n,half\n")
	for i := range 120_000 {
		fmt.Fprintf(&long, "%d,%d.5\n", i, i%2)
	}
	box := s.open(t, tiers.Config{
		Inputs: []tiers.Input{
			makeTextInput(t, "short.csv", "p,name,z,e\n10,ann,007,\n9,,12,\n,bob,3,\n2.5,bob,4,\n"),
			makeTextInput(t, "rows.jsonl", "{\"v\": 9007199254740993, \"s\": \"b\"}\n{\"v\": 1, \"ok\": true}\n"),
			makeTextInput(t, "long.csv", long.String()),
			makeTextInput(t, "odd.csv", "day,code,power,over,space,point,dot\n"+
				"2026-03-01,007,1e5,1.5e400, 5,.5,.\n2026-03-02,12,2.5,1,+6,5.,1\n"),
			makeTextInput(t, "odd.jsonl", "{\"n\": 1, \"m\": [1, {\"b\": 2, \"a\": 1}]}\n"+
				"{\"n\": 1.0, \"m\": [1, {\"a\": 1, \"b\": 2}]}\n{\"n\": -0.0, \"m\": true}\n"+
				"{\"n\": 0.0, \"m\": \"true\"}\n"),
		},
		Limits: tiers.Limits{Wall: s.opt.Patience},
	})
	box.mustPrint(t, `
def show(rows, *names):
    for row in rows:
        print(*(row[name] for name in names))
ALL = "column type count nulls distinct min max".split()
short = context.table().describe()
show(short, *ALL)
show(short[:1], "mean", "std", "q25", "q50", "q75", "numbers", "approximate")
show(short[2:3], "mean", "numbers")
show(context_1.json_lines().describe(), *ALL)
big = context_2.table().describe()
show(big, "column", "type", "count", "min", "max", "mean", "q50", "approximate")
print(abs(big[0]["distinct"] - 120_000) < 12_000, big[1]["distinct"], round(big[1]["std"], 4))
show(context_3.table().describe(), "column", "type", "min", "max", "numbers", "mean")
show(context_4.json_lines().describe(), "type", "distinct", "numbers", "mean")`,
		`p REAL 3 1 3 2.5 10
name TEXT 3 1 2 ann bob
z TEXT 4 0 4 007 4
e None 0 4 0 None None
7.166666666666667 4.072263907623539 5.75 9.0 9.5 3 []
None 3
v INTEGER 2 0 2 1 9007199254740993
s TEXT 1 1 1 b b
ok BOOLEAN 1 1 1 None None
n INTEGER 120000 0 119999 59999.5 59999.5 ['distinct']
half REAL 120000 0.5 1.5 1.0 1.0 []
True 2 0.5
day TEXT 2026-03-01 2026-03-02 0 None
code TEXT 007 12 1 None
power REAL 2.5 100000.0 2 50001.25
over TEXT 1 1.5e400 1 None
space INTEGER 5 6 2 5.5
point REAL 0.5 5.0 2 2.75
dot TEXT . 1 1 None
REAL 4 4 0.5
JSON 3 0 None
`)
}
