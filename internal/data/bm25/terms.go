package bm25

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTerm bounds a term, in bytes. Longer sequences are not words.
const maxTerm = 64

// unspaced lists the scripts without spaces between words.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
	unicode.Myanmar,
}

// Terms yields the terms of a text for a search: words in lower case, without punctuation. A name
// such as openURLFile yields itself, open, url and file. In scripts without spaces, each pair of
// adjacent characters is a term.
func Terms(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word := range strings.FieldsFuncSeq(text, isBreak) {
			if !termsOf(word, yield) {
				return
			}
		}
	}
}

func isBreak(r rune) bool {
	if r < utf8.RuneSelf {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}

// firstUnspaced is the first character of the unspaced scripts. It avoids the slow lookup for most
// characters.
const firstUnspaced = 0x0E00

func isUnspaced(r rune) bool { return r >= firstUnspaced && unicode.In(r, unspaced...) }

// termsOf yields the terms of a word without breaks.
func termsOf(word string, yield func(string) bool) bool {
	for len(word) > 0 {
		first, _ := utf8.DecodeRuneInString(word)
		pairs := isUnspaced(first)
		end := strings.IndexFunc(
			word, func(r rune) bool { return isUnspaced(r) != pairs && !unicode.IsMark(r) },
		)
		if end <= 0 {
			end = len(word)
		}

		run := word[:end]
		word = word[end:]
		if pairs && !pairsOf(run, yield) || !pairs && !partsOf(run, yield) {
			return false
		}
	}

	return true
}

// pairsOf yields each pair of adjacent characters, or a single character.
func pairsOf(run string, yield func(string) bool) bool {
	last := 0
	for at := range run {
		if at > 0 {
			_, n := utf8.DecodeRuneInString(run[at:])
			if !yield(run[last : at+n]) {
				return false
			}
			last = at
		}
	}

	return last > 0 || yield(run)
}

// partsOf yields a word, and its parts if it is a compound name.
func partsOf(word string, yield func(string) bool) bool {
	start := 0
	for at, r := range word {
		if at > start && unicode.IsUpper(r) && humps(word, at) {
			if !lowered(word[start:at], yield) {
				return false
			}
			start = at
		}
	}

	if start > 0 && !lowered(word[start:], yield) {
		return false
	}
	return lowered(word, yield)
}

// humps reports whether a new part begins at the capital at position at: after a small letter or a
// digit, or before a small letter, such as the F in URLFile.
func humps(word string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(word[:at])
	_, n := utf8.DecodeRuneInString(word[at:])
	after, _ := utf8.DecodeRuneInString(word[at+n:])
	return !unicode.IsUpper(before) || unicode.IsLower(after)
}

func lowered(term string, yield func(string) bool) bool {
	return len(term) > maxTerm || yield(strings.ToLower(term))
}
