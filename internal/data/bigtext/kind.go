package bigtext

import (
	"bytes"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/tables"
)

// Kind is the apparent kind of a text.
type Kind string

// These are the kinds. KindText is the kind of all other texts.
const (
	KindText   Kind = "text"
	KindJSON   Kind = "json"
	KindJSONL  Kind = "jsonl"
	KindCSV    Kind = "csv"
	KindXML    Kind = "xml"
	KindHTML   Kind = "html"
	KindCode   Kind = "code"
	KindBinary Kind = "binary"
)

const sniffSize = 64 << 10

var kindByExtension = map[string]Kind{
	".json": KindJSON, ".geojson": KindJSON, ".ipynb": KindJSON, ".jsonl": KindJSONL,
	".ndjson": KindJSONL, ".csv": KindCSV, ".tsv": KindCSV, ".xml": KindXML, ".svg": KindXML,
	".rss": KindXML, ".atom": KindXML, ".xsd": KindXML, ".xsl": KindXML, ".html": KindHTML,
	".htm": KindHTML, ".xhtml": KindHTML, ".txt": KindText, ".md": KindText, ".rst": KindText,
	".log": KindText, ".tex": KindText,
}

func init() {
	const code = `.bash .bat .c .cc .clj .cpp .cs .css .cxx .dart .el .erl .ex .exs .f90 .go .h .hh
		.hpp .hs .java .jl .js .jsx .kt .kts .lisp .lua .m .mjs .ml .mm .php .pl .pm .proto .ps1
		.py .pyi .r .rb .rs .s .scala .scm .sh .sql .swift .tf .ts .tsx .v .vb .vhdl .vue .zig
		.zsh`
	for _, ext := range strings.Fields(code) {
		kindByExtension[ext] = KindCode
	}
}

// sniffKind determines the kind from the extension of name and the first 64 KiB of b. The bytes
// decide whether a text is binary, and whether a .json or .txt is a table.
func sniffKind(name string, b []byte) Kind {
	isCut := len(b) > sniffSize
	b = b[:min(len(b), sniffSize)]
	if looksBinary(b) && !isTextWithNULs(name, b) {
		return KindBinary
	}
	content := bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\uFEFF")))
	extension := strings.ToLower(filepath.Ext(name))
	kind, isKnown := kindByExtension[extension]
	switch {
	case !isKnown:
		return kindByContent(content, isCut)
	case kind == KindJSON && isJSONLines(content):
		return KindJSONL // many programs name JSON Lines this way
	case extension == ".txt" && (isJSONLines(content) || tables.IsCSV(content, isCut)):
		return kindByContent(content, isCut)
	}
	return kind
}

// looksBinary reports whether more than one byte in 1000 is NUL (as in UTF-16, which is
// not a text here), or more than one in 10 is invalid.
func looksBinary(b []byte) bool {
	if n := bytes.Count(b, []byte{0}); n > 0 && n*1000 > len(b) {
		return true
	}
	_, invalid, _ := countDecoded(b)
	return invalid*10 > int64(len(b))
}

// isTextWithNULs reports whether a file is text according to its name and, apart from a few NULs,
// its bytes. Programs that pad fields with NULs write such tables.
func isTextWithNULs(name string, b []byte) bool {
	if _, isKnown := kindByExtension[strings.ToLower(filepath.Ext(name))]; !isKnown {
		return false
	}
	nuls := bytes.Count(b, []byte{0})
	_, invalid, _ := countDecoded(b)
	return nuls*8 <= len(b) && invalid == 0
}

// kindByContent determines the kind of a text from its beginning b, if the extension is not
// conclusive.
func kindByContent(b []byte, isCut bool) Kind {
	head := strings.ToLower(string(b[:min(len(b), 512)]))
	switch {
	case len(b) == 0:
		return KindText
	case strings.HasPrefix(head, "<!doctype html"), strings.HasPrefix(head, "<html"):
		return KindHTML
	case strings.HasPrefix(head, "<?xml"):
		return KindXML
	case strings.HasPrefix(head, "#!"):
		return KindCode
	case isJSONLines(b):
		return KindJSONL
	case b[0] == '{' && strings.ContainsAny(head, `"}`),
		b[0] == '[' && strings.ContainsAny(head[1:], `{["]`):
		return KindJSON
	case looksCSV(b), tables.IsCSV(b, isCut):
		return KindCSV
	}

	return KindText
}

// isJSONLines reports whether the first two lines are objects.
func isJSONLines(b []byte) bool {
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	return isObject(line) && isObject(firstLine(bytes.TrimSpace(rest)))
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

// isObject reports whether line starts and ends like a JSON object.
func isObject(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 1 && line[0] == '{' && line[len(line)-1] == '}'
}

// looksCSV reports whether the first lines all contain one separator the same number of times.
func looksCSV(b []byte) bool {
	lines := bytes.SplitN(b, []byte("\n"), 7)
	if len(lines) < 3 || !utf8.Valid(lines[0]) {
		return false
	}

	lines = lines[:len(lines)-1] // the last line may be cut
	for _, sep := range []string{",", "\t", ";", "|"} {
		n := bytes.Count(lines[0], []byte(sep))
		same := n > 0 && (n > 1 || len(lines) > 3)
		for _, line := range lines {
			same = same && bytes.Count(line, []byte(sep)) == n
		}
		if same {
			return true
		}
	}
	return false
}
