package wiring

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/tiers"
)

// Policy returns the configured policy.
func Policy(c *config.Loaded) (rlm.Policy, error) {
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

// Limits returns the limits of each snippet. output is the command's default for the output.
func Limits(c *config.Loaded, output int64) tiers.Limits {
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

// LanguageFlag is the flag for the language of the code.
type LanguageFlag struct{ language string }

// Add adds the flag --lang.
func (r *LanguageFlag) Add(flags *pflag.FlagSet) {
	flags.StringVar(&r.language, "lang", "auto", "`language` of the code: auto, python, go or sql")
}

// IsNamed reports whether the user named the language.
func (r *LanguageFlag) IsNamed() bool { return r.language != "auto" }

// SQL is the language of queries of contexts that are tables. Tiers do not run SQL; see
// [ShowQuery].
const SQL tiers.Language = "sql"

// LanguageOf returns the language of a file's code. It is empty if the language must be detected
// from the code.
func (r *LanguageFlag) LanguageOf(file string) (tiers.Language, error) {
	switch r.language {
	case "python", "go", string(SQL):
		return tiers.Language(r.language), nil
	case "auto":
		switch strings.ToLower(filepath.Ext(file)) {
		case ".py":
			return tiers.Python, nil
		case ".go":
			return tiers.Go, nil
		case ".sql":
			return SQL, nil
		}
		return "", nil
	}

	return "", fmt.Errorf("--lang %q: give auto, python, go or sql", r.language)
}

// DefaultOutput is the default limit of a snippet's printed output, in bytes.
const DefaultOutput = 20_000
