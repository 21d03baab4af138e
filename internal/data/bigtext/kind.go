package bigtext

import (
	"bytes"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Kind is the apparent kind of a text.
type Kind string

// The kinds. KindText is the kind of all other texts.
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

// sniffKind determines the kind from the extension of name and the first 64 KiB of b. Only the
// bytes decide whether a text is binary.
func sniffKind(name string, b []byte) Kind {
	b = b[:min(len(b), sniffSize)]
	if looksBinary(b) {
		return KindBinary
	}
	if k, ok := kindByExtension[strings.ToLower(filepath.Ext(name))]; ok {
		return k
	}
	return kindByContent(bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\uFEFF"))))
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

// kindByContent determines the kind of a text from its beginning b, if the extension is not
// conclusive.
func kindByContent(b []byte) Kind {
	head := strings.ToLower(string(b[:min(len(b), 512)]))
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	switch {
	case len(b) == 0:
		return KindText
	case strings.HasPrefix(head, "<!doctype html"), strings.HasPrefix(head, "<html"):
		return KindHTML
	case strings.HasPrefix(head, "<?xml"):
		return KindXML
	case strings.HasPrefix(head, "#!"):
		return KindCode
	case isObject(line) && isObject(firstLine(bytes.TrimSpace(rest))):
		return KindJSONL
	case b[0] == '{' && strings.ContainsAny(head, `"}`),
		b[0] == '[' && strings.ContainsAny(head[1:], `{["]`):
		return KindJSON
	case looksCSV(b):
		return KindCSV
	}

	return KindText
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
