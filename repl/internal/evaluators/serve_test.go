package evaluators

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/frame"
)

// pipe is a worker's connection in a test.
type pipe struct {
	io.Reader
	io.Writer
}

func TestAWorkerAnswersOneRequest(t *testing.T) {
	var in, out bytes.Buffer
	body, err := json.Marshal(request{Task: taskRender, Value: "{{ 1 + 1 }}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := frame.NewWriter(&in, maxRequest).Write(kindRequest, body); err != nil {
		t.Fatal(err)
	}
	if code := serve(pipe{&in, &out}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	frames := frame.NewReader(&out, maxReply)
	if kind, _, err := frames.Next(); kind != kindReady || err != nil {
		t.Fatalf("%c, %v", kind, err)
	}
	kind, answer, err := frames.Next()
	if kind != kindReply || err != nil {
		t.Fatalf("%c, %v", kind, err)
	}
	r, err := parseReply(answer)
	if err != nil || string(r.Value) != "2" {
		t.Errorf("got %s, %v", r.Value, err)
	}
	if serve(pipe{bytes.NewReader([]byte("rubbish")), io.Discard}) != 1 {
		t.Error("rubbish is answered")
	}
}

func TestAHostileReplyIsRefused(t *testing.T) {
	for _, body := range []string{
		``, `{}x`, `{"kind": "a secret way"}`,
		`{"kind": "the limit of time"}`, `{"more": 1}`, `[]`,
	} {
		t.Run(body, func(t *testing.T) {
			_, err := parseReply([]byte(body))
			var broken *BrokenError
			if !errors.As(err, &broken) {
				t.Errorf("%s: %v", body, err)
			}
		})
	}
}

// FuzzReply passes hostile replies of a worker to the host's decoder.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"value": {"a": [1, 2]}, "kind": "", "message": "",
		"mistakes": [{"index": 1, "line": 2, "message": "m"}]}`))
	f.Add([]byte(`{"kind": "an error", "message": "x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parseReply(body)
		var ended *ProgramError
		var broken *BrokenError
		if err != nil && !errors.As(err, &ended) && !errors.As(err, &broken) {
			t.Errorf("an error of another type: %v", err)
		}
		if _, err := decodeValue(r.Value); err == nil && len(r.Value) > 0 && !json.Valid(r.Value) {
			t.Errorf("%q is taken for a value", r.Value)
		}
	})
}

// growing matches templates that may use more memory than a test should.
var growing = regexp.MustCompile(
	`[*~]|\d{3}|range|lipsum|replace|indent|cent|format|batch|slice|macro|recursive`,
)

// FuzzTemplate renders templates as the worker does. It checks that each yields a value or an error
// that describes how the template ended.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{{ state.x | tojson }}", "{% for e in state.l %}{{ e }}{% " +
		"endfor %}", "{{ {'a': 1} }}", "{{ 1 }} {{", "{%", "{# #}", "{{ (1)|_rlm_keep }}"} {
		f.Add(text)
	}
	variables := map[string]any{
		"state": map[string]any{"x": "t", "l": []any{json.Number("1"), nil, true}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 || growing.MatchString(text) {
			t.Skip("what grows is for the jail to bound")
		}
		value, err := renderAll(text, variables)
		var ended *ProgramError
		if err != nil && !errors.As(err, &ended) {
			t.Errorf("an error of another type: %v", err)
		}
		if _, failed := json.Marshal(value); err == nil && failed != nil {
			t.Errorf("the value is no JSON: %v", failed)
		}
		for _, m := range checkTemplates([]string{text}) {
			if m.Index != 0 || m.Line < 1 {
				t.Errorf("a mistake at %+v", m)
			}
		}
	})
}
