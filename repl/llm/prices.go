package llm

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed prices.yaml
var embeddedPrices []byte

// Rate is what tokens cost, in US dollars per million.
type Rate struct {
	Input      float64  `yaml:"input"`
	Output     float64  `yaml:"output"`
	Cached     *float64 `yaml:"cached"`      // input read from a cache; Input if not given
	CacheWrite *float64 `yaml:"cache_write"` // input written to a cache; Input if not given
}

// Price is what a model costs.
type Price struct {
	Rate `yaml:",inline"`
	// Above is the number of input tokens beyond which Long holds for the
	// whole call, 0 if there is no second rate.
	Above int64
	Long  Rate
}

// Facts is what the table knows about a model. Unknown is not free: Price is
// nil then, and the other numbers are 0.
type Facts struct {
	Price     *Price
	Window    int64 // tokens of prompt and reply together
	MaxOutput int64 // tokens of a reply
}

// Cost returns what a usage cost in US dollars, and false if the price is not known.
func (f Facts) Cost(u Usage) (usd float64, known bool) {
	if f.Price == nil {
		return 0, false
	}
	rate := f.Price.Rate
	if f.Price.Above > 0 && u.InputTokens > f.Price.Above {
		rate = f.Price.Long
	}
	return rate.cost(u), true
}

// cost applies one rate. The parts of the input are priced each by its own.
func (r Rate) cost(u Usage) float64 {
	plain := max(0, u.InputTokens-u.CachedTokens-u.CacheWriteTokens)
	return (float64(plain)*r.Input +
		float64(u.CachedTokens)*or(r.Cached, r.Input) +
		float64(u.CacheWriteTokens)*or(r.CacheWrite, r.Input) +
		float64(u.OutputTokens)*r.Output) / 1e6
}

// or returns the number if there is one, else the other.
func or(number *float64, other float64) float64 {
	if number == nil {
		return other
	}
	return *number
}

// PriceTable knows prices and windows of models by patterns of their full names.
type PriceTable struct{ rows []priceRow }

// priceRow is one entry of the file.
type priceRow struct {
	Match     string   `yaml:"match"` // "provider/id"; * stands for any text
	Input     *float64 `yaml:"input"`
	Output    *float64 `yaml:"output"`
	Cached    *float64 `yaml:"cached"`
	Write     *float64 `yaml:"cache_write"`
	Long      *longRow `yaml:"long"`
	Window    int64    `yaml:"window"`
	MaxOutput int64    `yaml:"max_output"`
}

// longRow is the second rate of an entry, for long prompts.
type longRow struct {
	Above int64 `yaml:"above"`
	Rate  `yaml:",inline"`
}

// maxPriceFile is how many bytes a price table may have.
const maxPriceFile = 1 << 20

// DefaultPrices returns the table that is part of the program. It is as old as
// the program, so a bill is the truth and the table an estimate.
var DefaultPrices = sync.OnceValue(func() *PriceTable {
	table, err := ParsePrices(bytes.NewReader(embeddedPrices))
	if err != nil {
		panic(err) // a test reads the same bytes
	}
	return table
})

// ParsePrices reads a price table: YAML, with nothing in it that is not known.
// docs/models.md describes it. The error is of kind [ErrBadFile] and names the line.
func ParsePrices(r io.Reader) (*PriceTable, error) {
	var file struct {
		Version int        `yaml:"version"`
		Models  []priceRow `yaml:"models"`
	}
	if err := DecodeYAML(r, maxPriceFile, &file); err != nil {
		return nil, &Error{Kind: ErrBadFile, Message: "price table", Err: err}
	}
	if file.Version != 1 {
		return nil, &Error{Kind: ErrBadFile, Message: fmt.Sprintf("price table has version %d: this program reads version 1", file.Version)}
	}
	for i, row := range file.Models {
		if err := row.check(); err != nil {
			return nil, &Error{Kind: ErrBadFile, Message: fmt.Sprintf("price table, entry %d (%q)", i+1, row.Match), Err: err}
		}
	}
	return &PriceTable{rows: file.Models}, nil
}

// DecodeYAML decodes one strict YAML document of at most limit bytes: a field
// that is not known, or given twice, is an error with its line.
func DecodeYAML(r io.Reader, limit int64, into any) error {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return err
	}
	if int64(len(text)) > limit {
		return fmt.Errorf("it has more than %d bytes", limit)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("it has more than one document")
	}
	return nil
}

// check returns what is wrong with an entry.
func (row priceRow) check() error {
	numbers := []*float64{row.Input, row.Output, row.Cached, row.Write}
	if row.Long != nil {
		numbers = append(numbers, &row.Long.Input, &row.Long.Output, row.Long.Cached, row.Long.CacheWrite)
	}
	for _, n := range numbers {
		if n != nil && (math.IsNaN(*n) || *n < 0 || *n > 1e6) {
			return fmt.Errorf("a price of %v is not between 0 and a million dollars per million tokens", *n)
		}
	}
	switch {
	case row.Match == "":
		return errors.New("it has no match")
	case (row.Input == nil) != (row.Output == nil):
		return errors.New("it needs both input and output, or none if the price is not known")
	case row.Input == nil && (row.Cached != nil || row.Write != nil || row.Long != nil):
		return errors.New("it has a special price but no input and output")
	case row.Long != nil && row.Long.Above <= 0:
		return errors.New("long needs above, a number of tokens")
	case row.Window < 0 || row.MaxOutput < 0 || row.Window > maxTokens || row.MaxOutput > maxTokens:
		return fmt.Errorf("window and max_output are numbers of tokens from 0 to %d", maxTokens)
	}
	return nil
}

// Over returns a table that looks into this one first and then into another.
func (t *PriceTable) Over(other *PriceTable) *PriceTable {
	return &PriceTable{rows: append(append([]priceRow(nil), t.rows...), other.rows...)}
}

// Lookup returns what is known about a model by its full name. The first entry
// that matches and knows a fact decides about that fact, so an entry of one's
// own may give a price and leave the window to the table below.
func (t *PriceTable) Lookup(name string) Facts {
	var facts Facts
	if t == nil {
		return facts
	}
	for _, row := range t.rows {
		if !matches(row.Match, name) {
			continue
		}
		if facts.Price == nil {
			facts.Price = row.price()
		}
		if facts.Window == 0 {
			facts.Window = row.Window
		}
		if facts.MaxOutput == 0 {
			facts.MaxOutput = row.MaxOutput
		}
	}
	return facts
}

// price returns the price of an entry, nil if it has none.
func (row priceRow) price() *Price {
	if row.Input == nil {
		return nil
	}
	price := &Price{Rate: Rate{Input: *row.Input, Output: *row.Output, Cached: row.Cached, CacheWrite: row.Write}}
	if row.Long != nil {
		price.Above, price.Long = row.Long.Above, row.Long.Rate
	}
	return price
}

// matches reports whether a name fits a pattern in which * stands for any text.
func matches(pattern, name string) bool {
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
