package documents

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/rustmodule"
)

// Description says what a text was made of.
type Description struct {
	// Noun is what its parts are, such as "page" or "sheet"; empty if it has none.
	Noun  string
	Parts []Part
	// Warnings are sentences without an end on what could not be read, in the words of the
	// module: quote them. Further counts those that are not here.
	Warnings []string
	Further  int
}

// Part is a page, a sheet, a message or the like. It ends where the next one starts.
type Part struct {
	Title string
	Start int64 // in bytes of the text
}

// ProblemError is why a document has no text to give.
type ProblemError struct {
	Kind ProblemKind
	// Detail is in the words of the module. It may be empty.
	Detail string
}

// ProblemKind is the kind of a problem.
type ProblemKind byte

// The kinds, as engine/src/problem.rs numbers them.
const (
	Damaged ProblemKind = iota + 1
	Encrypted
	NoText
	Unsupported
)

// Error says why the document cannot be read.
func (p *ProblemError) Error() string {
	reason := map[ProblemKind]string{
		Damaged: "it is damaged", Encrypted: "it is encrypted: remove its password first",
		NoText: "it has no text", Unsupported: "it is not supported",
	}[p.Kind]
	if p.Detail == "" || p.Kind == Encrypted {
		return reason
	}
	if p.Kind == NoText {
		return p.Detail
	}
	return fmt.Sprintf("%s (%s)", reason, p.Detail)
}

// Bounds of an answer.
const (
	maxTitle    = 1 << 10 // bytes
	maxParts    = 1 << 20
	maxWarnings = 100
)

// decode decodes an answer about a text of size bytes. The module is not trusted: decode
// allocates no more than a few times the length of the answer.
func decode(answer []byte, size int64) (*Description, error) {
	d := &decoder{data: answer}
	if kind := ProblemKind(d.byte()); kind != 0 {
		problem := &ProblemError{kind, d.text()}
		if d.failed || len(d.data) > 0 || kind > Unsupported {
			return nil, rustmodule.ErrMalformed
		}
		return nil, problem
	}

	found := &Description{Noun: d.text()}
	last := int64(0)
	for range d.count(maxParts) {
		part := Part{d.text(), int64(d.number())}
		if d.failed || part.Start < last || part.Start > size {
			return nil, rustmodule.ErrMalformed
		}
		last = part.Start
		found.Parts = append(found.Parts, part)
	}
	for range d.count(maxWarnings) {
		found.Warnings = append(found.Warnings, d.text())
	}
	found.Further = int(d.number() & 0x7fff_ffff)
	if d.failed || len(d.data) > 0 {
		return nil, rustmodule.ErrMalformed
	}
	return found, nil
}

// decoder reads an answer. Once it has failed, it returns zeros.
type decoder struct {
	data   []byte
	failed bool
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.failed = true
		return 0
	}
	first := d.data[0]
	d.data = d.data[1:]
	return first
}

func (d *decoder) number() uint64 {
	n, length := binary.Uvarint(d.data)
	if length <= 0 {
		d.failed, d.data = true, nil
		return 0
	}
	d.data = d.data[length:]
	return n
}

// count reads a number of items, of which each takes a byte at least.
func (d *decoder) count(most uint64) uint64 {
	n := d.number()
	if n > most || n > uint64(len(d.data)) {
		d.failed, d.data = true, nil
		return 0
	}
	return n
}

func (d *decoder) text() string {
	length := d.count(maxTitle)
	text := string(d.data[:length])
	d.data = d.data[length:]
	if !utf8.ValidString(text) {
		d.failed, d.data = true, nil
	}
	return text
}
