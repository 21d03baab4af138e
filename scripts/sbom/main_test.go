package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rlmhq/rlm/internal/machine/cpython"
)

// write returns the bill of this test's binary, which also has modules.
func write(t *testing.T) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{self, "v1.2.3", "../.."}, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// schema returns CycloneDX's own schema, which its module includes.
func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	dir, err := exec.Command(
		"go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(strings.TrimSpace(string(dir)), "schema")

	load := func(address *url.URL) (*jsonschema.Schema, error) {
		file := path.Base(address.Path)
		if file == "jsf-0.82.schema.json" {
			file = "jsf-0.82.schemax.json"
		}
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		var s jsonschema.Schema
		return &s, json.Unmarshal(text, &s)
	}
	bom, err := load(&url.URL{Path: "bom-1.6.schema.json"})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := bom.Resolve(&jsonschema.ResolveOptions{Loader: load})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func TestTheBillFollowsTheSchema(t *testing.T) {
	s, bill := schema(t), write(t)
	for _, valid := range []bool{true, false} {
		if !valid { // check that the schema can reject
			bill = bytes.Replace(bill, []byte(`"alg": "SHA-256"`), []byte(`"alg": "SHA-255"`), 1)
		}
		var document any
		if err := json.Unmarshal(bill, &document); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(document); (err == nil) != valid {
			t.Errorf("valid %v: %v", valid, err)
		}
	}
}

func TestTheBillHasEveryPart(t *testing.T) {
	var bom cdx.BOM
	decoder := cdx.NewBOMDecoder(bytes.NewReader(write(t)), cdx.BOMFileFormatJSON)
	if err := decoder.Decode(&bom); err != nil {
		t.Fatal(err)
	}

	if got, want := bom.Metadata.Component.PackageURL, "pkg:golang/github.com/rlmhq/rlm/scripts@v1.2.3"; got != want {
		t.Errorf("it is the bill of %s, want %s", got, want)
	}
	refs := map[string]bool{}
	var collect func([]cdx.Component)
	collect = func(components []cdx.Component) {
		for _, c := range components {
			if refs[c.BOMRef] {
				t.Errorf("%s occurs twice", c.BOMRef)
			}
			refs[c.BOMRef] = true
			if c.Components != nil {
				collect(*c.Components)
			}
		}
	}
	collect(*bom.Components)

	for _, want := range wantedParts(t) {
		found := false
		for ref := range refs {
			found = found || strings.HasSuffix(ref, want) || strings.Contains(ref, want+"?")
		}
		if !found {
			t.Errorf("there is no %s", want)
		}
	}
}

// wantedParts returns package URLs, or their ends, from sources other than those of the bill.
func wantedParts(t *testing.T) []string {
	t.Helper()
	self, err := buildinfo.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, dep := range self.Deps {
		if dep.Replace != nil {
			continue // rlm itself, from the parent folder
		}
		all = append(all, strings.ToLower(dep.Path)+"@"+escape(dep.Version))
	}
	for name, version := range cpython.Manifest().Sources {
		all = append(all, "pkg:deb/debian/"+name+"@"+escape(version))
	}

	packages, err := os.ReadFile("../../images/python/packages.txt")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.ReadFile("../../images/python/packages.arm64.lock")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lock)) {
		words := strings.Fields(line)
		if slices.Contains(strings.Fields(string(packages)), words[0]) {
			all = append(all, "rlm/python for arm64@/pkg:deb/debian/"+words[0]+"@"+escape(words[1]))
		}
	}
	return all
}
