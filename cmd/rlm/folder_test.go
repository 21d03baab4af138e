package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/documenttruth"
)

// TestAFolderOfAllKindsIsOneContext checks that a snippet reads the files of many tools in one
// folder correctly, and that a run answers a question about each file.
func TestAFolderOfAllKindsIsOneContext(t *testing.T) {
	dir, truth := documenttruth.Make(t, "../../scripts")
	addLibreOffice(t, dir, truth)
	if len(truth) < 60 {
		t.Errorf("the folder has %d files", len(truth))
	}

	t.Run("contents", func(t *testing.T) { compareContents(t, dir, truth) })
	t.Run("questions", func(t *testing.T) { askAboutEach(t, dir, truth) })
}

// addLibreOffice adds files that LibreOffice made from others in the folder.
func addLibreOffice(t *testing.T, dir string, truth map[string]documenttruth.File) {
	t.Helper()
	files, err := zip.OpenReader("../../internal/data/documents/testdata/libreoffice.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := os.CopyFS(filepath.Join(dir, "libreoffice"), files); err != nil {
		t.Fatal(err)
	}
	for _, f := range files.File {
		stem := strings.TrimSuffix(f.Name, filepath.Ext(f.Name))
		truth["libreoffice/"+f.Name] = truth[map[string]string{
			"report": "report.docx", "sales": "sales.xlsx", "deck": "deck.pptx",
		}[stem]]
	}
}

// readAllSource is code that reads every file of the folder in every way that its kind supports.
const readAllSource = `import hashlib
def digest(data): return hashlib.sha256(data).hexdigest()
found = {}
for path, file in context.items():
    seen = {"type": file.type}
    if isinstance(file, str):
        seen |= {"text": str(file), "sha256": digest(file.encode()), "parts": len(file.parts)}
        if file.type in ("csv", "jsonl"):
            seen["rows"] = list(file.table())
    else:
        seen["sha256"] = digest(bytes(file))
    found[path] = seen
FINAL(found)`

// compareContents reads the folder in one snippet, and compares the result with the truth.
func compareContents(t *testing.T, dir string, truth map[string]documenttruth.File) {
	t.Helper()
	cmd := command(t, dir, "exec", "--quiet", "--context", ".", "--max-output", "10000000", "-c", readAllSource)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var found map[string]struct {
		Type, Text, SHA256 string
		Parts              int
		Rows               []map[string]any
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}

	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(truth)); !slices.Equal(got, want) {
		t.Errorf("the files are\n%q, not\n%q", got, want)
	}
	for name, want := range truth {
		got := found[name]
		missing, _ := documenttruth.FindMissing(got.Text, want.Texts)
		switch {
		case want.Type == "" && want.Problem == "" && (missing != "" || len(want.Texts) == 0):
			t.Errorf("%s: no %q in its text, which begins %.300q", name, missing, got.Text)
		case want.Problem != "" && (got.Text != "" || got.SHA256 != want.SHA256):
			t.Errorf("%s: %s, and yet it has the text %.300q", name, want.Problem, got.Text)
		case want.Parts > 0 && got.Parts != want.Parts:
			t.Errorf("%s: %d parts, want %d", name, got.Parts, want.Parts)
		case want.Type != "" && (got.Type != want.Type || got.SHA256 != want.SHA256):
			t.Errorf("%s: type %s, digest %s, want %s and %s; it begins %.100q", name, got.Type, got.SHA256,
				want.Type, want.SHA256, got.Text)
		case !reflect.DeepEqual(got.Rows, want.Rows):
			t.Errorf("%s: rows %v, want %v", name, got.Rows, want.Rows)
		}
	}
}

// question asks for a passage of a document, or for the digest of a file.
type question struct {
	Path string `json:"path"`
	// Words are the beginning of the passage. If they are empty, the question asks for the digest.
	Words string `json:"words"`
	want  string
}

// askAboutEach asks all questions in one run, in which the root finds each passage and gives it to
// a sub-model, which answers with a part of it.
func askAboutEach(t *testing.T, dir string, truth map[string]documenttruth.File) {
	t.Helper()
	var questions []question
	for _, name := range slices.Sorted(maps.Keys(truth)) {
		questions = append(questions, makeQuestion(name, truth[name]))
	}
	asked, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}

	const code = `import hashlib, re
def look(path, words):
    file = context[path]
    if not words:
        data = file.encode() if isinstance(file, str) else bytes(file)
        return hashlib.sha256(data).hexdigest()
    plain = " ".join(re.sub(r"[\\\\*_]|<br>", "", file).split())
    at = plain.index(words)
    return plain[at:at + 200]
asked = json.loads(%s)
answers = llm_query_batched(["Quote it: " + look(q["path"], q["words"]) for q in asked])
FINAL(dict(zip([q["path"] for q in asked], answers)))`
	script := fmt.Sprintf("version: 1\nrules:\n"+
		"  - when: {purpose: root}\n    reply: %q\n"+
		"  - when: {purpose: leaf, last: 'Quote it: (?P<line>.*)'}\n    expand: '${line}'\n",
		"```repl\n"+fmt.Sprintf(code, quotePython(string(asked)))+"\n```")
	model := write(t, "model.yaml", []byte(script))

	cmd := command(t, dir, "run", "What do the files say?", "--context", ".", "--bypass", "0", "--quiet",
		"--max-calls", "100", "--model", "scripted/"+model)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, &stderr, out)
	}
	var answers map[string]string
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, q := range questions {
		if !strings.HasPrefix(documenttruth.Simplify(answers[q.Path]), q.want) {
			t.Errorf("%s: %q, want %q", q.Path, answers[q.Path], q.want)
		}
	}
}

// makeQuestion returns a question that quotes the beginning of a document's longest text, or asks
// for the digest.
func makeQuestion(name string, file documenttruth.File) question {
	var longest string
	for _, text := range file.Texts {
		plain := documenttruth.Simplify(text)
		if len(plain) > len(longest) && len(plain) <= 150 && !strings.ContainsAny(plain, "<>&|") {
			longest = plain
		}
	}
	if longest == "" {
		return question{Path: name, want: file.SHA256}
	}
	runes := []rune(longest)
	return question{Path: name, Words: string(runes[:(len(runes)+1)/2]), want: longest}
}

// quotePython returns a string as a Python literal. Every JSON string is one.
func quotePython(text string) string {
	quoted, _ := json.Marshal(text) // marshalling a string never fails
	return string(quoted)
}
