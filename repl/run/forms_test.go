package run_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
)

// form is a reply of testdata/forms.txt.
type form struct {
	name, text string
	wanted     []string // the right answers; "told" means another turn
	seen       bool     // the model has seen the output of code before
	atEnd      bool     // the form is the reply of the last turn
	open       string   // why the loop does not handle the form correctly yet
}

// oddCharacters are the characters that the file writes as words.
var oddCharacters = strings.NewReplacer(
	"{CR}", "\r", "{BOM}", "\ufeff", "{ZERO}", "\u200b", "{NBSP}", "\u00a0", "{SPACE}", " ", "{NUL}", "\x00",
)

// readForms reads the context and the replies of the file.
func readForms(t *testing.T) (input, look string, all []form) {
	t.Helper()
	data, err := os.ReadFile("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}

	for _, section := range strings.Split(string(data), "\n== ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		f := form{name: title, text: oddCharacters.Replace(body)}
		for strings.HasPrefix(f.text, ": ") {
			line, rest, _ := strings.Cut(f.text, "\n")
			f.text = rest
			switch word, value, _ := strings.Cut(line[2:], " "); word {
			case "want":
				f.wanted = append(f.wanted, strings.ReplaceAll(value, "{LINE}", "\n"))
			case "told":
				f.wanted = append(f.wanted, word)
			case "seen":
				f.seen = true
			case "last":
				f.atEnd = true
			case "open":
				f.open = value
			default:
				t.Fatalf("%s: %q", title, line)
			}
		}
		switch title {
		case "context":
			input = f.text
		case "look":
			look = f.text
		default:
			all = append(all, f)
		}
	}
	return input, look, all
}

// play returns the answer to a form, or "told" if the loop asked the model again.
func (f *form) play(t *testing.T, input, look string) (answer string) {
	t.Helper()
	replies := []string{f.text, code("FINAL('" + askedAgain + "')")}
	if f.seen {
		replies = append([]string{look}, replies...)
	}
	turn := 0
	m := &models{byPurpose: func(llm.Request) (llm.Response, bool) {
		turn++
		return llm.Response{Text: replies[min(turn, len(replies))-1]}, true
	}}
	cfg := config(m, text(input))
	if f.atEnd {
		cfg.MaxTurns = 1
	}

	outcome, err := run.Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("the run failed: %v for %q", err, f.text)
	}
	isAnswer := outcome.Status == ledger.StatusAnswered || outcome.Status == ledger.StatusSynthesised
	if !isAnswer || outcome.Text() == askedAgain {
		return "told"
	}
	return outcome.Text()
}

// TestForms plays the replies of testdata/forms.txt: it checks that no answer is invented or
// changed, and that at most one of twenty replies with a clear meaning costs another turn.
func TestForms(t *testing.T) {
	skip.UnderRace(t)
	input, look, all := readForms(t)
	if len(all) < 300 {
		t.Errorf("the file has %d replies", len(all))
	}

	unmistakable, lost := 0, 0
	for _, f := range all {
		t.Run(f.name, func(t *testing.T) {
			got := f.play(t, input, look)
			isRight := slices.Contains(f.wanted, got)
			mayAsk := slices.Contains(f.wanted, "told")
			if !mayAsk {
				unmistakable++
			}
			switch {
			case isRight && f.open != "":
				t.Errorf("it is right now: remove its line open")
			case isRight, f.open != "":
			case got == "told":
				lost++
				t.Logf("lost: it asked again, want %q for %q", f.wanted, f.text)
			default:
				t.Errorf("wrong: the answer is %q, want %q for %q", got, f.wanted, f.text)
			}
		})
	}
	if lost*20 > unmistakable {
		t.Errorf("%d of %d clear replies cost another turn", lost, unmistakable)
	}
	t.Logf("%d replies, %d with one clear meaning, %d of them cost another turn",
		len(all), unmistakable, lost)
}
