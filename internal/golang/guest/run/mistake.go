package run

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// CompileError is the exception type of a snippet that does not compile.
const CompileError = "CompileError"

// lowerContext matches Python's name for an input. In Go, that is the name of a package.
var lowerContext = regexp.MustCompile(`undefined: context(_\d+)?\b`)

// textMethod matches the use of a method of [Text] on a short input, which is a string, in the
// wording of the compiler and of the interpreter.
var textMethod = regexp.MustCompile(`\bContext(_\d+)?\.\w+ undefined \(type string has|` +
	`undefined method: (Len|Slice|R?Find|Count|Contains|Line(Count|s))\b`)

// undefined matches an undeclared name.
var undefined = regexp.MustCompile(`undefined: (\w+)(?:$|[^.\w])`)

// standard lists packages that programs commonly use. If several share a name, the most common one
// comes first.
var standard = strings.Fields(`bufio bytes cmp compress/gzip container/heap container/list
	container/ring crypto/md5 crypto/sha1 crypto/sha256 encoding/base64 encoding/binary encoding/csv
	encoding/hex encoding/json encoding/xml errors flag fmt hash/crc32 hash/fnv html io io/fs iter log
	maps math math/big math/bits math/cmplx math/rand net net/http net/url os os/exec path path/filepath
	reflect regexp runtime slices sort strconv strings sync sync/atomic text/tabwriter text/template
	time unicode unicode/utf16 unicode/utf8 unsafe`)

// findMissingImports returns a hint that lists packages whose names are undefined in the snippet.
func findMissingImports(text string) string {
	var hints []string
	for _, match := range undefined.FindAllStringSubmatch(text, -1) {
		for _, p := range standard {
			if path.Base(p) == match[1] {
				hints = append(hints, fmt.Sprintf("to use package %s, add import %q", match[1], p))
			}
		}
	}

	slices.Sort(hints)
	return strings.Join(slices.Compact(hints), "; ")
}

// ExplainMistake returns the exception of a snippet that does not compile. It adds a hint if the
// snippet lacks an import, uses Python's name of an input, or calls a method that only a long input
// has.
func ExplainMistake(kind, message, trace string) Exception {
	hint := ""
	switch text := message + trace; {
	case kind != CompileError:
	case lowerContext.MatchString(text):
		hint = "in Go the first input is Context, the others are Context_1, Context_2 and so on"
	case textMethod.MatchString(text):
		hint = "an input of at most 64 KiB is a string: use package strings, as in " +
			`strings.Count(Context, "x"); only a longer one is a *Text with methods`
	default:
		hint = findMissingImports(text)
	}

	if hint != "" {
		message += " (" + hint + ")"
		trace += hint + "\n"
	}
	return Exception{Type: kind, Message: message, Traceback: trace}
}
