package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// opened returns the quirks of a server that are stored in a folder.
func opened(folder, server string) *quirks {
	var q quirks
	q.open(folder, server)
	return &q
}

func TestTraitsAreKeptForTheNextProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "servers")
	first := opened(folder, "https://a/v1")
	lower := change{apply: func(t *traits) { t.lower(4096) }}
	first.keep("m", []change{drops("seed"), lower})
	opened(folder, "https://a/v1").keep("n", []change{drops(streamPart)})
	first.keep("m", []change{drops("temperature")})

	again := opened(folder, "https://a/v1")
	m, n := again.of("m"), again.of("n")
	if m.MaxTokens != 4096 || !m.lacks("seed") || !m.lacks("temperature") || !n.lacks(streamPart) {
		t.Errorf("got %+v and %+v", m, n)
	}
	if other := opened(folder, "https://b/v1").of("m"); !reflect.DeepEqual(other, traits{}) {
		t.Errorf("another server has %+v", other)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("got %d files, %v", len(entries), err)
	}
}

func TestEveryPartThatCanBeDroppedIsKept(t *testing.T) {
	folder := t.TempDir()
	all := []string{schemaPart, streamPart, streamOptionsPart, systemPart, toolsPart}
	for _, p := range parts {
		all = append(all, p.name)
	}
	for _, part := range all {
		opened(folder, "s").keep("m", []change{drops(part)})
	}

	if known := opened(folder, "s").of("m"); len(known.Without) != len(all) {
		t.Errorf("of %q, only %q are kept", all, known.Without)
	}
}

func TestAValueThatIsOutOfRangeIsNotRemembered(t *testing.T) {
	hot := 1.5
	r := Request{Request: llm.Request{Sampling: llm.Sampling{Temperature: &hot}}, Limit: both[0]}
	for message, isKept := range map[string]bool{
		"temperature: range: 0..1, must be less than or equal to 1":                               false,
		"temperature must be between 0 and 1":                                                     false,
		"temperature: Extra inputs are not permitted":                                             true,
		"Unsupported value: 'temperature' does not support 1.5. Only 1 is supported by the model": true,
		"`temperature` and `top_p` cannot both be specified for this model":                       true,
	} {
		c := learn(r, false, both, &llm.Error{Kind: kind.ErrBadRequest, Status: 400, Message: message})
		if c.apply == nil {
			t.Fatalf("%q teaches nothing", message)
		}
		var q quirks
		q.keep("m", []change{c})
		if known := q.of("m"); known.lacks("temperature") != isKept {
			t.Errorf("%q: got %+v", message, known)
		}
	}
}

func TestConfirmedDoubtsAreRemembered(t *testing.T) {
	var q quirks
	doubt := drops(streamPart)
	doubt.isDoubtful = true
	q.keep("m", []change{doubt})
	if known := q.of("m"); known.lacks(streamPart) {
		t.Error("one broken stream is enough")
	}
	q.keep("m", []change{doubt})
	if known := q.of("m"); !known.lacks(streamPart) {
		t.Error("two are not")
	}
}

// TestAGuessEndsWithTheProcess checks that a change without a stated reason is not stored, because
// the server may only have had a temporary problem.
func TestAGuessEndsWithTheProcess(t *testing.T) {
	folder := t.TempDir()
	r := Request{Request: llm.Request{}, Limit: both[0]}
	for name, failure := range map[string]*llm.Error{
		"a vague refusal":  {Kind: kind.ErrBadRequest, Status: 400, Message: "bad gateway"},
		"a reply in ruins": {Kind: kind.ErrMalformed},
	} {
		model := name
		first := opened(folder, "s")
		first.keep(model, []change{learn(r, true, both, failure), drops("seed")})
		if known := first.of(model); !known.lacks(streamPart) || !known.lacks("seed") {
			t.Errorf("after %s this process knows %+v", name, known)
		}
		if known := opened(folder, "s").of(model); known.lacks(streamPart) || !known.lacks("seed") {
			t.Errorf("after %s the next process knows %+v", name, known)
		}
	}
}

// TestAFullFileCanBeRead checks that a file with as many traits as possible can be read.
func TestAFullFileCanBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "full.json")
	whole := traits{Limit: both[0], MaxTokens: 1 << 28, Learned: time.Now().UTC().Format(time.DateOnly)}
	for _, p := range parts {
		whole.drop(p.name)
	}
	for _, part := range []string{streamPart, streamOptionsPart, systemPart, toolsPart} {
		whole.drop(part)
	}
	for i := range maxSchemas {
		whole.dropSchema(fmt.Sprintf("%032x", i))
	}

	kept := keptFile{keptVersion, "s", map[string]traits{}}
	for i := range maxModels {
		kept.Models[fmt.Sprintf("%0*d", maxName, i)] = whole
	}
	text, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readTraits(path, "s"); err != nil || len(got) != maxModels {
		t.Errorf("of %d bytes, %d models are read: %v", len(text), len(got), err)
	}
}

func TestAServerThatRefusesTwoSchemasAndTakesNoneRefusesAll(t *testing.T) {
	var q quirks
	for _, hash := range []string{"a", "b"} {
		q.keep("m", []change{{apply: func(t *traits) { t.dropSchema(hash) }}})
	}
	if known := q.of("m"); !known.refusesSchema("c") {
		t.Errorf("got %+v", known)
	}
}

func TestFilesThatMakeNoSenseAreLearnedAnew(t *testing.T) {
	today := time.Now().UTC().Format(time.DateOnly)
	old := time.Now().Add(-keptFor - 48*time.Hour).UTC().Format(time.DateOnly)
	entry := func(day string) string {
		return `{"version":1,"server":"s","models":{"m":{"without":["seed"],"learned":"` + day + `"}}}`
	}
	for name, c := range map[string]struct {
		text  string
		known bool
	}{
		"whole":             {entry(today), true},
		"old":               {entry(old), false},
		"no day":            {entry(""), false},
		"a later version":   {strings.Replace(entry(today), "1", "2", 1), false},
		"another server":    {strings.Replace(entry(today), `"s"`, `"x"`, 1), false},
		"an unknown member": {strings.Replace(entry(today), `"without"`, `"sudo":1,"without"`, 1), false},
		"an unknown part":   {strings.Replace(entry(today), `"seed"`, `"messages"`, 1), false},
		"a wrong limit":     {strings.Replace(entry(today), `"without"`, `"max_tokens":-1,"without"`, 1), false},
		"a wrong hash":      {strings.Replace(entry(today), `"without"`, `"schemas":["x"],"without"`, 1), false},
		"more after it":     {entry(today) + "{}", false},
		"half":              {entry(today)[:30], false},
		"too large":         {entry(today) + strings.Repeat(" ", maxKept), false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(keptName(folder, "s"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			q := opened(folder, "s")
			if known := q.of("m"); known.lacks("seed") != c.known {
				t.Errorf("got %+v", known)
			}
			q.keep("m", []change{drops("top_p")})
			if known := opened(folder, "s").of("m"); !known.lacks("top_p") {
				t.Errorf("it is not replaced: %+v", known)
			}
		})
	}
}

func TestKeptTraitsAreBounded(t *testing.T) {
	folder := t.TempDir()
	for i := range maxServers + 3 {
		q := opened(folder, fmt.Sprint(i))
		q.keep("m", []change{drops("seed")})
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > maxServers {
		t.Errorf("got %d files, %v", len(entries), err)
	}

	var q quirks
	for i := range 2*maxModels + 1 {
		q.keep(fmt.Sprint(i), []change{drops("seed")})
		if len(q.models) > maxModels {
			t.Fatalf("%d models are remembered", len(q.models))
		}
	}
	var known traits
	for i := range maxSchemas + 1 {
		known.dropSchema(fmt.Sprint(i))
	}
	if len(known.Schemas) != 0 || !known.lacks(schemaPart) {
		t.Errorf("got %+v", known)
	}
}

func FuzzDecodeKept(f *testing.F) {
	f.Add(`{"version":1,"server":"s","models":{"m":{"limit":"max_tokens","max_tokens":4096,"learned":"2026-01-02"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		kept, err := decodeKept([]byte(text))
		if err != nil {
			return
		}
		again, err := json.Marshal(kept)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeKept(again); err != nil {
			t.Errorf("%s is written but not read: %v", again, err)
		}
	})
}
