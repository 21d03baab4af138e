package skillbook_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/skillbook"
)

// The original, ace-framework 0.7.1 with python-toon, wrote the files in testdata.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parse(t *testing.T, text string) *skillbook.Book {
	t.Helper()
	b, err := skillbook.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encode(t *testing.T, b *skillbook.Book) string {
	t.Helper()
	data, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheOriginalsBooksAreReadRenderedAndWritten(t *testing.T) {
	text := read(t, "origin.json")
	if got := encode(t, parse(t, text)); got != text+"\n" {
		t.Errorf("it is written as\n%s", got)
	}
	got, err := skillbook.Render(text)
	if want := read(t, "origin.toon"); err != nil || got != want {
		t.Errorf("%v: it is rendered as\n%q, want\n%q", err, got, want)
	}
}

func TestAnEmptyBook(t *testing.T) {
	for _, text := range []string{`{"skills": {}}`, `{"skills": {}, "sections": {}, "next_id": 0}`} {
		t.Run(text, func(t *testing.T) {
			b := parse(t, text)
			if got := b.Prompt(); got != "skills: []" || b.Len() != 0 {
				t.Errorf("%s: %q", text, got)
			}
		})
	}
}

func TestOtherTextsStayAsTheyAre(t *testing.T) {
	for _, text := range []string{"", "## refunds\n[a-1] Be exact.", "{not JSON", `{"a": 1}`, `{"skills": ["x"]}`} {
		t.Run(text, func(t *testing.T) {
			if got, err := skillbook.Render(text); err != nil || got != text {
				t.Errorf("%q becomes %q, %v", text, got, err)
			}
		})
	}
}

func TestLearnedSkillsAreAdded(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	b := parse(t, read(t, "origin.json"))
	for _, c := range []struct {
		id, tag string
		want    bool
	}{
		{"lookup-00002", "helpful", true},
		{"lookup-00002", "harmful", true},
		{"lookup-00002", "great", false},
		{"nowhere-1", "helpful", false},
	} {
		t.Run(c.id, func(t *testing.T) {
			if got := b.Tag(c.id, c.tag, now); got != c.want {
				t.Errorf("%s %s: %v", c.id, c.tag, got)
			}
		})
	}

	before := b.Len()
	lesson := skillbook.Lesson{
		Section: "Refunds of orders", Content: "Refund in <full>.", Evidence: "step 4",
		Justification: "It was too little.", Question: "refund order 7",
	}
	for i, want := range []bool{true, false} {
		id, added, err := b.Learn(lesson, now)
		if err != nil || added != want || id != "refunds-00016" {
			t.Errorf("time %d: %s, %v, %v", i, id, added, err)
		}
		lesson.Content = "  refund in  <FULL>."
	}
	if b.Len() != before+1 {
		t.Errorf("%d skills", b.Len())
	}

	text := encode(t, b)
	for _, want := range []string{
		`"content": "Refund in <full>."`, `"justification": "It was too little."`,
		`"evidence": "step 4"`, `"sample_question": "refund order 7"`,
		`"created_at": "2026-03-04T05:06:07.000008+00:00"`, `"next_id": 16`,
		"\"Refunds of orders\": [\n      \"refunds-00016\"\n    ]",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
	if again := encode(t, parse(t, text)); again != text {
		t.Errorf("it is not stable:\n%s", again)
	}
}

func TestAnIDIsNeverGivenTwice(t *testing.T) {
	b := parse(t, `{"skills": {"a-00001": {"section": "a", "content": "x"}}, "next_id": 0}`)
	id, added, err := b.Learn(skillbook.Lesson{Section: " ", Content: "y"}, time.Now())
	if err != nil || !added || id != "general-00001" {
		t.Errorf("%s, %v, %v", id, added, err)
	}
	id, _, err = b.Learn(skillbook.Lesson{Section: "a", Content: "z"}, time.Now())
	if err != nil || id != "a-00002" {
		t.Errorf("%s, %v", id, err)
	}
}

func TestBrokenBooksAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                      "it must be an object",
		`{"skills": 1}`:                           "skills: it must be an object",
		`{"skills": {"a": 1}}`:                    `skills: "a": must be a`,
		`{"skills": {"a": {"helpful": "x"}}}`:     `"a": helpful must be a int64, is a string`,
		`{"skills": {"a": {"id": "b"}}}`:          `"a" has the id "b"`,
		`{"skills": {"a": {}, "a": {}}}`:          `"a" appears twice`,
		`{"skills": {"a": {"status": "old"}}}`:    `status "old": use active or invalid`,
		`{"skills": {}, "sections": {"s": 1}}`:    "sections.s: must be a",
		`{"skills": {}, "next_id": "x"}`:          "next_id: must be a int64, is a string",
		`{"skills": {}} {}`:                       "text behind",
		`{"skills": {`:                            "EOF",
		strings.Repeat(" ", skillbook.MaxBytes+1): "more than 4194304",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if _, err := skillbook.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.60s: %v, want %s", text, err, want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"skills": {"a-1": {"section": "a", "content": "x", "embedding": [1]}}, "sections": {"a": ["a-1"]}}`)
	f.Add(`{"skills": {"a": {"sources": {"b": []}}}, "similarity_decisions": 1}`)
	f.Fuzz(func(t *testing.T, text string) {
		b, err := skillbook.Parse(text)
		if err != nil {
			return
		}
		first, err := b.Encode()
		if err != nil {
			return
		}
		b, err = skillbook.Parse(string(first))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, first)
		}
		if again, err := b.Encode(); err != nil || !bytes.Equal(again, first) {
			t.Fatalf("%v: it changes:\n%s\n%s", err, first, again)
		}
		if strings.Count(b.Prompt(), "\n") != b.Len() {
			t.Fatalf("a skill has more than a line: %q", b.Prompt())
		}
	})
}
