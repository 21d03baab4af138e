package distill

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/internal/data/bm25"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Bounds of the words of an error.
const (
	mostTerms   = 40    // different words of an error to compare
	mostToRead  = 2_000 // bytes of an error to search for words
	longestWord = 40    // bytes; anything longer is not a word
)

// commonKinds are kinds of errors that programs describe in many ways. Two errors that match the
// same pattern are likely to share a cause, even without a common word.
var commonKinds = map[string]*lazyregexp.Regexp{
	"timeout": lazyregexp.New(`(?i)time?d?[ _-]?out\b|deadline|took (too )?long|` +
		`no response (before|within)|did not (answer|respond)`),
	"rate": lazyregexp.New(`(?i)rate[ _-]?limit|too many requests|\b429\b|throttl|quota`),
	"access": lazyregexp.New(`(?i)\b40[13]\b|unauthori[sz]ed|forbidden|permission|credential|` +
		`api[ _-]?key|authenticat|not authori[sz]ed|access denied|\beacces\b|invalid_grant|login|` +
		`token (has )?(expired|lacks|is invalid)`),
	"format": lazyregexp.New(`(?i)\bjson|\bpars(e|ing|able)|unexpected (token|end|character)|` +
		`malformed|cannot decode|\byaml\b|outputparser`),
	"absent": lazyregexp.New(`(?i)\bnot found|no such|does not exist|\benoent\b|\b404\b|notfound`),
	"length": lazyregexp.New(`(?i)context[ _-]?(length|window|limit)|too long: \d+ tokens|` +
		`token count|max(imum)?[ _](number of )?tokens`),
	"network": lazyregexp.New(`(?i)connection (refused|reset|aborted|error|closed)|\beconn|` +
		`\bdns\b|name resolution|unreachable|broken pipe|\bssl\b|\btls\b|certificate`),
	"memory": lazyregexp.New(`(?i)out of memory|\boom\b|memoryerror|oomkilled`),
	"arguments": lazyregexp.New(`(?i)missing (\d+ )?(required )?(positional )?` +
		`(argument|parameter|field)|unexpected keyword|invalid (argument|parameter)|validation error`),
	"steps": lazyregexp.New(`(?i)max(imum)?[ _](number of )?(steps|iterations|turns)|` +
		`recursion (limit|depth)|(step|iteration) limit`),
	"server": lazyregexp.New(`(?i)\b50[0-4]\b|internal server error|bad gateway|` +
		`service unavailable|overloaded`),
}

// commonWords are words that reveal little about a cause.
var commonWords = wordSet(`a an and are as at be been before but by can could did do does for from
	got had has have he her his if in into is it its may more must no not of on or our out she so
	than that the their them then there these they this to too us was we were what when where which
	while who will with within without would you your
	error errors exception failed failure agent http https www`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// specifics matches parts that differ between failures of one kind: addresses, paths, and words
// with digits.
var specifics = lazyregexp.New(`https?://\S+|(?:[~.\w-]*/)+[\w.@-]+|[\w.#-]*[0-9][\w.-]*`)

// wordsOf returns the distinct words of an error, sorted, without those that differ between
// failures of one kind.
func wordsOf(text string) []string {
	seen := map[string]bool{}
	text = specifics.ReplaceAllString(text[:min(len(text), mostToRead)], " ")
	for term := range bm25.Terms(text) {
		if len(term) > 1 && len(term) <= longestWord && !commonWords[term] &&
			!strings.ContainsFunc(term, unicode.IsDigit) {
			if seen[term] = true; len(seen) == mostTerms {
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
