package archtest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryDirectModuleIsListedWithItsLicence(t *testing.T) {
	listed, err := os.ReadFile(filepath.Join(top, "docs/reference/third-party.md"))
	if err != nil {
		t.Fatal(err)
	}
	required := requirements(t, "go.mod")
	for name, from := range requirements(t, "scripts/go.mod") {
		if !required[name].isDirect {
			required[name] = from
		}
	}
	delete(required, module)
	for name, from := range required {
		if from.isDirect && !strings.Contains(string(listed), "| "+name+" |") {
			t.Errorf("docs/reference/third-party.md has no line for %s", name)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \|`).FindAllStringSubmatch(string(listed), -1) {
		if _, ok := required[row[1]]; !ok {
			t.Errorf("docs/reference/third-party.md lists %s, which no go.mod requires", row[1])
		}
	}
}

// TestTheRootRequiresLittle limits the modules that the root requires, because a program that
// embeds rlm downloads all of them. Modules that only scripts, or tests of other programs, need
// belong to the module scripts.
func TestTheRootRequiresLittle(t *testing.T) {
	const most = 47
	direct := 0
	for _, from := range requirements(t, "go.mod") {
		if from.isDirect {
			direct++
		}
	}
	if direct == 0 || direct > most {
		t.Errorf("go.mod has %d direct requirements, %d are allowed", direct, most)
	}
}

// TestBothModulesUseTheSameVersions checks shared requirements, because the scripts must measure,
// attach and describe the versions that the root ships.
func TestBothModulesUseTheSameVersions(t *testing.T) {
	root := requirements(t, "go.mod")
	for name, from := range requirements(t, "scripts/go.mod") {
		if here, shared := root[name]; shared && here.version != from.version {
			t.Errorf("scripts/go.mod has %s %s, go.mod has %s", name, from.version, here.version)
		}
	}
}

// requirement is a line of a go.mod.
type requirement struct {
	version  string
	isDirect bool
}

// requirements returns the modules that a go.mod requires.
func requirements(t *testing.T, name string) map[string]requirement {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]requirement{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") && strings.Contains(fields[0], ".") {
			all[fields[0]] = requirement{fields[1], !strings.Contains(line, "// indirect")}
		}
	}
	return all
}

// TestTheZeroOptionsLinkLittle checks the smallest program with an engine. A package that finds
// methods by name, such as text/template, makes the linker keep all methods of all types.
func TestTheZeroOptionsLinkLittle(t *testing.T) {
	const mostModules = 20
	packages := listDependencies(t, "./examples/embed")
	modules := map[string]bool{}
	for path, name := range packages {
		if name != "" && name != module {
			modules[name] = true
		}
		switch {
		case path == "text/template", path == "html/template", path == "net/http", strings.Contains(path, "sqlite"):
			t.Errorf("the zero options link %s: hand it over as a value, see docs/embedding.md", path)
		}
	}
	if len(modules) > mostModules || len(modules) == 0 {
		t.Errorf("the zero options link %d modules, %d are allowed: %v", len(modules), mostModules,
			slices.Sorted(maps.Keys(modules)))
	}
}

// listDependencies returns the modules of the packages that a program links, by package. A package
// of the standard library has no module.
func listDependencies(t *testing.T, program string) map[string]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", program)
	list.Dir, list.Stderr = top, os.Stderr
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list what %s links: %v", program, err)
	}
	packages := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		packages[path] = name
	}
	return packages
}
