package wheels

import (
	"fmt"
	"strings"

	version "github.com/aquasecurity/go-pep440-version"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// requirement is a package requested by a user or another package.
type requirement struct {
	name   string // normalised
	extras []string
	spec   string // version comparisons, or empty for any version
	marker string // condition, or empty
}

// maxRequirement bounds a requirement, in bytes.
const maxRequirement = 4 << 10

var (
	// requirementForm matches a requirement: name, extras, versions, marker. It does not match
	// requirements by URL.
	requirementForm = lazyregexp.New(`^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*` +
		`(?:\[([A-Za-z0-9._,\s-]*)\])?\s*` +
		`(?:\(([^()@;]*)\)|([^()@;]*))\s*(?:;(.*))?$`)
	specForm  = lazyregexp.New(`^\s*(~=|==|!=|<=|>=|<|>)\s*([A-Za-z0-9.*+!_-]+)\s*$`)
	separator = lazyregexp.New(`[-_.]+`)
)

// Normalise returns the canonical spelling of a package's name.
func Normalise(name string) string {
	return strings.ToLower(separator.ReplaceAllString(name, "-"))
}

// parseRequirement parses a requirement as written in packages and by users of pip.
func parseRequirement(text string) (requirement, error) {
	if len(text) > maxRequirement {
		return requirement{}, fmt.Errorf("a requirement has %d bytes, more than %d",
			len(text), maxRequirement)
	}
	parts := requirementForm.FindStringSubmatch(text)
	if parts == nil {
		return requirement{}, fmt.Errorf("cannot read the requirement %q: "+
			"give NAME, NAME==VERSION or another comparison", text)
	}

	r := requirement{
		name:   Normalise(parts[1]),
		spec:   strings.TrimSpace(parts[3] + parts[4]),
		marker: strings.TrimSpace(parts[5]),
	}
	for extra := range strings.SplitSeq(parts[2], ",") {
		if extra = strings.TrimSpace(extra); extra != "" {
			r.extras = append(r.extras, Normalise(extra))
		}
	}

	if _, err := allows(r.spec, version.MustParse("0")); err != nil {
		return requirement{}, fmt.Errorf("cannot read the requirement %q: %w", text, err)
	}
	return r, nil
}

// allows reports whether a version satisfies all comparisons of a spec.
func allows(spec string, v version.Version) (bool, error) {
	if spec == "" {
		return true, nil
	}
	for part := range strings.SplitSeq(spec, ",") {
		if strings.TrimSpace(part) == "" {
			continue // a trailing comma is allowed
		}
		if !specForm.MatchString(part) {
			return false, fmt.Errorf("cannot read the version %q: "+
				"compare with ==, !=, ~=, <, <=, > or >=", strings.TrimSpace(part))
		}

		one, err := version.NewSpecifiers(part)
		if err != nil {
			return false, fmt.Errorf("cannot read the version %q: %w", strings.TrimSpace(part), err)
		}
		if !one.Check(v) {
			return false, nil
		}
	}
	return true, nil
}

// namesPrerelease reports whether a spec names a pre-release, which may then be chosen.
func namesPrerelease(spec string) bool {
	for part := range strings.SplitSeq(spec, ",") {
		if found := specForm.FindStringSubmatch(part); found != nil {
			v, err := version.Parse(found[2])
			if err == nil && v.IsPreRelease() && found[1] != "!=" {
				return true
			}
		}
	}
	return false
}
