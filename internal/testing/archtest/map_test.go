package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapPage is the map of the project: the floors with their arrows, and a row for each package.
const mapPage = "docs/architecture.md"

// archMap is the content of the page.
type archMap struct {
	floors   []floor  // from top to bottom
	packages []string // folders; a folder with /... stands for everything below it
}

// floor is a part of the project with the parts that it may import.
type floor struct {
	name    string
	folders []string
	imports []string // names of parts, or single folders
}

var quoted = regexp.MustCompile("`([^`]+)`")

// readMap reads the page.
func readMap(t *testing.T) *archMap {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, mapPage))
	if err != nil {
		t.Fatal(err)
	}

	m, section := &archMap{}, ""
	for line := range strings.Lines(string(text)) {
		if title, is := strings.CutPrefix(line, "## "); is {
			section = strings.TrimSpace(title)
		}
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(line, "`") {
			continue
		}
		switch section {
		case "Floors":
			m.floors = append(m.floors, readFloor(cells))
		case "Packages":
			for _, found := range quoted.FindAllStringSubmatch(cells[1], -1) {
				m.packages = append(m.packages, expand(found[1])...)
			}
		}
	}
	return m
}

// readFloor reads a row of the table of floors.
func readFloor(cells []string) floor {
	f := floor{name: strings.TrimSpace(cells[1])}
	for _, found := range quoted.FindAllStringSubmatch(cells[2], -1) {
		f.folders = append(f.folders, found[1])
	}
	for name := range strings.SplitSeq(cells[3], ",") {
		if name = strings.Trim(name, " `"); name != "" {
			f.imports = append(f.imports, name)
		}
	}
	return f
}

// expand returns the folders of a pattern such as a/{b,c}.
func expand(pattern string) []string {
	before, rest, found := strings.Cut(pattern, "{")
	if !found {
		return []string{pattern}
	}

	inside, after, _ := strings.Cut(rest, "}")
	var all []string
	for name := range strings.SplitSeq(inside, ",") {
		all = append(all, before+strings.TrimSpace(name)+after)
	}
	return all
}

// floorOf returns the part that a folder belongs to, or nil.
func (m *archMap) floorOf(folder string) *floor {
	var best *floor
	longest := -1
	for i := range m.floors {
		for _, own := range m.floors[i].folders {
			isIn := folder == own || strings.HasPrefix(folder, own+"/")
			if isIn && len(own) > longest && (own != "tiers" || folder == own) {
				best, longest = &m.floors[i], len(own)
			}
		}
	}
	return best
}

func TestTheMapNamesEveryPackage(t *testing.T) {
	m := readMap(t)
	folders := map[string]bool{}
	for _, f := range goFiles(t) {
		folders[f.folder()] = true
		if !m.has(f.folder()) {
			t.Errorf("%s has no row for the package in %s", mapPage, f.folder())
		}
	}

	for _, listed := range m.packages {
		if name := strings.TrimSuffix(listed, "/..."); name == listed && name != "package rlm" && !folders[name] {
			t.Errorf("%s has a row for %s, which is no package", mapPage, listed)
		}
	}
}

// has reports whether the map lists a folder.
func (m *archMap) has(folder string) bool {
	return slices.ContainsFunc(m.packages, func(listed string) bool {
		below, all := strings.CutSuffix(listed, "/...")
		return listed == folder || all && (folder == below || strings.HasPrefix(folder, below+"/"))
	})
}

// TestRoomsAreFew checks that internal has few rooms, and that each has a doc.go that describes
// what is inside and what is not.
func TestRoomsAreFew(t *testing.T) {
	const mostRooms = 10
	rooms, err := os.ReadDir(filepath.Join(top, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) > mostRooms {
		t.Errorf("internal has %d rooms, more than %d", len(rooms), mostRooms)
	}
	for _, room := range rooms {
		if _, err := os.Stat(filepath.Join(top, "internal", room.Name(), "doc.go")); err != nil {
			t.Errorf("internal/%s has no doc.go", room.Name())
		}
	}
}

// TestTheMapLeadsToFiles checks that each path with a folder on the page exists.
func TestTheMapLeadsToFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, mapPage))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range quoted.FindAllStringSubmatch(string(text), -1) {
		first, _, hasFolder := strings.Cut(found[1], "/")
		if _, err := os.Stat(filepath.Join(top, first)); !hasFolder || err != nil {
			continue // a name inside a folder that the row has named before
		}
		for _, path := range expand(strings.TrimSuffix(found[1], "/...")) {
			if all, err := filepath.Glob(filepath.Join(top, path)); err != nil || len(all) == 0 {
				t.Errorf("%s leads to %s, which does not exist", mapPage, path)
			}
		}
	}
}
