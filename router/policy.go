package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/tiers"
)

// OnRequest is the one tier that is used only when the policy names it: it runs
// snippets on the host's own system.
const OnRequest = "local"

// Policy is what the caller allows. The zero value allows every tier but local,
// and every module that a tier has.
type Policy struct {
	// Pin is the one tier that may be used, empty for any. If it cannot be used,
	// nothing else is.
	Pin string `json:"pin,omitempty"`
	// MinIsolation is the weakest wall that may be used. The zero value is any.
	MinIsolation tiers.Isolation `json:"min_isolation,omitempty"`
	// Tiers are the names of the tiers that may be used. Empty means all but
	// local.
	Tiers []string `json:"tiers,omitempty"`
	// AllowLocal adds local to the tiers that may be used.
	AllowLocal bool `json:"allow_local,omitempty"`
	// Modules are what snippets may import, the standard library included: for
	// Python the names of top-level packages, for Go whole import paths. Empty
	// means any. It is checked against what the analyser sees, so it steers
	// honest code and is no wall.
	Modules []string `json:"modules,omitempty"`
	// Hosts are what snippets may connect to, each as HOST:PORT with a public name.
	// Empty means none. See tiers.Config.Hosts, which it becomes.
	Hosts []string `json:"hosts,omitempty"`
	// Network and Files say that the session is going to want sockets, or a file
	// system to write to: tiers without are refused from the first snippet on,
	// so that the session starts where it can stay. They open nothing that a
	// tier has not.
	Network bool `json:"network,omitempty"`
	Files   bool `json:"files,omitempty"`
}

// Validate reports the first contradiction in the policy. A name that no tier
// has is none: the plan refuses it.
func (p Policy) Validate() error {
	if p.MinIsolation < tiers.IsolationNone || p.MinIsolation > tiers.IsolationKernel {
		return fmt.Errorf("the policy's minimum isolation %d is unknown", p.MinIsolation)
	}
	if slices.Contains(p.Tiers, "") {
		return errors.New("the policy allows a tier without a name")
	}
	if slices.Contains(p.Modules, "") {
		return errors.New("the policy allows a module without a name")
	}
	if _, err := egress.ParseEndpoints(p.Hosts); err != nil {
		return fmt.Errorf("the policy's hosts: %w", err)
	}
	if p.Pin != "" && len(p.Tiers) > 0 && !slices.Contains(p.Tiers, p.Pin) {
		return fmt.Errorf("the policy pins tier %s and allows only %s", p.Pin, strings.Join(p.Tiers, ", "))
	}
	return nil
}

// admits reports whether the policy allows a tier by its name.
func (p Policy) admits(tier string) bool {
	switch {
	case p.Pin != "":
		return tier == p.Pin
	case tier == OnRequest && p.AllowLocal:
		return true
	case len(p.Tiers) == 0:
		return tier != OnRequest
	}
	return slices.Contains(p.Tiers, tier)
}

// named lists the tiers that the policy names, each once.
func (p Policy) named() []string {
	if p.Pin != "" {
		return []string{p.Pin}
	}
	names := slices.Clone(p.Tiers)
	slices.Sort(names)
	return slices.Compact(names)
}

// imports reports whether the policy lets a snippet import a module.
func (p Policy) imports(language tiers.Language, module string) bool {
	if len(p.Modules) == 0 {
		return true
	}
	if language == tiers.Python {
		module, _, _ = strings.Cut(module, ".")
	}
	return slices.Contains(p.Modules, module)
}

// wishes are the features that every tier must have, needed or not.
func (p Policy) wishes(f tiers.Feature) bool {
	return f == tiers.FeatureSockets && p.Network || f == tiers.FeatureFiles && p.Files
}
