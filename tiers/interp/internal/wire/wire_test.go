package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

func TestAFrameComesBack(t *testing.T) {
	var b bytes.Buffer
	want := gorun.Call{ID: 7, Function: "ask"}
	if err := wire.WriteJSON(&b, gorun.KindCall, want); err != nil {
		t.Fatal(err)
	}
	kind, body, err := wire.Read(&b, wire.MaxFromWorker)
	var got gorun.Call
	if err != nil || kind != gorun.KindCall || gorun.Decode(body, &got) != nil || got.ID != 7 || got.Function != "ask" {
		t.Errorf("%c %s %v %+v", kind, body, err, got)
	}
	id, value, failure, err := gorun.ParseAnswer(gorun.AppendAnswer(9, []byte("v"), nil))
	if id != 9 || string(value) != "v" || failure != nil || err != nil {
		t.Error(id, value, failure, err)
	}
	if _, _, failure, err = gorun.ParseAnswer(gorun.AppendAnswer(9, nil, errors.New("no"))); failure == nil || failure.Error() != "no" || err != nil {
		t.Error(failure, err)
	}
}

func TestDecodingIsStrict(t *testing.T) {
	for _, text := range []string{`{"id":1,"evil":2}`, `{"id":1} {}`, `[]`, `{"id":-1}`, `{"id":1.5}`, ``, `{"function":3}`} {
		if gorun.Decode([]byte(text), &gorun.Call{}) == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// FuzzFromWorker reads what a hostile worker may send: frames are bounded, and
// no message makes the decoder panic.
func FuzzFromWorker(f *testing.F) {
	for _, kind := range []wire.Kind{wire.KindOutput, gorun.KindCall, gorun.KindText, gorun.KindFinal, wire.KindEnd} {
		var b bytes.Buffer
		_ = wire.Write(&b, kind, []byte(`{"id":1,"value":[1],"verdict":"ok"}`)) // a buffer takes all
		f.Add(b.Bytes())
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 'O'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			kind, body, err := wire.Read(r, wire.MaxFromWorker)
			if err != nil {
				return
			}
			if len(body) > len(data) {
				t.Fatal("a frame is longer than what was sent")
			}
			switch kind {
			case wire.KindOutput:
				_, _, _ = wire.ParseOutput(body)
			case gorun.KindCall:
				_ = gorun.Decode(body, &gorun.Call{})
			case gorun.KindText:
				_ = gorun.Decode(body, &gorun.Question{})
			case gorun.KindFinal:
				_ = gorun.Decode(body, &gorun.Final{})
			case wire.KindEnd:
				_ = gorun.Decode(body, &wire.End{})
			default:
				_, _, _, _ = gorun.ParseAnswer(body)
			}
		}
	})
}
