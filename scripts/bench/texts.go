package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// textOperations are what snippets do with a text. Each gets the text t.
var textOperations = []string{
	"len(t)", "hash(t + 'x')", "t == t[:-1] + t[-1]", "'no such text' in t", "t.find('no such text')",
	"t.rfind('no such text')", "t.count('e')", "t.count('| ERROR')", "t.startswith('LIB')", "t[len(t) // 2]",
	"t[1000:2000]", "t[::-1]", "t[::10]", "sum(1 for c in t)", "sum(c.isdigit() for c in t)",
	"collections.Counter(t)", "set(t)", "max(t)", "list(reversed(t))", "t.upper()", "t.lower()", "t.casefold()",
	"t.replace('e', 'E')", "t.translate({101: 'E'})", "t.strip()", "t.split()", "t.split('\\n')", "t.splitlines()",
	"t.rsplit(None, 5)", "t.partition('Kyiv')", "t.encode()", "t.isascii()", "re.split(r'\\W+', t)",
	"re.findall(r'\\w+', t)", "re.sub(r'\\d', '', t)", "sum(1 for m in re.finditer(r'\\d{4}-\\d\\d', t))",
	"re.search('no such text', t)", "json.dumps(t)", "unicodedata.normalize('NFC', t)",
	"hashlib.sha256(t.encode()).hexdigest()", "sum(1 for line in io.StringIO(t))", "t * 2", "f'{t}!'",
}

// textSize is the part of the text that is used, in bytes: what takes longest still ends.
const textSize = 16 << 20

// measureTexts times the operations on a context that is mapped, on a copy of it in the same
// interpreter, and on the same text in native CPython.
func (b *bench) measureTexts() error {
	whole, err := bigtext.Open(b.text)
	if err != nil {
		return err
	}
	defer whole.Close()
	data, err := whole.Raw(0, min(textSize, whole.Size()))
	if err != nil {
		return err
	}
	part := bigtext.FromBytes("part", []byte(strings.ToValidUTF8(string(data), "")))

	list, err := json.Marshal(textOperations)
	if err != nil {
		return err
	}
	measure := `
import collections, hashlib, io, json, re, sys, time, unicodedata
def measure(t):
    for operation in ` + string(list) + `:
        code, best = compile(operation, "operation", "eval"), 1e9
        for _ in range(3):
            begun = time.perf_counter()
            eval(code, globals(), {"t": t})
            best = min(best, time.perf_counter() - begun)
        print(best)
`
	ours, err := b.guest(tiers.Config{
		Inputs: []tiers.Input{{Name: "part", Text: part}}, Limits: tiers.Limits{Memory: 2 << 30},
	}, measure+"measure(context)\nmeasure(''.join(list(context)))")
	if err != nil {
		return err
	}

	native := exec.CommandContext(b.ctx, b.python, "-I", "-S", "-c",
		measure+"measure(sys.stdin.buffer.read().decode())")
	text, err := part.Raw(0, part.Size())
	if err != nil {
		return err
	}
	native.Stdin = strings.NewReader(string(text))
	output, err := native.Output()
	if err != nil {
		return fmt.Errorf("native: %w", err)
	}

	mine, theirs := strings.Fields(ours.Stdout), strings.Fields(string(output))
	for i, operation := range textOperations {
		mapped, copied, err := seconds(mine[i], mine[len(textOperations)+i])
		if err != nil {
			return err
		}
		_, native, err := seconds("0", theirs[i])
		if err != nil {
			return err
		}
		b.add("`"+operation+"`", inMS(mapped), fmt.Sprintf("copied %s, native %s", inMS(copied),
			inMS(native)), mapped/copied, 1.5)
	}
	return nil
}
