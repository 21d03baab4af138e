//go:build linux && (amd64 || arm64)

package jail

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// mounted is one line of /proc/self/mountinfo.
type mounted struct {
	point   string
	options string // separated by commas
	kind    string
}

// has reports whether a mount has all of the options.
func (m mounted) has(options ...string) bool {
	have := strings.Split(m.options, ",")
	for _, option := range options {
		if !slices.Contains(have, option) {
			return false
		}
	}
	return true
}

// readMounts lists the mounts that are visible to this process.
func readMounts() ([]mounted, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var all []mounted
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 6 || len(kind) < 1 {
			return nil, fmt.Errorf("cannot parse the mount %q", lines.Text())
		}
		all = append(all, mounted{
			point: unescapePath(fields[4]), options: fields[5], kind: kind[0],
		})
	}
	return all, lines.Err()
}

// unescapePath decodes the kernel's escapes for white space in paths.
func unescapePath(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// checkMounts reports a mount that should not exist, or that differs from the plan.
func checkMounts(p *plan, all []mounted) error {
	for _, m := range all {
		if flaw := p.findFlaw(m); flaw != "" {
			return fmt.Errorf("the mount at %s (%s, %s) %s", m.point, m.kind, m.options, flaw)
		}
	}
	if want := 2 + len(p.scratch()) + len(p.Trees); len(all) < want {
		return fmt.Errorf("there are %d mounts, fewer than the expected %d", len(all), want)
	}
	return nil
}

// findFlaw describes the flaw of a mount, or returns an empty string.
func (p *plan) findFlaw(m mounted) string {
	if !m.has("nosuid") {
		return "allows set-user-ID programs"
	}

	switch {
	case m.point == "/":
		if m.kind != "tmpfs" || !m.has("ro") {
			return "is not a separate read-only root"
		}
		return ""
	case m.point == "/proc":
		if m.kind != "proc" || !m.has("noexec", "nodev") {
			return "is not a separate process list"
		}
		return ""
	case slices.Contains(p.scratch(), m.point):
		if m.kind != "tmpfs" || !m.has("noexec", "nodev") {
			return "is not a separate scratch folder"
		}
		return ""
	}

	for _, t := range p.Trees {
		if m.point == t.Target || isBelow(t.Target, m.point) {
			return t.findFlaw(m)
		}
	}
	return "does not belong there"
}

// findFlaw describes the flaw of a mount in a tree, or returns an empty string.
func (t *tree) findFlaw(m mounted) string {
	switch {
	case !t.Write && !m.has("ro"), !t.Device && !m.has("nodev"), t.Write && !m.has("noexec"):
		return "is less restricted than the plan of the jail requires"
	}
	return ""
}
