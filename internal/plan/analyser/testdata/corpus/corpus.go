// Package corpus contains snippets like those of models, each labelled by a person with what it
// needs and where it runs. It is for tests and for the table in docs/reference/performance.md.
//
// A file contains snippets one after another, each under a line
//
//	=== name tier feature… +module… ?module…
//
// where tier is the cheapest that can run it: interp, wasm, docker, local, none (it needs the
// network, or something that is installed nowhere) or invalid (it is not valid in its language).
// The features are those that decide between tiers; +module is imported but not in the wasm tier's
// standard library, ?module is imported but the snippet can do without it.
package corpus

import (
	"embed"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

//go:embed *.txt
var files embed.FS

// Labels that are not tiers.
const (
	None    = "none"
	Invalid = "invalid"
)

// Snippet is one snippet with its labels.
type Snippet struct {
	Name     string
	Language tiers.Language
	Source   string
	// Tier is the cheapest tier that can run it, or None or Invalid.
	Tier string
	// Features are the features that decide between tiers.
	Features []string
	// Modules are imported and not part of the language; Optional ones may be missing.
	Modules, Optional []string
}

// All returns all snippets.
func All() ([]Snippet, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}

	var all []Snippet
	for _, entry := range entries {
		data, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}

		language := tiers.Python
		if entry.Name() == "go.txt" {
			language = tiers.Go
		}

		for _, text := range strings.Split("\n"+string(data), "\n=== ")[1:] {
			head, source, _ := strings.Cut(text, "\n")
			fields := strings.Fields(head)
			if len(fields) < 2 {
				return nil, fmt.Errorf("corpus: %s: cannot read %q", entry.Name(), head)
			}

			s := Snippet{
				Name: fields[0], Tier: fields[1], Language: language, Source: source + "\n",
			}
			for _, f := range fields[2:] {
				switch f[0] {
				case '+':
					s.Modules = append(s.Modules, f[1:])
				case '?':
					s.Optional = append(s.Optional, f[1:])
				default:
					s.Features = append(s.Features, f)
				}
			}

			all = append(all, s)
		}
	}

	return all, nil
}
