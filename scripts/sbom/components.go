package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/machine/cpython/manifest"
)

// goModules returns the modules in a binary, and the standard library.
func goModules(binary *buildinfo.BuildInfo) []cdx.Component {
	version, _, _ := strings.Cut(strings.TrimPrefix(binary.GoVersion, "go"), " ")
	all := []cdx.Component{goModule(debug.Module{Path: "std", Version: version})}
	for _, dep := range binary.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		all = append(all, goModule(*dep))
	}
	return all
}

func goModule(m debug.Module) cdx.Component {
	c := cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: "pkg:golang/" + strings.ToLower(m.Path) + "@" + escape(m.Version),
	}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// linked are the tools in the manifest that are partly linked into the interpreter.
var linked = []string{"wasi-libc", "libclang-rt-19-dev-wasm32"}

// interpreter returns the WebAssembly Python: Debian's sources and the compiler's libraries.
func interpreter(m manifest.Manifest) cdx.Component {
	var parts []cdx.Component
	for name, version := range m.Sources {
		part := debianPackage(name, version, "arch=source")
		if hash, ok := m.Inputs[name+"_"+withoutEpoch(version)+".dsc"]; ok {
			part.Hashes = sha256(hash)
		}
		parts = append(parts, part)
	}
	for _, name := range linked {
		parts = append(parts, debianPackage(name, m.Toolchain[name], "arch=all"))
	}

	slices.SortFunc(parts, func(a, b cdx.Component) int { return strings.Compare(a.Name, b.Name) })
	return cdx.Component{
		Type: cdx.ComponentTypeApplication, Name: manifest.ModuleFile, Version: m.Python,
		Description: "CPython as WebAssembly, part of the command; the versions are of its sources",
		Hashes:      sha256(m.Module.SHA256), Components: &parts,
	}
}

// imageContents returns the container images, with the locked packages of each architecture.
func imageContents(root string) ([]cdx.Component, error) {
	locks, err := filepath.Glob(filepath.Join(root, "images/python/packages.*.lock"))
	if err != nil || len(locks) == 0 {
		return nil, fmt.Errorf("cannot find the locks of the image python below %s: %w", root, err)
	}

	var all []cdx.Component
	for _, lock := range locks {
		packages, err := lockedPackages(lock)
		if err != nil {
			return nil, err
		}
		arch := strings.Split(filepath.Base(lock), ".")[1]
		all = append(all, image(images.Python, arch, packages))
	}

	toolchain, err := os.ReadFile(filepath.Join(root, "images/go/toolchain.txt"))
	if err != nil {
		return nil, err
	}
	words := strings.Fields(string(toolchain)) // a version, then architectures and sums
	for i := 1; i+1 < len(words); i += 2 {
		module := goModule(debug.Module{
			Path: "golang.org/toolchain", Version: "v0.0.1-" + words[0] + ".linux-" + words[i],
			Sum: words[i+1],
		})
		all = append(all, image(images.Go, words[i], []cdx.Component{module}))
	}
	return all, nil
}

// image returns a container image for an architecture.
func image(kind, arch string, parts []cdx.Component) cdx.Component {
	return cdx.Component{
		Type: cdx.ComponentTypeContainer, Name: "rlm/" + kind + " for " + arch,
		Description: "what `rlm images build " + kind + "` builds; it is not part of the command",
		Components:  &parts,
	}
}

// lockedPackages reads a lock, which has a time, then lines with name, version, architecture, hash
// and path.
func lockedPackages(name string) ([]cdx.Component, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}

	var all []cdx.Component
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		switch {
		case i == 0:
		case len(words) != 5:
			return nil, fmt.Errorf("cannot read %s: line %d is %q", name, i+1, line)
		default:
			c := debianPackage(words[0], words[1], "arch="+words[2]+"&distro=debian-13")
			c.Hashes = sha256(words[3])
			all = append(all, c)
		}
	}
	return all, nil
}

func debianPackage(name, version, qualifiers string) cdx.Component {
	return cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: name, Version: version,
		PackageURL: "pkg:deb/debian/" + escape(name) + "@" + escape(version) + "?" + qualifiers,
	}
}

func sha256(hex string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex}}
}

// withoutEpoch returns a Debian version as it appears in file names.
func withoutEpoch(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		return rest
	}
	return version
}

// escape escapes characters that a package URL must not contain in a name or version.
func escape(s string) string {
	return strings.NewReplacer("%", "%25", "+", "%2B", ":", "%3A", "(", "%28", ")", "%29").Replace(s)
}
