package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers/local"
)

// textOperations are operations of snippets on a text. Each uses the name t for the text.
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

const (
	textReach = 1.5
	// textSlack is how much longer an operation may take, in seconds. A Python method takes a
	// microsecond or two, which matters only for short operations.
	textSlack = 10e-6
	// textRounds is how often each side measures an operation, for at least textSeconds each
	// time. An operation that takes longSeconds is measured once.
	textRounds, textSeconds, longSeconds = 3, 0.3, 20
	// wasmMemory is how much a sandbox of tier wasm may use in addition to a text of up to 3
	// GiB, in bytes.
	wasmMemory = 1 << 30
)

// measureTexts times operations on a long context: in tier wasm compared with a plain str of the
// same characters, and in tier local compared with a native CPython that read the same file. All
// sides take turns.
func (b *bench) measureTexts() error {
	text, err := bigtext.Open(b.texts)
	if err != nil {
		return err
	}
	defer text.Close()
	memory := 8 * max(text.Size(), 256<<20) // the largest result has 12 bytes for each character

	host := local.New(local.Options{Python: b.python, Warm: -1})
	defer host.Close()
	native, stop, err := b.startNative(memory)
	if err != nil {
		return err
	}
	defer stop()

	t := textTable{native: native}
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for _, of := range []struct {
		side **textSide
		box  textBox
	}{
		{&t.local, textBox{"local", host, text, memory, "context", isStr}},
		{&t.plain, textBox{"wasm, plain str", b.tier, text, 3 << 30, "plain", copyToStr}},
		{&t.wasm, textBox{"wasm", b.tier, text, wasmMemory, "context", isStr}},
	} {
		side, stop, err := b.openTextSide(of.box)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", of.box.name, err)
			continue
		}
		stops = append(stops, stop)
		*of.side = side
	}

	for _, operation := range textOperations {
		if err := t.measure(operation); err != nil {
			return err
		}
	}
	return t.print(b.ctx, text)
}

// textTable compares the sides. Sides that this machine lacks are nil.
type textTable struct {
	native, local, plain, wasm *textSide
	rows                       []textRow
}

// textRow holds the best times of an operation.
type textRow struct {
	operation                  string
	native, local, plain, wasm textTime
}

// measure adds a row.
func (t *textTable) measure(operation string) error {
	row := textRow{operation: operation}
	sides := []struct {
		side *textSide
		best *textTime
	}{{t.native, &row.native}, {t.local, &row.local}, {t.plain, &row.plain}, {t.wasm, &row.wasm}}

	for round := range textRounds {
		for _, s := range sides {
			if s.side == nil || round > 0 && (s.best.Took == 0 || s.best.Took > longSeconds) {
				continue
			}
			took, err := s.side.measure(operation, textSeconds)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s.side.name, operation, err)
			}
			if round == 0 || took.Took < s.best.Took {
				*s.best = took
			}
		}
	}

	fmt.Fprintln(os.Stderr, strings.Join(row.cells(), "  "))
	t.rows = append(t.rows, row)
	return nil
}

// cells returns the columns of a row.
func (r textRow) cells() []string {
	met := "yes"
	switch {
	case !r.local.isLike(r.native) && !r.wasm.isLike(r.plain):
		met = "-"
	case r.local.exceeds(r.native) || r.wasm.exceeds(r.plain):
		met = "no"
	}
	return []string{
		"`" + r.operation + "`", r.native.String(), r.local.String(), r.local.ratio(r.native),
		r.plain.String(), r.wasm.String(), r.wasm.ratio(r.plain), r.wasm.ratio(r.native), met,
	}
}

// print prints the table in the form of docs/reference/performance.md.
func (t *textTable) print(ctx context.Context, text *bigtext.Text) error {
	c, err := text.Characters(ctx, math.MaxInt64)
	if err != nil {
		return err
	}
	fmt.Printf("The text has %d MiB: %d million characters, %d bytes each in a `str`.\n\n",
		text.Size()>>20, c.Length/1_000_000, c.Width)
	lines := [][]string{{
		"operation", "CPython", "local", "ratio", "wasm, plain `str`", "wasm", "ratio", "to CPython",
		fmt.Sprintf("≤ %g ×", textReach),
	}}
	for _, r := range t.rows {
		lines = append(lines, r.cells())
	}
	printTable(lines)
	for _, side := range []*textSide{t.local, t.wasm} {
		if side != nil {
			fmt.Printf("\nPeak memory of the sandbox in tier %s: %d MiB.\n", side.name, side.peak>>20)
		}
	}
	return nil
}
