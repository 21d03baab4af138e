package chat

import (
	"strings"
	"testing"
)

func TestPiecesAreJoinedAsTheServerMeansThem(t *testing.T) {
	const long = "a text that is long enough"
	grow := func(text string, step int) (all []string) {
		for n := step; n < len(text); n += step {
			all = append(all, text[:n])
		}
		return append(all, text)
	}
	for name, c := range map[string]struct {
		pieces    []string
		want      string
		isUnclear bool
	}{
		"nothing":                        {nil, "", false},
		"one piece":                      {[]string{"", "Rome", ""}, "Rome", false},
		"new parts":                      {[]string{"Ro", "me"}, "Rome", false},
		"everything so far":              {grow(long, 5), long, false},
		"everything so far, again":       {append(grow(long, 5), long), long, false},
		"too short to be sure":           {[]string{"4", "42"}, "42", true},
		"a line of one character":        {grow(strings.Repeat("=", 40), 5), strings.Repeat("=", 40), true},
		"the whole once more":            {[]string{"a text ", "that is ", "long ", "enough", long}, long, false},
		"the whole once more, but short": {[]string{"Ro", "me", "Rome"}, "Rome", true},
		"the whole once more without its end": {
			[]string{"a text ", "that is ", "long ", "enough\n", long}, "a text that is long enough\n" + long, true,
		},
		"the same piece twice":     {[]string{"ha", "ha"}, "ha", true},
		"a beginning that repeats": {[]string{"ha", "ha", "!"}, "haha!", false},
		"a chain that breaks":      {[]string{"a", "ab", " c"}, "aab c", false},
		"numbers":                  {[]string{"1 ", "1 2 ", "3 "}, "1 1 2 3 ", false},
	} {
		t.Run(name, func(t *testing.T) {
			var p Pieces
			settled := ""
			for _, piece := range c.pieces {
				p.Add(piece)
				if !strings.HasPrefix(p.Settled(), settled) && !c.isUnclear {
					t.Errorf("%q is taken back for %q", settled, p.Settled())
				}
				settled = p.Settled()
			}
			if p.Text() != c.want || p.IsUnclear() != c.isUnclear {
				t.Errorf("got %q, unclear: %v", p.Text(), p.IsUnclear())
			}
		})
	}
}

func TestAMessageBesideThePiecesDecides(t *testing.T) {
	for name, c := range map[string]struct {
		steps     [][2]string // a piece, and the message sent with it
		want      string
		isUnclear bool
	}{
		"the text so far":           {[][2]string{{"Ro", "Ro"}, {"me", "Rome"}, {"", "Rome"}}, "Rome", false},
		"the same piece":            {[][2]string{{"Ro", "Ro"}, {"me", "me"}}, "Rome", false},
		"both are everything":       {[][2]string{{"4", "4"}, {"42", "42"}}, "42", false},
		"one repeats, one does not": {[][2]string{{"ha", "ha"}, {"ha", "haha"}}, "haha", false},
		"the text without its end":  {[][2]string{{"Ro", ""}, {"me\n", "Rome"}}, "Rome\n", false},
		"another text":              {[][2]string{{"Ro", "Ro"}, {"me", "Paris"}}, "Rome", true},
	} {
		t.Run(name, func(t *testing.T) {
			var p Pieces
			for _, step := range c.steps {
				p.Add(step[0])
				p.Compare(step[1])
			}
			if p.Text() != c.want || p.IsUnclear() != c.isUnclear {
				t.Errorf("got %q, unclear: %v", p.Text(), p.IsUnclear())
			}
		})
	}
}

func FuzzPieces(f *testing.F) {
	f.Add("a|ab|abc", "|ab|abc")
	f.Fuzz(func(t *testing.T, pieces, messages string) {
		var p Pieces
		for _, piece := range strings.Split(pieces, "|") {
			p.Add(piece)
		}
		for _, message := range strings.Split(messages, "|") {
			p.Compare(message)
		}
		if whole := strings.ReplaceAll(pieces, "|", ""); !strings.HasSuffix(whole, p.Text()) &&
			!strings.HasPrefix(whole, p.Text()) {
			t.Errorf("%q gives %q", pieces, p.Text())
		}
	})
}
