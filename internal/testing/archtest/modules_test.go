package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryDirectModuleIsListedWithItsLicence(t *testing.T) {
	listed, err := os.ReadFile(filepath.Join(top, "docs/reference/third-party.md"))
	if err != nil {
		t.Fatal(err)
	}
	required := requirements(t)
	for name, direct := range required {
		if direct && !strings.Contains(string(listed), "| "+name+" |") {
			t.Errorf("docs/reference/third-party.md has no line for %s", name)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \|`).FindAllStringSubmatch(string(listed), -1) {
		if _, ok := required[row[1]]; !ok {
			t.Errorf("docs/reference/third-party.md lists %s, which go.mod does not require", row[1])
		}
	}
}

// requirements returns the modules of go.mod and whether they are direct.
func requirements(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") && strings.Contains(fields[0], ".") {
			all[fields[0]] = !strings.Contains(line, "// indirect")
		}
	}
	return all
}
