package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// routing are the flags that say where code may run.
type routing struct {
	tier       string
	language   string
	isolation  string
	allowLocal bool
	python     string
	hosts      []string
}

func (r *routing) add(flags *pflag.FlagSet) {
	flags.StringVar(&r.tier, "tier", "auto", "where to run: auto, or one of `rlm tiers`")
	flags.StringVar(&r.language, "lang", "auto", "language of the code: auto, python or go")
	flags.StringVar(&r.isolation, "min-isolation", "none", "weakest wall to accept: none, process, container, wasm, kernel")
	flags.BoolVar(&r.allowLocal, "allow-local", false, "also use tier local: this host's Python in a jail")
	flags.StringArrayVar(&r.hosts, "allow-host", nil, "let snippets connect to `HOST:PORT`, where the tier has a way out; may be repeated")
	flags.StringVar(&r.python, "python", "", "the Python of tier local, a path or a name (default python3)")
}

// policy is what the flags allow.
func (r *routing) policy() (router.Policy, error) {
	p := router.Policy{AllowLocal: r.allowLocal, Hosts: r.hosts}
	if r.tier != "auto" {
		p.Pin = r.tier
	}
	for level := tiers.IsolationNone; level <= tiers.IsolationKernel; level++ {
		if level.String() == r.isolation {
			p.MinIsolation = level
			return p, p.Validate()
		}
	}
	return p, fmt.Errorf("--min-isolation %q: give none, process, container, wasm or kernel", r.isolation)
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
