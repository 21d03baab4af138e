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

// policy is what the settings allow.
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

// limits bound each snippet. A size that is not set is the command's own.
func limits(c *config.Loaded, output int64) tiers.Limits {
	if c.MaxOutput != 0 {
		output = c.MaxOutput
	}
	return tiers.Limits{
		Wall:   c.Timeout,
		Memory: c.Memory,
		Output: output,
		Fuel:   uint64(c.Fuel),
	} //nolint:gosec // the table keeps it from being negative
}

// routing is the flag that says what code is.
type routing struct{ language string }

func (r *routing) add(flags *pflag.FlagSet) {
	flags.StringVar(&r.language, "lang", "auto", "language of the code: auto, python or go")
}

// languageOf is the language of code that came from a file, or "" for what has
// to be found out.
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
