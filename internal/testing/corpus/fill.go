package corpus

import (
	"math/bits"
	"math/rand/v2"
)

// filler appends the content of a slot.
type filler func(s *scribe, l *language)

// fillers maps the names of slots to their fillers.
var fillers = map[string]filler{
	"given":  func(s *scribe, l *language) { s.add(s.dice.pick(l.given)) },
	"family": func(s *scribe, l *language) { s.add(s.dice.pick(l.family)) },
	"city":   func(s *scribe, l *language) { s.add(s.dice.pick(l.city)) },
	"title":  func(s *scribe, l *language) { s.add(s.dice.pick(l.title)) },
	"name":   func(s *scribe, l *language) { s.sentence(l, l.name) },
	"n":      func(s *scribe, _ *language) { s.number(s.dice.between(5, 20), 1) },
	"m":      func(s *scribe, _ *language) { s.number(s.dice.between(100, 9999), 1) },
	"money":  fillMoney,
	"date":   func(s *scribe, _ *language) { s.buf = s.dice.appendDate(s.buf) },
	"time":   fillTime,
	"code":   func(s *scribe, _ *language) { s.add("E-"); s.number(s.dice.below(10_000), 4) },
	"mail":   fillMail,
	"shelf":  fillShelf,
	"isbn":   fillISBN,
	"ticket": fillTicket,
}

func fillMoney(s *scribe, _ *language) {
	s.number(s.dice.below(250), 1)
	s.add(".")
	s.number(s.dice.below(100), 2)
	s.add(" ")
	s.add(s.dice.pick(s.currencies))
}

func fillTime(s *scribe, _ *language) {
	s.number(s.dice.between(7, 21), 2)
	s.add(":")
	s.number(s.dice.below(60), 2)
}

func fillTicket(s *scribe, _ *language) {
	s.add("LIB-")
	s.number(1+s.dice.below(s.records), 9)
}

func fillMail(s *scribe, _ *language) {
	s.add(s.dice.pick(s.users))
	s.number(s.dice.below(1_000_000), 1)
	s.add("@")
	s.add(s.dice.pick(s.domains))
}

func fillShelf(s *scribe, _ *language) {
	s.buf = append(s.buf, 'A'+byte(s.dice.below(26)), '-')
	s.number(s.dice.below(100), 2)
	s.add(".")
	s.number(s.dice.below(1000), 3)
}

func fillISBN(s *scribe, _ *language) {
	s.add("978-")
	s.number(s.dice.below(10), 1)
	s.add("-")
	s.number(s.dice.below(100_000), 5)
	s.add("-")
	s.number(s.dice.below(1000), 3)
	s.add("-")
	s.number(s.dice.below(10), 1)
}

// add appends text.
func (s *scribe) add(text string) { s.buf = append(s.buf, text...) }

// number appends n with at least width digits.
func (s *scribe) number(n, width int) { s.buf = appendDigits(s.buf, n, width) }

// appendDigits appends n, which must not be negative, with at least width digits.
func appendDigits(b []byte, n, width int) []byte {
	var digits [20]byte
	at := len(digits)
	for n > 0 || width > 0 {
		at--
		digits[at] = '0' + byte(n%10)
		n /= 10
		width--
	}
	return append(b, digits[at:]...)
}

// dice makes the random choices. The generator is the documented PCG, so a seed gives the same text
// with every Go version.
type dice struct{ source *rand.PCG }

func newDice(seed uint64) dice { return dice{rand.NewPCG(seed, 0x6c6962726172790a)} }

// below returns a number from 0 to n-1. The slight bias towards low numbers is harmless here, and
// saves a loop.
func (d dice) below(n int) int {
	high, _ := bits.Mul64(d.source.Uint64(), uint64(n))
	return int(high)
}

// between returns a number from low to high, inclusive.
func (d dice) between(low, high int) int { return low + d.below(high-low+1) }

// pick returns one of the choices.
func (d dice) pick(choices []string) string { return choices[d.below(len(choices))] }

// appendDate appends a date between 2012 and 2025.
func (d dice) appendDate(b []byte) []byte {
	b = appendDigits(b, d.between(2012, 2025), 4)
	b = append(b, '-')
	b = appendDigits(b, d.between(1, 12), 2)
	b = append(b, '-')
	return appendDigits(b, d.between(1, 28), 2)
}
