package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/tiers"
)

// policy returns the policy of the settings.
func policy(c *config.Loaded) (rlm.Policy, error) {
	p := rlm.Policy{AllowLocal: c.AllowLocal, Hosts: c.AllowHost}
	if c.Tier != "auto" {
		p.Pin = c.Tier
	}
	for level := tiers.IsolationNone; level <= tiers.IsolationKernel; level++ {
		if level.String() == c.MinIsolation {
			p.MinIsolation = level
		}
	}

	return p, p.Validate()
}

// limits returns the limits of each snippet. output is the command's default for the output.
func limits(c *config.Loaded, output int64) tiers.Limits {
	if c.MaxOutput != 0 {
		output = c.MaxOutput
	}

	return tiers.Limits{
		Wall:   c.Timeout,
		Memory: c.Memory,
		Output: output,
		Fuel:   uint64(c.Fuel), //nolint:gosec // the setting is never negative
	}
}

// routing is the flag for the language of the code.
type routing struct{ language string }

// add adds the flag --lang.
func (r *routing) add(flags *pflag.FlagSet) {
	flags.StringVar(&r.language, "lang", "auto", "`language` of the code: auto, python or go")
}

// languageOf returns the language of a file's code. It is empty if only the code shows it.
func (r *routing) languageOf(file string) (tiers.Language, error) {
	switch r.language {
	case "python", "go":
		return tiers.Language(r.language), nil
	case "auto":
		switch strings.ToLower(filepath.Ext(file)) {
		case ".py":
			return tiers.Python, nil
		case ".go":
			return tiers.Go, nil
		}
		return "", nil
	}

	return "", fmt.Errorf("--lang %q: give auto, python or go", r.language)
}

// defaultOutput is the default limit of a snippet's printed output, in bytes.
const defaultOutput = 20_000
