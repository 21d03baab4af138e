package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/documenttruth"
)

// corpusPage is the page with the tally of the corpus. The environment variable RLM_WRITE_CORPUS
// writes it.
const corpusPage = "../../docs/generated/corpus.md"

// readCorpusSource is code that reads each file in every way that its kind supports.
const readCorpusSource = `def read(file):
    if hasattr(file, "items"):
        return {"members": {name: str(member) for name, member in file.items()}}
    seen = {"type": file.type}
    if isinstance(file, str):
        seen |= {"text": str(file), "parts": len(file.parts)}
    try:
        names = list(file.tables)
    except Exception:
        names = []
    try:
        seen["tables"] = {"": list(file.table()), **{name: list(file.table(name)) for name in names}}
    except Exception as error:
        seen["tables"] = None
    return seen
FINAL({name: read(file) for name, file in found.items()})`

// limit describes how rlm's reading may differ from the truth in files of a maker and a feature.
type limit struct {
	name, maker, feature string
	difference           *regexp.Regexp
}

// limits are the differences that docs/reference/limitations/inputs.md names. The page must name
// each limit, and each must explain at least one file.
var limits = []limit{
	{"spaces in columns of a PDF", "chromium", "", regexp.MustCompile(`^text: no`)},
}

// reasons say why the truth is right where another reader disagrees.
var reasons = map[string]string{
	"openpyxl": "openpyxl saves no values of formulas; calamine gives empty cells, `rlm` computes the sums",
	"sheetjs":  "SheetJS writes short cells, as Excel does; calamine skips them",
	"reportlab": "pdfplumber reads across columns, does not turn pages, and reads twice what is drawn " +
		"twice",
	"chromium": "pdfplumber reads across columns, and a merged cell where its middle is",
}

// tally counts the files of one maker.
type tally struct{ files, right, told, limited, disputed int }

// TestACorpusIsReadOrTold reads files that other tools have made. A value that is lost, changed,
// doubled or moved must have a note or a name in the documentation.
func TestACorpusIsReadOrTold(t *testing.T) {
	dir, corpus := documenttruth.MakeCorpus(t, "../../scripts", "18")
	byMaker := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(corpus.Files)) {
		maker := corpus.Files[name].Maker
		byMaker[maker] = append(byMaker[maker], name)
	}

	var mu sync.Mutex
	tallies := map[string]tally{}
	explained := map[string]int{}
	t.Run("files", func(t *testing.T) {
		for maker, names := range byMaker {
			t.Run(maker, func(t *testing.T) {
				t.Parallel()
				found, notes := readCorpus(t, dir, names)
				mu.Lock()
				defer mu.Unlock()
				for _, name := range names {
					known := corpus.Files[name]
					tallies[maker] = countFile(t, tallies[maker], name, known, found[name], notes[name], explained)
				}
			})
		}
	})

	total := 0
	for _, n := range tallies {
		total += n.files
	}
	if total < 400 {
		t.Errorf("there are %d files only", total)
	}
	checkLimits(t, tallies, explained)
	checkPage(t, corpus, tallies, explained)
}

// countFile adds a file to the tally. The file must be read correctly, or a note or a limit must
// explain each difference.
func countFile(
	t *testing.T, n tally, name string, known documenttruth.Known, got documenttruth.Reading, notes []string,
	explained map[string]int,
) tally {
	t.Helper()
	differences := known.Differences(got)
	isText := slices.Contains([]string{"csv", "tsv", "txt", "zip"}, known.Format)
	isGuess := isText && strings.Contains(strings.Join(notes, "\n"), ", a guess")
	named := map[string]bool{}
	isSilent := false
	for _, difference := range differences {
		i := slices.IndexFunc(limits, func(l limit) bool {
			return l.maker == known.Maker && l.feature == known.Feature && l.difference.MatchString(difference)
		})
		switch {
		case isGuess:
		case i >= 0:
			named[limits[i].name] = true
		default:
			isSilent = true
			t.Errorf("%s: %.1000s\n%s", name, difference, strings.Join(notes, "\n"))
		}
	}

	n.files++
	switch {
	case len(differences) == 0:
		n.right++
	case isSilent:
	case len(named) > 0:
		n.limited++
	default:
		n.told++
	}
	for limit := range named {
		explained[limit]++
	}
	if known.Judge != nil && known.Judge.Other != "" {
		n.disputed++
		if reasons[known.Maker] == "" {
			t.Errorf("%s: %s reads %s, and no reason says which counts", name, known.Judge.Tool, known.Judge.Other)
		}
	}
	return n
}

// readCorpus returns what a snippet reads from each file, and the notes about the file.
func readCorpus(t *testing.T, dir string, names []string) (map[string]documenttruth.Reading, map[string][]string) {
	t.Helper()
	args := []string{"exec", "--max-output", "100000000"}
	code := "found = {"
	for i, name := range names {
		args = append(args, "--context", fmt.Sprintf("f%d=%s", i, name))
		code += fmt.Sprintf("%s: f%d, ", quotePython(name), i)
	}
	cmd := command(t, dir, append(args, "-c", code+"}\n"+readCorpusSource)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var found map[string]documenttruth.Reading
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	if err := decoder.Decode(&found); err != nil {
		t.Fatal(err)
	}

	notes := map[string][]string{}
	for line := range strings.Lines(stderr.String()) {
		name, note, ok := strings.Cut(strings.TrimPrefix(line, "rlm: context "), ": ")
		if ok && !strings.HasPrefix(note, "converted from") {
			notes[name] = append(notes[name], strings.TrimSpace(note))
		}
	}
	return found, notes
}

// checkLimits finds limits that the page lacks, and limits that no longer explain any file.
func checkLimits(t *testing.T, tallies map[string]tally, explained map[string]int) {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/limitations/inputs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range limits {
		if !bytes.Contains(page, []byte("| "+limit.name+" |")) {
			t.Errorf("docs/reference/limitations/inputs.md does not name %q", limit.name)
		}
		if explained[limit.name] == 0 && tallies[limit.maker].files > 0 {
			t.Errorf("the limit %q explains no file: remove it here and in docs/reference/limitations/inputs.md",
				limit.name)
		}
	}
}

// checkPage compares the page with the tally, except for the files of Chromium, whose version
// differs between machines.
func checkPage(t *testing.T, corpus documenttruth.Corpus, tallies map[string]tally, explained map[string]int) {
	t.Helper()
	page := describeCorpus(corpus, tallies, explained)
	if os.Getenv("RLM_WRITE_CORPUS") != "" {
		if err := os.WriteFile(corpusPage, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(corpusPage)
	if err != nil {
		t.Fatal(err)
	}
	ofChromium := regexp.MustCompile(`(?m)^.*(Chromium|\*\*all\*\*).*$`)
	if !bytes.Equal(ofChromium.ReplaceAll(got, nil), ofChromium.ReplaceAll([]byte(page), nil)) {
		t.Errorf("RLM_WRITE_CORPUS=1 make documents-native writes docs/generated/corpus.md, which is old: now\n%s",
			page)
	}
}
