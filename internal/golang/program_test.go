package golang

import (
	"testing"

	"github.com/rlmhq/rlm/internal/golang/guest/relay"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// FuzzRelayFrames receives frames that the process behind a wall could send in its relay's name.
// All numbers must stay within bounds, and invalid frames must end the program.
func FuzzRelayFrames(f *testing.F) {
	f.Add(byte(relay.KindExit), []byte(`{"code":-1,"signal":9}`))
	f.Add(byte(relay.KindExit), []byte(`{"code":99999999999}`))
	f.Add(byte(relay.KindUsage), []byte(`{"cpu_nanos":-5,"peak_memory":1}`))
	f.Add(byte(relay.KindUsage), []byte(`{"cpu_nanos":5,"peak_memory":9223372036854775807}`))
	f.Add(byte(relay.KindStdout), []byte("text"))
	f.Add(byte('C'), []byte("{}"))

	accounts, err := session.NewAccounts(f.Context(), tiers.Config{})
	if err == nil {
		err = accounts.Begin(f.Context(), tiers.Job{})
	}
	if err != nil {
		f.Fatal(err)
	}
	defer accounts.End(0)

	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		p := &program{limit: 1 << 20, accounts: accounts}
		isGone := p.takeFrame(kind, body)
		if e := p.exit; e != nil && (e.Code < -1 || e.Code > 255 || e.Signal < 0 || e.Signal > 64) {
			t.Errorf("%+v", e)
		}
		if p.Processor() < 0 || p.peak() < 0 || p.peak() > p.limit {
			t.Errorf("%v %d", p.Processor(), p.peak())
		}
		if isGone != (p.exit != nil || p.isRude) {
			t.Errorf("gone: %v, exit %v, rude: %v", isGone, p.exit, p.isRude)
		}
	})
}

// TestCountsOfTheRelayDoNotFall checks that counts do not decrease, even if the relay reports lower
// ones.
func TestCountsOfTheRelayDoNotFall(t *testing.T) {
	p := &program{limit: 1 << 20}
	for _, body := range []string{
		`{"cpu_nanos":5000,"peak_memory":100}`,
		`{"cpu_nanos":1,"peak_memory":200}`,
		`{"cpu_nanos":2,"peak_memory":3}`,
	} {
		if p.takeFrame(relay.KindUsage, []byte(body)) {
			t.Fatalf("%s ends the program", body)
		}
	}
	if p.Processor() != 5000 || p.peak() != 200 {
		t.Errorf("%v and %d bytes, want 5µs and 200 bytes", p.Processor(), p.peak())
	}
}
