package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/frame"
)

// conversation is a connection whose other end has already sent all of its data.
type conversation struct {
	io.Reader
	bytes.Buffer
}

func (c *conversation) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// said returns frames as a worker could send them.
func said(tb testing.TB, frames ...any) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := frame.NewWriter(&out, MaxFrame)
	for i := 0; i < len(frames); i += 2 {
		kind, _ := frames[i].(rune)
		text, _ := frames[i+1].(string)
		if err := w.Write(byte(kind), []byte(text)); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestAskUnderstandsAWorker(t *testing.T) {
	request := &Request{Snippets: []Snippet{{Source: "x := 1"}}}
	c := &conversation{Reader: bytes.NewReader(said(t, 'M', `[[{"at":0,"of":1}]]`, 'D', "program"))}
	built, wants, err := Ask(c, request)
	if err != nil || string(built.Program) != "program" || len(built.Refs) != 1 ||
		built.Refs[0][0] != (Ref{0, 1}) || wants != nil {
		t.Errorf("%+v %q %v", built, wants, err)
	}
	kind, body, err := frame.NewReader(&c.Buffer, MaxFrame).Next()
	var sent Request
	if err != nil || kind != kindBuild || json.Unmarshal(body, &sent) != nil ||
		sent.Snippets[0].Source != "x := 1" {
		t.Errorf("%q %s %v", kind, body, err)
	}
	_, wants, err = Ask(
		&conversation{Reader: bytes.NewReader(said(t, 'N', `{"paths":["fmt"]}`))}, request,
	)
	if err != nil || len(wants) != 1 || wants[0] != "fmt" {
		t.Errorf("%q %v", wants, err)
	}
	var failure *CompileError
	_, _, err = Ask(
		&conversation{
			Reader: bytes.NewReader(
				said(t, 'X', `{"Type":"CompileError","Message":"m","Text":"t"}`),
			),
		},
		request,
	)
	if !errors.As(err, &failure) || failure.Message != "m" {
		t.Errorf("%v", err)
	}
	for name, answer := range map[string][]byte{
		"no refs": said(t, 'D', "program"), "refs of others": said(t, 'M', `[[],[]]`, 'D',
			"program"),
		"rubbish": said(t, 'M', "{"), "another kind": said(t, '?', ""), "an end": nil,
		"half a frame": said(t, 'D', "program")[:4],
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Ask(&conversation{Reader: bytes.NewReader(answer)}, request); err == nil ||
				errors.As(err, &failure) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// FuzzAsk receives anything that a worker could send. Ask must return a valid answer or an error.
func FuzzAsk(f *testing.F) {
	f.Add(said(f, 'M', `[[{"at":0,"of":1}]]`, 'D', "program"))
	f.Add(said(f, 'N', `{"paths":["fmt"]}`))
	f.Add(said(f, 'X', `{"Type":"CompileError"}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		built, wants, err := Ask(
			&conversation{Reader: bytes.NewReader(answer)},
			&Request{Snippets: []Snippet{{Source: "1"}}},
		)
		if err == nil && len(wants) == 0 && built.Program != nil && len(built.Refs) != 1 {
			t.Errorf("%+v", built)
		}
		if len(wants) > maxImports || len(built.Program) > len(answer) {
			t.Errorf("%d packages, %d bytes of %d", len(wants), len(built.Program), len(answer))
		}
	})
}
