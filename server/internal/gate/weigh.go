package gate

import (
	"bytes"
	"net/http"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// Upper bounds on the size of a decoded value, in bytes, without its text.
const (
	valueCost = 48  // an interface, and the header of the value behind it
	listCost  = 300 // an object or a list, which may be a struct in a list that grows
)

// valuesOf returns the maximum size of the decoded values of all bodies together, in bytes. The
// values of one body may take a quarter of it.
func valuesOf(maxBody int64) int64 { return max(bodiesAtOnce*maxBody, 1<<30) }

// scale weighs the values of a JSON text as it arrives, before it is decoded. Short JSON such as
// "[]," may become 40 bytes, or a struct.
type scale struct {
	weight            int64 // in bytes
	isText, isEscaped bool
}

// add weighs the next part of the body. In JSON, a comma or an opening bracket precedes each value
// except the values of members.
func (s *scale) add(part []byte) {
	for i := 0; i < len(part); i++ {
		if s.isText {
			i += s.skipText(part[i:]) - 1
			continue
		}
		switch part[i] {
		case '"':
			s.isText = true
		case ',':
			s.weight += valueCost
		case '[', '{':
			s.weight += valueCost + listCost
		}
	}
}

// skipText returns how many bytes at the beginning of a part belong to a JSON string that began
// earlier, including its closing quote.
func (s *scale) skipText(part []byte) int {
	for i := 0; i < len(part); i++ {
		if s.isEscaped {
			s.isEscaped = false
			continue
		}

		stretch := part[i:]
		quote := bytes.IndexByte(stretch, '"')
		if quote >= 0 {
			stretch = stretch[:quote]
		}
		escapes := len(stretch) - len(bytes.TrimRight(stretch, `\`))
		s.isEscaped = escapes%2 == 1
		switch i += len(stretch); {
		case quote < 0:
			return i
		case !s.isEscaped:
			s.isText = false
			return i + 1
		}
		s.isEscaped = false // the quote
	}
	return len(part)
}

// weigh counts the next part of a body and the values in it, or refuses the body.
func (b *body) weigh(part []byte) error {
	if err := b.held.hold(int64(len(part))); err != nil {
		return err
	}

	before := b.scale.weight
	if b.scale.add(part); b.scale.weight <= b.heaviest {
		return b.values.hold(b.scale.weight - before)
	}
	return problem.New(http.StatusRequestEntityTooLarge, "body_too_large",
		"the body has too many values: decoded, they take more than %s of memory: send texts, or a file",
		quantity.IBytes(b.heaviest))
}
