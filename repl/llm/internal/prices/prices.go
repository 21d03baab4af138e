// Package prices holds the prices and the token limits of models.
//
// [Default] is the table built into the program. docs/reference/models.md describes the format
// of the file.
package prices

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/told"
	"github.com/rlmhq/rlm/repl/llm/internal/yamlfile"
)

// Table lists the prices and windows of models by patterns of their full names.
type Table struct{ rows []row }

// row is one entry of the file.
type row struct {
	Match     string   `yaml:"match"` // "provider/id"; * matches any string
	Input     *float64 `yaml:"input"`
	Output    *float64 `yaml:"output"`
	Cached    *float64 `yaml:"cached"`
	Write     *float64 `yaml:"cache_write"`
	Long      *longRow `yaml:"long"`
	Window    int64    `yaml:"window"`
	MaxOutput int64    `yaml:"max_output"`
}

// longRow is the price of calls with long prompts.
type longRow struct {
	Above  int64    `yaml:"above"`
	Input  float64  `yaml:"input"`
	Output float64  `yaml:"output"`
	Cached *float64 `yaml:"cached"`
	Write  *float64 `yaml:"cache_write"`
}

//go:embed prices.yaml
var embedded []byte

// listed holds the models that prices.yaml leaves out. scripts/prices writes it.
//
//go:embed listed.yaml
var listed []byte

// Default returns the table built into the program. It is as old as the program, so its prices are
// estimates; only the vendor's bill is exact.
var Default = sync.OnceValue(func() *Table {
	table := &Table{}
	for _, text := range [][]byte{embedded, listed} {
		more, err := Parse(bytes.NewReader(text))
		if err != nil {
			panic(err) // a test parses the same bytes
		}
		table = table.Over(more)
	}
	return table
})

const (
	maxFile   = 1 << 20 // bytes
	maxTokens = 1 << 28
	maxPrice  = 1e6 // US dollars per million tokens
)

// Load reads a price table from a file. The error names the file and the line.
func Load(path string) (*Table, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, badFile("price table", err)
	}
	defer file.Close()

	table, err := Parse(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return table, nil
}

// Given returns a table of windows and prices by patterns of full names. Longer patterns come
// first, so a name takes precedence over a pattern that covers it.
func Given(windows map[string]int64, rates map[string]llm.Price) (*Table, error) {
	table := &Table{}
	for match, window := range windows {
		table.rows = append(table.rows, row{Match: match, Window: window})
	}
	for match, rate := range rates {
		table.rows = append(table.rows, row{Match: match, Input: &rate.Input, Output: &rate.Output})
	}
	slices.SortFunc(table.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(len(b.Match), len(a.Match)), cmp.Compare(a.Match, b.Match))
	})
	if err := table.check(); err != nil {
		return nil, err
	}
	return table, nil
}

// Parse reads a price table. The error is of the kind "bad file" and names the line.
func Parse(r io.Reader) (*Table, error) {
	var file struct {
		Version int   `yaml:"version"`
		Models  []row `yaml:"models"`
	}
	if err := yamlfile.Decode(r, maxFile, &file); err != nil {
		return nil, badFile("price table", err)
	}
	if file.Version != 1 {
		return nil, badFile("price table", fmt.Errorf(
			"unsupported version %d: this program reads version 1", file.Version))
	}

	table := &Table{rows: file.Models}
	if err := table.check(); err != nil {
		return nil, err
	}
	return table, nil
}

// check returns the first mistake in the table.
func (t *Table) check() error {
	for i, row := range t.rows {
		if err := row.check(); err != nil {
			return badFile(fmt.Sprintf("price table, entry %d (%q)", i+1, row.Match), err)
		}
	}
	return nil
}

// badFile returns the error for a table that cannot be used.
func badFile(part string, err error) error {
	return &llm.Error{Kind: kind.ErrBadFile, Message: part, Err: err}
}

// check returns the first mistake in an entry.
func (r row) check() error {
	for _, price := range r.prices() {
		if price != nil && (math.IsNaN(*price) || *price < 0 || *price > maxPrice) {
			return fmt.Errorf(
				"the price %v is not between 0 and a million dollars per million tokens", *price)
		}
	}

	switch {
	case r.Match == "":
		return errors.New("match is missing")
	case (r.Input == nil) != (r.Output == nil):
		return errors.New("give both input and output, or neither if the price is unknown")
	case r.Input == nil && (r.Cached != nil || r.Write != nil || r.Long != nil):
		return errors.New(`"cached", "write" and "long" need the fields "input" and "output"`)
	case r.Long != nil && r.Long.Above <= 0:
		return errors.New(`"long" needs the field "above", a number of tokens above zero`)
	case !isTokenCount(r.Window) || !isTokenCount(r.MaxOutput):
		return fmt.Errorf("window and max_output must be between 0 and %d tokens", maxTokens)
	}
	return nil
}

// prices returns all prices of an entry; a missing price is nil.
func (r row) prices() []*float64 {
	all := []*float64{r.Input, r.Output, r.Cached, r.Write}
	if r.Long != nil {
		all = append(all, &r.Long.Input, &r.Long.Output, r.Long.Cached, r.Long.Write)
	}
	return all
}

// isTokenCount reports whether a model can have a limit of n tokens.
func isTokenCount(n int64) bool { return n >= 0 && n <= maxTokens }

// Over returns a table that consults t first and then other.
func (t *Table) Over(other *Table) *Table {
	return &Table{rows: slices.Concat(t.rows, other.rows)}
}

// Lookup returns the known facts about the model with the given full name. Each fact is taken from
// the first matching entry that contains it, so a user's entry may set a price and leave the window
// to the built-in table.
func (t *Table) Lookup(name string) llm.Facts {
	var facts llm.Facts
	for _, row := range t.rows {
		if !matchPattern(row.Match, name) {
			continue
		}
		facts = told.Or(facts, llm.Facts{
			Price: row.price(), Window: row.Window, MaxOutput: row.MaxOutput,
		})
	}
	return facts
}

// price returns the price of an entry, or nil.
func (r row) price() *llm.Price {
	if r.Input == nil {
		return nil
	}

	price := &llm.Price{Input: *r.Input, Output: *r.Output, Cached: r.Cached, CacheWrite: r.Write}
	if long := r.Long; long != nil {
		price.Above = long.Above
		price.Long = &llm.Price{
			Input: long.Input, Output: long.Output, Cached: long.Cached, CacheWrite: long.Write,
		}
	}
	return price
}

// matchPattern reports whether a name matches a pattern in which * matches any string.
func matchPattern(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}

	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
