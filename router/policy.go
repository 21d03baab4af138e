package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
	"github.com/rlmhq/rlm/tiers"
)

// Policy holds the caller's rules. The zero value allows every tier except those used on request
// only, and every module that a tier has.
type Policy struct {
	// Pin is the only tier that may be used; empty allows any. If it cannot be used, no other tier
	// is used instead.
	Pin string `json:"pin,omitempty"`
	// MinIsolation is the weakest wall that may be used. The zero value allows any.
	MinIsolation tiers.Isolation `json:"min_isolation,omitempty"`
	// Tiers are the names of the tiers that may be used. Empty means all tiers except those used on
	// request only.
	Tiers []string `json:"tiers,omitempty"`
	// AllowLocal adds tier local, and any other tier that is used on request only: see
	// [tiers.Info].
	AllowLocal bool `json:"allow_local,omitempty"`
	// Modules are the modules that snippets may import, including the standard library: for
	// Python the names of top-level packages, for Go whole import paths. Empty allows any. The
	// router checks them against the analyser's findings, so they steer honest code and are not
	// a wall.
	Modules []string `json:"modules,omitempty"`
	// Hosts are the hosts to which snippets may connect, each as HOST:PORT with a public name.
	// Empty means none. The runner passes them on as [tiers.Config] Hosts.
	Hosts []string `json:"hosts,omitempty"`
	// Network and Files announce that the session will need sockets, or a writable file system.
	// Tiers without these features are ruled out from the first snippet on, so that the session
	// starts in a tier where it can stay. Network and Files do not add features to a tier.
	Network bool `json:"network,omitempty"`
	Files   bool `json:"files,omitempty"`
}

// Validate returns the first contradiction in the policy. A name without a tier is valid: the
// plan refuses it.
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

	if err := endpoints.Check(p.Hosts); err != nil {
		return fmt.Errorf("cannot use a host of the policy: %w", err)
	}
	if p.Pin != "" && len(p.Tiers) > 0 && !slices.Contains(p.Tiers, p.Pin) {
		return fmt.Errorf("the policy pins tier %s but allows only %s", p.Pin,
			strings.Join(p.Tiers, ", "))
	}

	return nil
}

// refuseTier returns the reason why the policy does not allow a tier, or "" if it does.
func (p Policy) refuseTier(info *tiers.Info) string {
	switch {
	case p.Pin == info.Name, p.Pin == "" && info.OnRequest && p.AllowLocal:
		return ""
	case p.Pin != "":
		return "policy allows only tier " + texts.OneLine(p.Pin)
	case p.lacksRequest(info):
		return "policy does not allow this tier: pass --allow-local"
	case len(p.Tiers) == 0 || slices.Contains(p.Tiers, info.Name):
		return ""
	}
	return "policy allows only the tiers " + texts.OneLine(strings.Join(p.Tiers, ", "))
}

// lacksRequest reports whether a tier is refused only because it runs on request alone.
func (p Policy) lacksRequest(info *tiers.Info) bool {
	return info.OnRequest && p.Pin == "" && len(p.Tiers) == 0 && !p.AllowLocal
}

// namedTiers lists the tiers that the policy names, without duplicates.
func (p Policy) namedTiers() []string {
	if p.Pin != "" {
		return []string{p.Pin}
	}
	names := slices.Clone(p.Tiers)
	slices.Sort(names)
	return slices.Compact(names)
}

// admitsModule reports whether the policy allows a snippet to import a module.
func (p Policy) admitsModule(language tiers.Language, module string) bool {
	if len(p.Modules) == 0 {
		return true
	}
	if language == tiers.Python {
		module, _, _ = strings.Cut(module, ".")
	}
	return slices.Contains(p.Modules, module)
}

// wishesFor reports whether the policy requires a feature of every tier, whether or not the snippet
// needs it.
func (p Policy) wishesFor(f tiers.Feature) bool {
	return f == tiers.FeatureSockets && p.Network || f == tiers.FeatureFiles && p.Files
}
