package trajectory_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
)

// keep returns lines in the form in which a run log records them for a turn.
func keep(t *testing.T, part int, lines ...trajectory.Kept) []byte {
	t.Helper()
	data, err := json.Marshal(trajectory.KeptTurn{Part: part, Lines: lines})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func line(file, text string) trajectory.Kept {
	return trajectory.Kept{File: file, Line: json.RawMessage(text)}
}

// expect checks the lines of a record, each as "FILE LINE".
func expect(t *testing.T, r *trajectory.Rebuilt, want ...string) {
	t.Helper()
	var got []string
	notes, err := r.Each(func(file string, line []byte) error {
		got = append(got, fmt.Sprintf("%s %s", file, line))
		return nil
	})
	if err != nil || len(notes) > 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, %q, %v, want %q", got, notes, err, want)
	}
}

func TestPromptsAreKeptOnce(t *testing.T) {
	var r trajectory.Rebuilt
	whole := []string{}
	for turn, c := range []struct {
		same int
		more []string
		want string
	}{
		{0, []string{`"a"`, `"b"`}, `["a","b"]`},
		{2, []string{`"\"prompt\":null"`}, `["a","b","\"prompt\":null"]`},
		{1, []string{`{"x":[1]}`}, `["a",{"x":[1]}]`},
		{0, nil, `[]`},
	} {
		k := line("trajectory.jsonl", `{"n":1,"prompt":null,"said":"\"prompt\":null"}`)
		k.Prompt = &trajectory.Prompt{Same: c.same, New: []json.RawMessage{}}
		for _, message := range c.more {
			k.Prompt.New = append(k.Prompt.New, json.RawMessage(message))
		}
		if err := r.Add(turn, keep(t, 0, k)); err != nil {
			t.Fatal(err)
		}
		whole = append(whole, `trajectory.jsonl {"n":1,"prompt":`+c.want+`,"said":"\"prompt\":null"}`)
	}
	expect(t, &r, whole...)

	for _, same := range []int{-1, 1} {
		k := line("sub_0001/trajectory.jsonl", `{"prompt":null}`)
		k.Prompt = &trajectory.Prompt{Same: same}
		if text, err := (&trajectory.Prompts{}).Expand(&k); err == nil {
			t.Errorf("%d messages of nothing become %s", same, text)
		}
	}
}

func TestATurnThatIsDoneAgainTakesThePlaceOfTheFirst(t *testing.T) {
	var r trajectory.Rebuilt
	opens := line("events.jsonl", `"begun"`)
	opens.Opens = true
	for _, c := range []struct {
		turn int
		data []byte
	}{
		{1, keep(t, 0, opens, line("events.jsonl", "1"))},
		{2, keep(t, 0, line("events.jsonl", "2"))},
		{3, keep(t, 0, line("events.jsonl", "3"))},
		{3, keep(t, 1, line("events.jsonl", `"3 goes on"`))},
		{2, keep(t, 0, opens, line("events.jsonl", `"2 again"`))},
	} {
		if err := r.Add(c.turn, c.data); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, &r, `events.jsonl "begun"`, "events.jsonl 1", `events.jsonl "2 again"`)
}

func TestARecordIsWrittenIntoAnEmptyFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	var r trajectory.Rebuilt
	if _, err := r.Write(dir); err == nil {
		t.Error("an empty record was written")
	}
	if err := r.Add(1, keep(t, 0, line("trajectory.jsonl", "1"), line("sub_0001/sub_0002/trajectory.jsonl", "2"),
		line("trajectory.jsonl", "3"))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"trajectory.jsonl": "1\n3\n", "sub_0001/sub_0002/trajectory.jsonl": "2\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		})
	}
	if _, err := r.Write(dir); err == nil {
		t.Error("a record was written over another")
	}
}

func TestARunLogCannotLeaveTheFolder(t *testing.T) {
	for _, file := range []string{
		"", "../trajectory.jsonl", "/trajectory.jsonl", "sub_0001/../../trajectory.jsonl", "sub_1/trajectory.jsonl",
		"sub_0001", "trajectory.jsonl/", "trajectory.jsonl\x00", strings.Repeat("sub_0001/", 40) + "trajectory.jsonl",
	} {
		t.Run(fmt.Sprintf("%.60s", file), func(t *testing.T) {
			var r trajectory.Rebuilt
			if err := r.Add(1, keep(t, 0, line(file, "1"))); err == nil {
				t.Errorf("%q is taken for a file of a record", file)
			}
		})
	}
}

// FuzzRebuilt checks that any run log is refused, or becomes lines of valid files.
func FuzzRebuilt(f *testing.F) {
	f.Add([]byte(`{"lines":[{"file":"events.jsonl","opens":true,"line":{}}],"left_out":1}`),
		[]byte(`{"part":1,"lines":[]}`))
	f.Add([]byte(`{"lines":[{"file":"trajectory.jsonl","prompt":{"new":[1,2]},"line":{"prompt":null}}]}`),
		[]byte(`{"lines":[{"file":"trajectory.jsonl","prompt":{"same":1,"new":["x"]},"line":{"prompt":null}}]}`))
	f.Add([]byte(`{"lines":[{"file":"trajectory.jsonl","prompt":{"same":-1,"new":null},"line":0}]}`), []byte(`{} {}`))
	f.Add([]byte(`{"lines":[{"file":"trajectory.jsonl"}]}`), []byte(`{"lines":[{"file":"events.jsonl","line":null}]}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var r trajectory.Rebuilt
		_, _ = r.Add(1, first), r.Add(2, second)
		_, _ = r.Each(func(_ string, line []byte) error {
			if !json.Valid(line) {
				t.Errorf("a line is no JSON: %q", line)
			}
			return nil
		})
		_ = r.Last()
	})
}
