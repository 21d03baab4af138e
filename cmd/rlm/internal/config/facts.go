package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// byModel maps models to strings; its text form is MODEL=STRING pairs, separated by commas. A model
// is a full name, in which * matches any characters. A string without a model applies to all
// models.
type byModel struct {
	to    *map[string]string
	check func(string) error
}

// Set parses the pairs.
func (b byModel) Set(s string) error {
	all := map[string]string{}
	for _, item := range splitList(s) {
		model, value, found := strings.Cut(item, "=")
		if !found {
			model, value = "*", item
		}
		if _, twice := all[model]; twice {
			return fmt.Errorf("%q is given twice", model)
		}
		all[model] = value
	}
	return b.setAll(all)
}

func (b byModel) setAll(all map[string]string) error {
	for _, model := range slices.Sorted(maps.Keys(all)) {
		if model == "" || (text{new(string)}).Set(model) != nil {
			return fmt.Errorf("%q is not the name of a model", model)
		}
		if err := b.check(all[model]); err != nil {
			return err
		}
	}

	*b.to = all
	return nil
}

func (b byModel) String() string {
	return showValue(b.to, func(all map[string]string) string {
		var items []string
		for _, model := range slices.Sorted(maps.Keys(all)) {
			items = append(items, model+"="+all[model])
		}
		return strings.Join(items, ",")
	})
}
func (b byModel) Type() string { return "facts" }
func (b byModel) JSON() any    { return maps.Clone(*b.to) }

// mostWindow is greater than the context window of any model, in tokens.
const mostWindow = 1 << 28

// ParseWindow parses a number of tokens.
func ParseWindow(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > mostWindow {
		return 0, fmt.Errorf("%q: give a number of tokens, such as 131072", text)
	}
	return n, nil
}

// ParseRate parses the prices of input and output tokens, in US dollars per million.
func ParseRate(text string) (in, out float64, err error) {
	first, second, _ := strings.Cut(text, ":")
	in, errIn := strconv.ParseFloat(first, 64)
	out, errOut := strconv.ParseFloat(second, 64)
	if errIn != nil || errOut != nil || !(in >= 0 && in <= 1e6) || !(out >= 0 && out <= 1e6) {
		return 0, 0, fmt.Errorf(
			"%q: give US dollars per million tokens in and out, such as 0.25:2", text)
	}
	return in, out, nil
}

func checkWindow(text string) error {
	_, err := ParseWindow(text)
	return err
}

func checkRate(text string) error {
	_, _, err := ParseRate(text)
	return err
}
