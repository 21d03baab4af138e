package docker

import (
	"bytes"
	"testing"

	"github.com/rlmhq/rlm/internal/gorelay"
)

// FuzzGoFrames takes what the container of a program could send: each frame is
// understood, handed on or the end, and no number in it is out of bounds.
func FuzzGoFrames(f *testing.F) {
	f.Add(byte(gorelay.KindExit), []byte(`{"code":-1,"signal":9}`))
	f.Add(byte(gorelay.KindExit), []byte(`{"code":99999999999}`))
	f.Add(byte(gorelay.KindUsage), []byte(`{"cpu_nanos":-5,"peak_memory":1}`))
	f.Add(byte(gorelay.KindStdout), []byte("text"))
	f.Add(byte('C'), []byte("{}"))
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		p := &goProgram{}
		p.limit = 1 << 20
		got, more := p.take(kind, body)
		if got != nil && (!more || got.Stream == 0 && got.Kind != kind || got.Stream > 2 || !bytes.Equal(got.Body, body)) {
			t.Errorf("%q %q became %+v", kind, body, got)
		}
		if p.exit != nil && (p.broke || p.exit.Code < -1 || p.exit.Code > 255 || p.exit.Signal < 0 || p.exit.Signal > 64) {
			t.Errorf("%+v", p.exit)
		}
		if u := p.Usage(); u.CPUNanos < 0 || u.PeakMemory < 0 || u.PeakMemory > p.limit {
			t.Errorf("%+v", u)
		}
		if got == nil && !more && p.exit == nil && !p.broke {
			t.Error("it ends for no reason")
		}
	})
}
