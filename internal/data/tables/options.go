package tables

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options describe how a CSV text is written. The zero value detects the layout.
type Options struct {
	// Delimiter, Quote, Escape and Comment are those of a [Dialect], or 0 if they are not given.
	Delimiter, Quote, Escape, Comment byte
	// Header states whether the first row contains the names of the columns.
	Header Header
	// Skip is the number of lines before the first row, if HasSkip is set.
	Skip    int
	HasSkip bool

	Values
}

// Header states whether a text begins with the names of its columns.
type Header byte

// These are the headers. HeaderUnknown leaves the choice to [FindLayout].
const (
	HeaderUnknown Header = iota
	HeaderFirst
	HeaderNone
)

// Values describes how the values of a CSV text are written.
type Values struct {
	// Nulls are the strings that represent a missing value. An empty value in a column of numbers
	// is missing, too.
	Nulls []string
	// Decimal separates the fraction of a number, and Thousands groups of three digits. 0 means a
	// point for Decimal, and no groups for Thousands.
	Decimal, Thousands byte
}

// IsZero reports whether values are written in the usual way.
func (v Values) IsZero() bool { return len(v.Nulls) == 0 && v.Decimal == 0 && v.Thousands == 0 }

// OptionNames are the names of the options, as in DuckDB and pandas.
var OptionNames = []string{
	"header", "skip", "delim", "quote", "escape", "comment", "nullstr", "decimal", "thousands",
}

// aliases maps other names of options to their names.
var aliases = map[string]string{
	"sep": "delim", "delimiter": "delim", "quotechar": "quote", "escapechar": "escape", "skiprows": "skip",
	"na_values": "nullstr",
}

// These bounds apply to the options.
const (
	maxNulls = 100
	maxNull  = 1000 // bytes
)

// Set sets an option by its name. For several values of nullstr, call it several times.
func (o *Options) Set(name, value string) error {
	if other, isAlias := aliases[name]; isAlias {
		name = other
	}
	switch name {
	case "header":
		return o.setHeader(value)
	case "skip":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Errorf("skip must be a number of lines, not %q", value)
		}
		o.Skip, o.HasSkip = n, true
		return nil
	case "nullstr":
		if len(value) > maxNull || len(o.Nulls) == maxNulls {
			return fmt.Errorf("nullstr may have at most %d texts of %d bytes", maxNulls, maxNull)
		}
		o.Nulls = append(slices.Clip(o.Nulls), value)
		return nil
	}

	places := map[string]*byte{
		"delim": &o.Delimiter, "quote": &o.Quote, "escape": &o.Escape, "comment": &o.Comment,
		"decimal": &o.Decimal, "thousands": &o.Thousands,
	}
	place := places[name]
	if place == nil {
		return fmt.Errorf("unknown option %q of a table: the options are %s", name, strings.Join(OptionNames, ", "))
	}
	if value == `\t` || value == "tab" {
		value = "\t"
	}
	if len(value) != 1 || value[0] >= 0x80 {
		return fmt.Errorf("%s must be one character of ASCII, not %q", name, value)
	}
	*place = value[0]
	return nil
}

func (o *Options) setHeader(value string) error {
	switch strings.ToLower(value) {
	case "true", "1", "yes", "0": // pandas counts rows: header=0 is the first
		o.Header = HeaderFirst
	case "false", "no", "none":
		o.Header = HeaderNone
	default:
		return fmt.Errorf("header must be true or false, not %q", value)
	}
	return nil
}

// Check returns an error for options that contradict each other.
func (o *Options) Check() error {
	d := Dialect{Delimiter: o.Delimiter, Quote: o.Quote, Escape: o.Escape, Comment: o.Comment}
	if d.Delimiter == 0 {
		d.Delimiter = '\x1f' // not among the possible values
	}
	if d.Quote == 0 {
		d.Quote = '"'
	}
	decimal := o.Decimal
	if decimal == 0 {
		decimal = '.'
	}
	if o.Thousands == decimal {
		return fmt.Errorf("%q cannot both separate fractions and thousands", decimal)
	}
	for _, c := range []byte{o.Decimal, o.Thousands} {
		if c >= '0' && c <= '9' || c == '-' || c == '+' || c|0x20 == 'e' {
			return fmt.Errorf("%q cannot separate digits", c)
		}
	}
	return d.Check()
}
