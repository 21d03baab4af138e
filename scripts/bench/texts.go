package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
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

const (
	textReach = 1.5
	// textSlack is what an operation may take beyond that, in seconds: a method in Python takes
	// a microsecond or two, which counts only beside an operation that takes less.
	textSlack = 10e-6
)

// measureTexts times the operations on a long context and on a plain str of the same characters,
// in turns, in each tier that has an interpreter of its own. Tier local has native CPython.
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

	host := local.New(local.Options{Python: b.python, Warm: -1})
	defer host.Close()
	measured := map[string][]operationTimes{}
	for _, tier := range []tiers.Tier{b.tier, host} {
		name := tier.Info().Name
		if err := tier.Probe(b.ctx); err != nil {
			b.skip("operations on texts in "+name, err)
			continue
		}
		if measured[name], err = b.timeOperations(tier, part); err != nil {
			return err
		}
	}

	for i, operation := range textOperations {
		r := row{what: "`" + operation + "`", reach: fmt.Sprintf("<= %g x", textReach), met: true}
		for _, name := range slices.Sorted(maps.Keys(measured)) {
			r.include(name, measured[name][i])
		}
		b.rows = append(b.rows, r)
	}
	return nil
}

// operationTimes are the best seconds of an operation.
type operationTimes struct{ Context, Plain float64 }

// include adds the times of a tier.
func (r *row) include(tier string, at operationTimes) {
	separator := ", "
	if r.measured == "" {
		separator, r.against = "", "a plain str: "
	}
	r.measured += fmt.Sprintf("%s%s %s", separator, tier, threeDigits(at.Context))
	r.against += separator + threeDigits(at.Plain).String()
	r.ratio += fmt.Sprintf("%s%.3g x", separator, at.Context/at.Plain)
	r.met = r.met && at.Context <= textReach*at.Plain+textSlack
}

// threeDigits is a time of some seconds, rounded.
func threeDigits(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

func (b *bench) timeOperations(tier tiers.Tier, text *bigtext.Text) ([]operationTimes, error) {
	list, err := json.Marshal(textOperations)
	if err != nil {
		return nil, err
	}
	r, err := b.runIn(tier, tiers.Config{
		Inputs: []tiers.Input{{Name: text.Name(), Text: text}}, Limits: tiers.Limits{Memory: 2 << 30},
	}, `import collections, hashlib, io, json, re, time, unicodedata
plain, times = "".join(list(context)), []
assert isinstance(context, str) and type(plain) is str and context == plain
for operation in `+string(list)+`:
    code, took, turns = compile(operation, "operation", "eval"), {"Context": [], "Plain": []}, 0
    while turns < 3 or turns < 100 and sum(map(sum, took.values())) < 1:
        turns += 1
        for name, text in ("Context", context), ("Plain", plain):
            begun = time.perf_counter()
            eval(code, globals(), {"t": text})
            took[name].append(time.perf_counter() - begun)
    times.append({name: min(all) for name, all in took.items()})
print(json.dumps(times))`)
	if err != nil {
		return nil, err
	}

	var times []operationTimes
	if err := json.Unmarshal([]byte(r.Stdout), &times); err != nil {
		return nil, fmt.Errorf("cannot read the times of tier %s: %w", tier.Info().Name, err)
	}
	return times, nil
}
