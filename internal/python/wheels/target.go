package wheels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Target is the Python for which packages are chosen.
type Target struct {
	// Python is the version of Python, such as "3.13.5".
	Python string
	// Machine is the processor as named in wheels, such as "x86_64". If it is empty, only pure
	// Python wheels are accepted.
	Machine string
	// Glibc is the minor version of the target's glibc 2, if Machine is set.
	Glibc int
	// Has holds the versions of the packages that are already present, by normalised name.
	Has map[string]string
	// Help returns advice that completes an error about a package without a wheel for this target.
	Help func(name string) string
}

// minor returns the second number of Python's version.
func (t *Target) minor() int {
	parts := strings.Split(t.Python, ".")
	if len(parts) < 2 || parts[0] != "3" {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return n
}

// facts returns the facts to which the conditions of requirements may refer.
func (t *Target) facts() map[string]string {
	facts := map[string]string{
		"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux",
		"platform_machine": t.Machine, "platform_release": "", "platform_version": "",
		"platform_python_implementation": "CPython", "implementation_name": "cpython",
		"implementation_version": t.Python, "python_full_version": t.Python,
		"python_version": fmt.Sprintf("3.%d", t.minor()),
	}
	if t.Machine == "" {
		facts["sys_platform"], facts["platform_system"] = "wasi", "wasi"
		facts["platform_machine"] = "wasm32"
	}
	return facts
}

// rank returns a number that is higher the better a wheel with the given tags fits, or -1 if it
// does not fit. A wheel compiled for the target ranks above one of pure Python.
func (t *Target) rank(tags wheelTags) int {
	best := -1
	for _, python := range tags.python {
		for _, abi := range tags.abi {
			for _, platform := range tags.platform {
				best = max(best, t.rankOne(python, abi, platform))
			}
		}
	}
	return best
}

func (t *Target) rankOne(python, abi, platform string) int {
	own := fmt.Sprintf("cp3%d", t.minor())
	if platform == "any" {
		if abi == "none" && (python == "py3" || isAtMost(python, "py3", t.minor()) || python == own) {
			return 0
		}
		return -1
	}

	glibc := t.rankPlatform(platform)
	switch {
	case glibc < 0:
		return -1
	case abi == own && python == own:
		return 300 + glibc
	case abi == "abi3" && isAtMost(python, "cp3", t.minor()):
		return 200 + glibc
	case abi == "none" && (python == "py3" || python == own):
		return 100 + glibc
	}
	return -1
}

// isAtMost reports whether a tag such as cp310 has the given prefix and a minor version of at most
// minor.
func isAtMost(tag, start string, minor int) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(tag, start))
	return strings.HasPrefix(tag, start) && err == nil && n >= 0 && n <= minor
}

// rankPlatform returns the minor version of glibc that a platform requires, or -1 if the target
// does not match.
func (t *Target) rankPlatform(platform string) int {
	name, isOurs := strings.CutSuffix(platform, "_"+t.Machine)
	if t.Machine == "" || !isOurs {
		return -1
	}
	switch name {
	case "manylinux1":
		return 5
	case "manylinux2010":
		return 12
	case "manylinux2014":
		return 17
	}

	number, isNew := strings.CutPrefix(name, "manylinux_2_")
	n, err := strconv.Atoi(number)
	if !isNew || err != nil || n < 0 || n > t.Glibc {
		return -1
	}
	return min(n, 99)
}

// wheelTags holds the compatibility tags in a wheel's file name.
type wheelTags struct{ python, abi, platform []string }

// wheelName is the information in a wheel's file name.
type wheelName struct {
	name    string // normalised
	version string
	tags    wheelTags
}

// isPure reports whether the wheel is declared to contain no compiled code.
func (w *wheelName) isPure() bool { return slices.Equal(w.tags.platform, []string{"any"}) }

// parseWheelName parses NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl.
func parseWheelName(file string) (wheelName, bool) {
	base, isWheel := strings.CutSuffix(file, ".whl")
	parts := strings.Split(base, "-")
	if !isWheel || len(parts) < 5 || len(parts) > 6 || strings.ContainsAny(file, "/\\") {
		return wheelName{}, false
	}
	last := parts[len(parts)-3:]
	return wheelName{
		name: Normalise(parts[0]), version: parts[1],
		tags: wheelTags{
			python: strings.Split(last[0], "."), abi: strings.Split(last[1], "."),
			platform: strings.Split(last[2], "."),
		},
	}, true
}
