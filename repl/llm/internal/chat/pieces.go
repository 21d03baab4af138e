package chat

import "strings"

// Pieces joins the pieces of a streamed text. Most servers send only new text in each piece; some
// send all text up to then, or the whole text again at the end. The pieces themselves show which it
// is. The zero value is ready to use.
type Pieces struct {
	joined strings.Builder // all pieces, concatenated
	last   string          // the last piece
	count  int

	isChain   bool // each piece begins with the previous one
	grown     int  // how often a piece of the chain was longer than the previous one
	isRepeat  bool // the last piece equals all earlier pieces, joined
	isNearly  bool // the same, except for blanks around the last piece
	isSure    bool // the server confirmed that the pieces are a chain
	isAgainst bool // the server contradicted the pieces
}

// sureGrowth and sureLength are how often a chain must have grown, and how many bytes a text must
// have, so that a model's text cannot look like this by chance.
const (
	sureGrowth = 3
	sureLength = 16
)

// Add adds a piece.
func (p *Pieces) Add(piece string) {
	if piece == "" {
		return
	}

	p.isRepeat = p.count > 0 && piece == p.joined.String()
	p.isNearly = p.count > 0 && !p.isRepeat && isSimilar(piece, p.joined.String())
	switch {
	case p.count == 0:
		p.isChain = true
	case p.isChain && !strings.HasPrefix(piece, p.last):
		p.isChain = false
	case p.isChain && len(piece) > len(p.last):
		p.grown++
	}
	p.joined.WriteString(piece)
	p.last = piece
	p.count++
}

// Compare compares the pieces with the whole text up to now, which some servers send with each
// piece.
func (p *Pieces) Compare(whole string) {
	switch text := p.Text(); {
	case whole == "" || whole == p.last && p.grown == 0:
	case whole == text:
		p.isSure = p.isSure || p.grown > 0
	case whole == p.joined.String():
		p.isChain, p.isRepeat = false, false
	case strings.TrimSpace(whole) == strings.TrimSpace(text), strings.HasPrefix(text, whole),
		whole == p.last:
	default:
		p.isAgainst = true
	}
}

// Text returns the text up to now.
func (p *Pieces) Text() string {
	all := p.joined.String()
	switch {
	case p.isChain && p.grown > 0:
		return p.last
	case p.isRepeat:
		return all[:len(all)-len(p.last)]
	}
	return all
}

// Settled returns the beginning of the text that no later piece changes. While the pieces can still
// be read in two ways, it is shorter than the text; at the beginning, by one piece.
func (p *Pieces) Settled() string {
	all := p.joined.String()
	switch {
	case p.isChain && (p.grown == 0 || p.IsUnclear()):
		return ""
	case p.isChain:
		return p.last
	case p.isRepeat, p.isNearly:
		return all[:len(all)-len(p.last)]
	}
	return all
}

// IsUnclear reports whether the pieces may also mean another text, so that the server must be asked
// for a reply in one piece.
func (p *Pieces) IsUnclear() bool {
	switch {
	case p.isAgainst, p.isNearly && isLong(p.last):
		return true
	case p.isChain && p.grown > 0:
		return !p.isSure && (p.grown < sureGrowth || !isLong(p.last))
	case p.isRepeat:
		return p.count <= sureGrowth || !isLong(p.last)
	}
	return false
}

// maxBlanks is the largest difference in length, in bytes, that blanks around a text may cause.
const maxBlanks = 16

// isSimilar reports whether two strings are the same, except for a few blanks around them.
func isSimilar(a, b string) bool {
	difference := len(a) - len(b)
	return difference <= maxBlanks && difference >= -maxBlanks && strings.TrimSpace(a) == strings.TrimSpace(b)
}

// isLong reports whether a text is too long to be repeated by chance, and not one character
// repeated.
func isLong(text string) bool {
	return len(text) >= sureLength && strings.Trim(text, text[:1]) != ""
}
