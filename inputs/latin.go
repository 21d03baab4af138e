package inputs

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// latinEncodings contains the encodings of Latin and Arabic script with one byte per character, and
// how much less likely a text in them is than one in the first encoding. An earlier encoding wins
// if two fit equally well.
var latinEncodings = []struct {
	encoding.Encoding
	rarity float64
}{
	{charmap.Windows1252, 0},
	{charmap.ISO8859_15, 1},
	{charmap.Windows1250, 1},
	{charmap.ISO8859_2, 1},
	{charmap.Windows1254, 1},
	{charmap.Windows1257, 1},
	{charmap.ISO8859_13, 1},
	{charmap.Windows1256, 1},
	{charmap.ISO8859_6, 1},
	{charmap.CodePage850, 3},
	{charmap.CodePage852, 3},
	{charmap.CodePage865, 3},
	{charmap.CodePage437, 3},
	{charmap.Macintosh, 3},
}

// language describes the texts of a language: its letters that are not ASCII, the frequent ones
// before the space, and some of its most frequent words.
type language struct {
	letters string
	words   string
}

var languages = []language{
	{"é ñïö", "the and of to in is that for with this was not are you it he she"},
	{"äöüß é", "der die das und ist nicht ein eine mit für wir den zu auf von im in"},
	{"åäö é", "och att det som en är på inte jag med för har av till den vi i"},
	{"åøæ éò", "og det er en som på til ikke av at jeg har med vi de den for i"},
	{"äö å", "ja on ei se että hän oli ovat mutta kun niin tämä minä joka"},
	{"áðíéóúýþæö", "og að er ekki sem við það til hann hún með en var um ég á í"},
	{"éèàêç ùâîôûëïœ", "le la les et est une un des que dans pour pas qui du nous il en sur au"},
	{"áéíóñ úü¿¡", "el la los las de que y en un una por con para es se del no su"},
	{"ãáéçíó õúâêôà", "o a os de que e não um uma para com em do da é as se por no na"},
	{"àèéìòù", "il la di che e un una per non con sono è del i le in si anche"},
	{"éëï èö", "de het een en van is niet dat op te zijn met voor er maar"},
	{"óąęłż śćńź", "się nie na jest to że w i z do jak ale co po dla od czy był"},
	{"áíěéšč řžýůúóťďň", "se na je že to v a s do jak ale by pro tak jsem který byl jsou"},
	{"áíéšč ľžýúťóďňôäĺŕ", "sa na je že to v a s do ako ale by pre tak som ktorý bol sú nie"},
	{"áéö óőíüúű", "a az és hogy nem is egy van ez de meg csak volt mint már el"},
	{"ăîâşţ șț", "de și şi în a la cu nu este un o pe că să din care pentru mai"},
	{"šžčć đ", "je se na i u da su za od ne koji što sam bio v in ki z ni pa"},
	{"ıüşğçö İâ", "ve bir bu için çok da de ne var ile daha olarak ama gibi en"},
	{"äõöü šž", "ja on ei ta see et oli ma kui aga mis ka oma"},
	{"āīēšū ļņžčģķ", "un ir ka ar no uz par nav bija kas viņš es to lai arī"},
	{"ėšžųįū ąčę", "ir kad yra į su iš tai buvo ne jis kaip bet apie jo"},
	{"ëç", "të dhe në një është për me që nga ka se do si"},
	{"اليمنوترب هدسفعكقحجشةطىصخضأذثزءإغآئؤظلا،؟", "في من على هذا أن إلى"},
}

// These are the scores of the parts of a text.
const (
	frequentLetter = 3.0
	rareLetter     = 2.0
	knownWord      = 1.5
	mostWords      = 12 // that count
	usualSign      = 0.5
	unusualSign    = -2.0
	foreignLetter  = -4.0
	lonelyCapital  = -2.0
	misplaced      = -6.0 // a sign in a word, a letter next to a digit, a capital after a small letter
	impossible     = -10.0
)

// guessLatin returns the encoding in which a sample reads most like a text in one of the languages,
// and the score for each byte that is not ASCII.
func guessLatin(sample []byte) (best encoding.Encoding, score float64) {
	const most, before = 4 << 10, 200 // more makes no difference, and costs time
	first := max(0, bytes.IndexFunc(sample, func(c rune) bool { return c >= 0x80 }))
	sample = sample[max(0, first-before):]
	sample = sample[:min(len(sample), most)]

	high := 0
	for _, c := range sample {
		if c >= 0x80 {
			high++
		}
	}
	if high == 0 {
		return nil, 0
	}

	for _, e := range latinEncodings {
		text, err := e.NewDecoder().Bytes(sample)
		if err != nil {
			continue
		}
		got := (scoreLatin([]rune(string(text))) - e.rarity) / float64(high)
		if best == nil || got > score {
			best, score = e.Encoding, got
		}
	}
	return best, score
}

// scoreLatin scores a text in the language that fits best.
func scoreLatin(text []rune) float64 {
	shape, letters := scoreShape(text)
	words := map[string]int{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(string(text)), func(c rune) bool {
		return !unicode.IsLetter(c)
	}) {
		words[word]++
	}

	best := 0.0
	for i, l := range languages {
		score := 0.0
		for c, n := range letters {
			score += float64(n) * l.score(c)
		}
		known := 0
		for word := range strings.FieldsSeq(l.words) {
			known += words[word]
		}
		score += knownWord * float64(min(known, mostWords))
		if i == 0 || score > best {
			best = score
		}
	}
	return shape + best
}

func (l language) score(c rune) float64 {
	frequent, rare, _ := strings.Cut(l.letters, " ")
	switch {
	case strings.ContainsRune(frequent, c):
		return frequentLetter
	case strings.ContainsRune(rare, c):
		return rareLetter
	}
	return foreignLetter
}

// usualSigns occur in texts of many languages.
var usualSigns = []rune("“”„‚‘’–—…€°§«»©®™¿¡½¼¾·•\u00A0×±²³µ£،؟")

// scoreShape scores the properties that do not depend on the language: the positions of signs and
// capitals. It counts the letters that are not ASCII, in lower case.
func scoreShape(text []rune) (score float64, letters map[rune]int) {
	letters = map[rune]int{}
	at := func(i int) rune {
		if i < 0 || i >= len(text) {
			return ' '
		}
		return text[i]
	}

	for i, c := range text {
		if c < 0x80 {
			continue
		}
		before, after := at(i-1), at(i+1)
		isWithin := unicode.IsLetter(before) && unicode.IsLetter(after)
		isLonely := !unicode.IsLetter(before) && !unicode.IsLetter(after)
		switch {
		case !isTextual(c):
			score += impossible
		case c == 'µ' && !unicode.IsLetter(before) && strings.ContainsRune("mgslAVFWM", after):
			score += frequentLetter // of a unit
		case !unicode.IsLetter(c) && isWithin && c != '’' && c != '–' && c != '·' && c != '\u00AD':
			score += misplaced
		case c == 'ª' || c == 'º':
			score += unusualSign
		case !unicode.IsLetter(c) && slices.Contains(usualSigns, c):
			score += usualSign
		case !unicode.IsLetter(c):
			score += unusualSign
		case unicode.IsDigit(before), unicode.IsDigit(after):
			score += misplaced
		case isLonely && !unicode.IsLower(c):
			score += lonelyCapital
		case isLonely: // it is a word by itself
		case unicode.IsUpper(c) && unicode.IsLower(before), unicode.IsLower(c) && c != 'ß' &&
			unicode.IsUpper(before) && unicode.IsUpper(after):
			score += misplaced
			letters[unicode.ToLower(c)]++
		default:
			if unicode.IsUpper(c) && !unicode.IsLetter(before) {
				score-- // most words begin with a lower-case ASCII letter
			}
			letters[unicode.ToLower(c)]++
		}
	}
	return score, letters
}

// isScattered reports whether the bytes that are not ASCII are alone or in pairs, as in Latin
// script.
func isScattered(sample []byte) bool {
	run, inRuns, all := 0, 0, 0
	for _, c := range append(slices.Clone(sample), ' ') {
		if c >= 0x80 {
			run++
			continue
		}
		all += run
		if run > 2 {
			inRuns += run
		}
		run = 0
	}
	return inRuns*5 < all*2
}
