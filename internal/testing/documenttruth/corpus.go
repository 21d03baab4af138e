package documenttruth

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Corpus is a set of generated files, and the versions of the tools that made and read them.
type Corpus struct {
	Files    map[string]Known
	Versions map[string]string
}

// Known describes the content of a generated file. The maker is the tool that wrote the file. The
// judge is another tool that has read it.
type Known struct {
	Maker, Format string
	// Blocks are texts and tables, in the order in which people read them.
	Blocks []Block
	// Sheets are the sheets of a workbook.
	Sheets []Grid
	// Tables are the rows of each table, by its name.
	Tables map[string][]map[string]any
	// Members are the contents of an archive's files, by name.
	Members map[string]string
	// Whole is a text that must be equal in every character. It is nil for a document.
	Whole *string
	Parts int
	// Feature names a special property of the file; it is empty for most files.
	Feature string
	Judge   *Verdict
}

// Block is a text, a table, or a row of a table in which only the order of cells matters.
type Block struct {
	Text string
	// Anywhere allows the text at another place, such as that of a footnote.
	Anywhere bool
	// Mark occurs in the text. If it is Optional, it may be missing.
	Mark     string
	Optional bool
	Row      []string
	Table    [][]string
}

// Grid is a sheet as Excel shows it.
type Grid struct {
	Name   string
	Hidden bool
	Grid   [][]string
}

// Verdict is the result of reading a file with another tool. Other is empty if the tool read the
// known content, and otherwise describes what the tool read instead.
type Verdict struct {
	Tool  string
	Other string
}

// MakeCorpus creates count files of each maker. It skips the test if no Python with the tools is
// available.
func MakeCorpus(t *testing.T, scripts, count string) (dir string, corpus Corpus) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "corpus")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	maker := filepath.Join(scripts, "documents", "corpus")
	command := exec.CommandContext(t.Context(), findPython(t), maker, dir, count)
	truth, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, command.Stderr)
	}

	decoder := json.NewDecoder(bytes.NewReader(truth))
	decoder.UseNumber()
	if err := decoder.Decode(&corpus); err != nil {
		t.Fatal(err)
	}
	return dir, corpus
}
