//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// script is a file of tests, as written by wast2json.
type script struct {
	Commands []command `json:"commands"`
}

type command struct {
	Type     string  `json:"type"`
	Line     int     `json:"line"`
	Name     string  `json:"name"`
	Filename string  `json:"filename"`
	Action   action  `json:"action"`
	Expected []value `json:"expected"`
	Text     string  `json:"text"`
}

type action struct {
	Type   string  `json:"type"`
	Module string  `json:"module"`
	Field  string  `json:"field"`
	Args   []value `json:"args"`
}

type value struct {
	Type string `json:"type"`
	// Value is a number of unsigned bits, "nan:canonical" or "nan:arithmetic".
	Value string `json:"value"`
}

// trapNames maps the standard's terms for traps to ours.
var trapNames = map[string]string{
	"out of bounds memory access":   "out of bounds memory access",
	"out of bounds table access":    "invalid table access",
	"integer overflow":              "integer overflow",
	"integer divide by zero":        "integer divide by zero",
	"invalid conversion to integer": "invalid conversion to integer",
	"unreachable":                   "unreachable",
	"undefined element":             "invalid table access",
	"uninitialized element":         "invalid table access",
	"indirect call type mismatch":   "indirect call type mismatch",
	"call stack exhausted":          "stack overflow",
}

// tally counts the outcomes of assertions and modules.
type tally struct {
	agreed, skipped map[string]int
	modules         int
	// signalling counts operations on a signalling NaN that clang omits, such as "x - 0". The NaN
	// then stays unchanged, but the standard requires a quiet one. Python's code has no such
	// operations, because the compiler that made the module has also omitted them.
	signalling int
	refused    map[string]int
	failed     []string
}

func (t *tally) print() {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(t.agreed)) {
		fmt.Printf("%7d %s as the standard wants, and as in wazero\n", t.agreed[name], name)
		total += t.agreed[name]
	}
	fmt.Printf("%7d assertions in all, in %d modules\n", total, t.modules)
	fmt.Printf("%7d known differences: a NaN still signals after an operation that does nothing else\n", t.signalling)
	for _, name := range slices.Sorted(maps.Keys(t.skipped)) {
		fmt.Printf("%7d %s left out\n", t.skipped[name], name)
	}
	for _, why := range slices.Sorted(maps.Keys(t.refused)) {
		fmt.Printf("%7d modules refused: %s\n", t.refused[why], why)
	}
}

// runSpec runs all scripts of the folders in a folder.
func runSpec(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*.json"))
	if err != nil {
		return err
	}

	t := &tally{agreed: map[string]int{}, skipped: map[string]int{}, refused: map[string]int{}}
	for _, path := range paths {
		if err := t.runScript(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}

	t.print()

	if t.modules == 0 {
		return fmt.Errorf("no module in %s has machine code", folder)
	}
	if len(t.failed) > 0 {
		return fmt.Errorf("%d differences:\n%s", len(t.failed), strings.Join(t.failed, "\n"))
	}
	return nil
}

func (t *tally) runScript(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	var s script
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}

	ctx := context.Background()
	var last *pair // nil if the module was rejected
	named := map[string]*pair{}
	opened := map[*pair]bool{} // pairs that a command may still name
	defer func() {
		for p := range opened {
			_ = p.close(ctx) // the pairs are idle
		}
	}()
	for _, c := range s.Commands {
		if c.Type == "module" {
			if opened[last] && !slices.Contains(slices.Collect(maps.Values(named)), last) {
				delete(opened, last)
				_ = last.close(ctx) // the number of modules loaded at the same time is limited
			}
			if last, err = t.openModule(ctx, filepath.Join(filepath.Dir(path), c.Filename)); err != nil {
				return fmt.Errorf("line %d: %w", c.Line, err)
			}
			if last != nil {
				opened[last] = true
			}
			if c.Name != "" {
				named[c.Name] = last
			}
			continue
		}

		p := last
		if c.Action.Module != "" {
			p = named[c.Action.Module]
		}
		if p == nil || c.Action.Type == "" {
			t.skipped[c.Type]++
			continue
		}

		switch got, err := c.check(ctx, p); {
		case err == nil:
			t.agreed[c.Type]++
		case c.isSignalling(got):
			t.signalling++
		default:
			t.failed = append(t.failed, fmt.Sprintf("%s:%d: %s: %v", path, c.Line, c.Action.Field, err))
		}
	}
	return nil
}

// openModule opens a module, or returns nil if the build rejected it.
func (t *tally) openModule(ctx context.Context, path string) (*pair, error) {
	base := strings.TrimSuffix(path, filepath.Ext(path))
	if why, err := os.ReadFile(base + ".refused"); err == nil {
		t.refused[reason(string(why))]++
		return nil, nil //nolint:nilnil // there is no pair, and nothing is wrong
	}
	p, err := openPair(ctx, base, path)
	if err != nil {
		return nil, err
	}

	for _, f := range p.program.Imports() {
		if f.Module != "spectest" {
			t.refused["it imports functions of another module"]++
			return nil, p.close(ctx)
		}
	}
	t.modules++
	return p, nil
}

var detail = regexp.MustCompile(`"[^"]*"|\d+`)

// reason returns the last line of a rejection without its details, so that equal ones are
// counted together.
func reason(why string) string {
	lines := strings.Split(strings.TrimSpace(why), "\n")
	return detail.ReplaceAllString(lines[len(lines)-1], "_")
}

// check runs the action of a command in both engines, and compares the results with the test's
// expectation.
func (c *command) check(ctx context.Context, p *pair) (got outcome, err error) {
	if c.Action.Type == "get" {
		var theirs uint64
		if got.result, theirs, err = p.global(c.Action.Field); err == nil && got.result != theirs {
			err = fmt.Errorf("a global is %#x, in wazero %#x", got.result, theirs)
		}
	} else {
		var params []uint64
		for _, arg := range c.Action.Args {
			n, err := strconv.ParseUint(arg.Value, 10, 64)
			if err != nil {
				return got, err
			}
			params = append(params, n)
		}
		got, err = p.call(ctx, c.Action.Field, params)
	}
	if err != nil {
		return got, err
	}

	if c.Type == "assert_trap" || c.Type == "assert_exhaustion" {
		for words, name := range trapNames {
			if strings.HasPrefix(c.Text, words) && got.trap == name {
				return got, nil
			}
		}
		return got, fmt.Errorf("trap %q, not %q", got.trap, c.Text)
	}

	if got.trap != "" {
		return got, fmt.Errorf("trap %q", got.trap)
	}
	for _, want := range c.Expected {
		if !want.matches(got.result) {
			return got, fmt.Errorf("result %#x, not %s", got.result, want.Value)
		}
	}
	return got, nil
}

// isSignalling reports whether a result would be correct with the bit that makes a NaN quiet.
func (c *command) isSignalling(got outcome) bool {
	quiet := uint64(1 << 51)
	if strings.HasPrefix(c.Action.Field, "f32") {
		quiet = 1 << 22
	}
	return got.trap == "" && strings.Contains(c.Action.Field, "no_fold_") &&
		len(c.Expected) == 1 && c.Expected[0].matches(got.result|quiet)
}

// matches reports whether the number is the value, or a NaN of the expected kind.
func (v value) matches(n uint64) bool {
	is32 := strings.HasSuffix(v.Type, "32")
	if is32 {
		n &= math.MaxUint32
	}

	switch {
	case v.Value == "nan:canonical" && is32:
		return n&math.MaxInt32 == 0x7fc00000
	case v.Value == "nan:canonical":
		return n&math.MaxInt64 == 0x7ff8000000000000
	case v.Value == "nan:arithmetic" && is32:
		return n&0x7fc00000 == 0x7fc00000
	case v.Value == "nan:arithmetic":
		return n&0x7ff8000000000000 == 0x7ff8000000000000
	}
	return strconv.FormatUint(n, 10) == v.Value
}
