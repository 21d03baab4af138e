package gohost

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
)

type noProcess struct{}

func (noProcess) Usage() jail.Usage { return jail.Usage{} }

func TestArgumentsOfCallsUnderWayAreBounded(t *testing.T) {
	release := make(chan struct{})
	s := NewSession(tiers.Config{
		Functions: []tiers.Function{{Name: "slow"}},
		Limits:    tiers.Limits{Memory: 1000},
		Host: tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
			<-release
			return tiers.Value("1"), nil
		}),
	})
	type reply struct {
		id  uint64
		err error
	}
	replies := make(chan reply, 10)
	c := s.Turn(t.Context(), 1, nil)
	c.Meter = &Meter{}
	c.Meter.Begin(s.Config.Limits, noProcess{})
	c.Reply = func(id uint64, _ []byte, err error) { replies <- reply{id, err} }
	ask := func(id uint64) {
		t.Helper()
		body, err := json.Marshal(gorun.Call{ID: id, Function: "slow", Args: []json.RawMessage{[]byte(`"` + strings.Repeat("x", 598) + `"`)}})
		if err != nil {
			t.Fatal(err)
		}
		if handled, err := c.Handle(gorun.KindCall, body); !handled || err != nil {
			t.Fatal(handled, err)
		}
	}
	ask(1)
	ask(2)
	if r := <-replies; r.id != 2 || r.err == nil || !strings.Contains(r.err.Error(), "would take more than 1000 B together") {
		t.Errorf("a call too much: %+v", r)
	}
	close(release)
	c.Wait()
	if r := <-replies; r.id != 1 || r.err != nil {
		t.Errorf("the first: %+v", r)
	}
	ask(3)
	if r := <-replies; r.id != 3 || r.err != nil {
		t.Errorf("after the first has ended: %+v", r)
	}
	c.Wait()
}
