package traces

import (
	"strings"
	"testing"
)

func TestALineThatWasNotFinishedIsNoted(t *testing.T) {
	const turn = `{"type":"iteration","iteration":1}`
	for _, c := range []struct{ first, second, want string }{
		{turn, `{"type":"iterat`, "line 2 is left out: it is incomplete"},
		{`"` + strings.Repeat("x", maxLine) + `"`, turn, "line 1 is left out: it is longer than 16 MiB"},
		{
			`{"code_blocks":[` + strings.Repeat("{},", maxValues) + `{}]}`, turn,
			"line 1 is left out: it has more than 200000 objects",
		},
		{`{"response":"` + strings.Repeat(`\"{[`, maxValues) + `"}`, `{"x":]}`, "line 2 is left out: it is incomplete"},
	} {
		l, err := Read(strings.NewReader(c.first + "\n" + c.second))
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Turns) != 1 || len(l.Notes) != 1 || !strings.Contains(l.Notes[0], c.want) {
			t.Errorf("%.40q: %d turns, %q, want %q", c.first, len(l.Turns), l.Notes, c.want)
		}
	}
}

func TestARecordHasABound(t *testing.T) {
	lines := Lines{bytes: maxBytes - 5}
	taken := 0
	notes, err := lines.Each(strings.NewReader("123\n4567\n89\n"), func([]byte) error { taken++; return nil })
	if err != nil || taken != 1 || len(notes) != 1 || !strings.Contains(notes[0], "line 2 and all after it") {
		t.Errorf("%d lines, %q, %v", taken, notes, err)
	}
}
