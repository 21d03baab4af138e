package bigtext

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// pythonScript answers each case on standard input with the result of CPython's str.
const pythonScript = `
import json, re, sys
def spans(s, parts):
    out, at = [], 0
    for p in parts:
        at = s.index(p, at) if p else at
        out.append([at, at + len(p)])
        at += len(p)
    return out
def lines(s):
    out, at = [], 0
    for p in s.splitlines(True):
        out.append([at, at + len(p.splitlines()[0])])
        at += len(p)
    return out
def seps(s, sep):
    out, at = [], 0
    for p in s.split(sep):
        out.append([at, at + len(p)])
        at += len(p) + len(sep)
    return out
for line in sys.stdin:
    c = json.loads(line)
    full = bytes.fromhex(c["text"]).decode("utf-8", "surrogateescape")
    n = bytes.fromhex(c["needle"]).decode("utf-8", "surrogateescape")
    a, b = sorted(x % (len(full) + 1) for x in c["cut"])
    s = full[a:b]
    rx = [[m.start(i), m.end(i)] for m in re.finditer(c["re"], s, re.A) for i in range(m.re.groups + 1)]
    print(json.dumps({"len": len(full), "a": a, "b": b, "ascii": s.isascii(),
        "bytes": s.encode("utf-8", "surrogateescape").hex(),
        "find": s.find(n), "rfind": s.rfind(n), "count": s.count(n),
        "lines": lines(s), "fields": spans(s, s.split()), "seps": seps(s, n) if n else [],
        "re": rx}))
`

type pythonCase struct {
	Text   string `json:"text"`
	Needle string `json:"needle"`
	Cut    [2]int `json:"cut"`
	Re     string `json:"re"`
}

type pythonAnswer struct {
	Len, A, B          int64
	ASCII              bool
	Bytes              string
	Find, RFind, Count int64
	Lines, Fields      [][2]int64
	Seps, Re           [][2]int64
}

// pythonExprs mean the same to RE2 and to CPython with re.ASCII. The texts contain only valid
// UTF-8, because RE2 treats other bytes as U+FFFD.
var pythonExprs = []string{
	"a", "|a", "a*?", "a*", "(a)|(b)", "(?:a|ab)(b?)", `\b`, `\w+`, `(\w)(\w)?`, "[^a]", ".",
	"(?s:.)+?b", "é+", `\d{4}-\d{2}-\d{2}`, "(?m:^)", "x*", "(?i:king)", "中|€", `(|a)b`, "a??",
	`(?:)`, `\Aa`, `(a|b)*?b`,
}

func pythonCases(n int) []pythonCase {
	r := rand.New(rand.NewPCG(11, 12))
	cases := make([]pythonCase, n)
	for i := range cases {
		text := randomText(r, 30)
		needle := randomText(r, 2)
		if len(text) > 0 && r.IntN(2) == 0 {
			k := r.IntN(len(text))
			needle = text[k:min(len(text), k+1+r.IntN(4))]
		}
		cases[i] = pythonCase{
			hex.EncodeToString(text),
			hex.EncodeToString(needle),
			[2]int{r.IntN(1000), r.IntN(1000)},
			pythonExprs[r.IntN(len(pythonExprs))],
		}
	}
	return cases
}

func TestAgainstPython(t *testing.T) {
	cmd := exec.Command(skip.WithoutCPython(t), "-c", pythonScript)
	cases := pythonCases(1500)
	var input bytes.Buffer
	enc := json.NewEncoder(&input)
	for _, c := range cases {
		if err := enc.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Stdin, cmd.Stderr = &input, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for _, c := range cases {
		var want pythonAnswer
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		comparePython(t, c, want)
	}
}

func comparePython(t *testing.T, c pythonCase, want pythonAnswer) {
	t.Helper()
	b, _ := hex.DecodeString(c.Text)
	needle, _ := hex.DecodeString(c.Needle)
	text := shrink(FromBytes("text", b))
	got := pythonAnswer{A: want.A, B: want.B}
	got.Len, _ = text.Len(bg)
	data, ascii, err := text.Slice(bg, want.A, want.B)
	if err != nil {
		t.Fatal(err)
	}
	got.ASCII, got.Bytes = ascii, hex.EncodeToString(data)
	got.Find, _ = text.Find(bg, needle, want.A, want.B)
	got.RFind, _ = text.RFind(bg, needle, want.A, want.B)
	got.Count, _ = text.Count(bg, needle, want.A, want.B)
	got.Find, got.RFind = relative(got.Find, want.A), relative(got.RFind, want.A)
	got.Lines = allParts(t, text, Lines(), want.A, want.B)
	got.Fields = allParts(t, text, Fields(), want.A, want.B)
	got.Seps = [][2]int64{}
	if len(needle) > 0 {
		got.Seps = allParts(t, text, Sep(needle), want.A, want.B)
	}
	got.Re = want.Re
	if n, _ := text.Invalid(bg); n == 0 {
		got.Re = pythonSpans(t, text, c.Re, want.A, want.B)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q[%d:%d], needle %q, expression %q:\n got %+v\nwant %+v",
			b, want.A, want.B, needle, c.Re, got, want)
	}
}

func relative(p, a int64) int64 {
	if p < 0 {
		return p
	}
	return p - a
}

func allParts(t *testing.T, text *Text, s Splitter, a, b int64) [][2]int64 {
	t.Helper()
	n, err := text.Parts(bg, s, a, b)
	if err != nil {
		t.Fatal(err)
	}
	all := make([][2]int64, n)
	for i := range all {
		lo, hi, err := partOf(text, s, a, b, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		all[i] = [2]int64{lo - a, hi - a}
	}
	return all
}

func pythonSpans(t *testing.T, text *Text, expr string, a, b int64) [][2]int64 {
	t.Helper()
	re, err := CompileRegexp(t.Context(), expr)
	if err != nil {
		t.Fatal(err)
	}
	all := [][2]int64{}
	for _, span := range findAll(t, text, re, a, b, 3) {
		for i := 0; i < len(span); i += 2 {
			all = append(all, [2]int64{relative(span[i], a), relative(span[i+1], a)})
		}
	}
	return all
}
