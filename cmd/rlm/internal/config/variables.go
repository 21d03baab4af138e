package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/spelling"
)

// readVariables returns the environment's layer. A variable that looks like a misspelt setting is
// an error; others with the prefix may belong to another program.
func readVariables(environ []string) (layer, error) {
	table := Settings(&Config{})
	l, names := layer{}, map[string]string{}
	spelt := make([]string, 0, len(table))
	for _, s := range table {
		names[s.Variable()] = s.Key
		spelt = append(spelt, s.Variable())
	}

	for _, f := range foreigners {
		name := prefix + strings.ToUpper(f.key)
		if f.variable != "" {
			name = f.variable
		}
		names[name] = f.key
		spelt = append(spelt, name)
	}

	given := variablesOf(environ)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		key, ok := names[name]
		if !ok {
			errs = append(errs, checkMisspelt(name, spelt))
			continue
		}

		origin := Origin{Kind: FromVariable, Name: name}
		if err := l.takeNamed(table, key, Given{Raw: given[name], Origin: origin}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}

	return l, errors.Join(errs...)
}

// variablesOf returns the variables of an environment that have a value. The last duplicate wins.
// On Windows, entries without a name exist.
func variablesOf(environ []string) map[string]string {
	all := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if name != "" {
			all[name] = value
		}
	}

	// An empty variable is treated as unset, because shells unset a variable for a command this
	// way.
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// checkMisspelt refuses a variable with our prefix whose name is close to one of ours.
func checkMisspelt(name string, ours []string) error {
	if !strings.HasPrefix(name, prefix) || name == FileVariable {
		return nil
	}
	meant := spelling.Nearest(name, ours)
	if meant == "" || spelling.Distance(name, meant) > 2 {
		return nil
	}
	return fmt.Errorf("unknown environment variable %s; did you mean %s?", name, meant)
}
