package documents

import (
	"fmt"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// Description describes the document that a text was made from.
type Description struct {
	// Noun is the kind of the document's parts, such as "page" or "sheet"; it is empty if the
	// document has none.
	Noun  string
	Parts []Part
	// Warnings are sentences, without a final period, about parts that could not be read. They are
	// the module's own words: quote them. Further counts the warnings left out here.
	Warnings []string
	Further  int
}

// Part is a page, a sheet, a message or a similar part. It ends where the next one starts.
type Part struct {
	Title string
	Start int64 // in bytes of the text
}

// ProblemError is the reason why a document has no text.
type ProblemError struct {
	Kind ProblemKind
	// Detail is the module's own description. It may be empty.
	Detail string
	// Pages is the number of pages of a PDF without text, or 0.
	Pages int
}

// ProblemKind is the kind of a problem.
type ProblemKind byte

// These are the kinds, numbered as in engine/src/problem.rs.
const (
	Damaged ProblemKind = iota + 1
	Encrypted
	NoText
	Unsupported
	tooLarge // never reported: it is a limit
)

// Error returns why the document cannot be read.
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

// These bounds apply to an answer.
const (
	maxTitle    = 1 << 10 // bytes
	maxParts    = 1 << 20
	maxWarnings = 100
)

// decode decodes an answer about a text of size bytes. The module is not trusted: decode
// allocates no more than a few times the length of the answer.
func decode(answer []byte, size int64) (*Description, error) {
	a := rustmodule.NewAnswer(answer)
	if kind := ProblemKind(a.Byte()); kind != 0 {
		detail, pages := a.Text(maxTitle), a.Number()
		problem := &ProblemError{kind, detail, int(pages)}
		if kind != NoText && pages > 0 || pages > maxParts || kind > tooLarge || a.End() != nil {
			return nil, rustmodule.ErrMalformed
		}
		if kind == tooLarge {
			return nil, &rustmodule.LimitError{Limit: "Unpacked"}
		}
		return nil, problem
	}

	found := &Description{Noun: a.Text(maxTitle)}
	last := int64(0)
	for range a.Count(maxParts) {
		part := Part{a.Text(maxTitle), int64(a.Number())}
		if a.HasFailed() || part.Start < last || part.Start > size {
			return nil, rustmodule.ErrMalformed
		}
		last = part.Start
		found.Parts = append(found.Parts, part)
	}
	for range a.Count(maxWarnings) {
		found.Warnings = append(found.Warnings, a.Text(maxTitle))
	}
	found.Further = int(a.Number() & 0x7fff_ffff)
	if err := a.End(); err != nil {
		return nil, err
	}
	return found, nil
}
