package gohost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
	c.Reply = func(id uint64, _ []byte, err error) error {
		replies <- reply{id, err}
		return nil
	}
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

// TestADeafGuestIsWaitedForOnce makes many calls and takes no answer: the first that
// could not be sent is the last that is tried.
func TestADeafGuestIsWaitedForOnce(t *testing.T) {
	s := NewSession(tiers.Config{
		Functions: []tiers.Function{{Name: "ask"}},
		Host:      tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) { return tiers.Value("1"), nil }),
	})
	c := s.Turn(t.Context(), 1, nil)
	c.Meter = &Meter{}
	c.Meter.Begin(s.Config.Limits, noProcess{})
	tried, all := 0, make(chan struct{})
	c.Reply = func(uint64, []byte, error) error {
		<-all
		tried++
		return fmt.Errorf("cannot write: %w", os.ErrDeadlineExceeded)
	}
	for id := range 100 {
		body, err := json.Marshal(gorun.Call{ID: uint64(id), Function: "ask", Args: []json.RawMessage{[]byte(`1`)}})
		if err != nil {
			t.Fatal(err)
		}
		if handled, err := c.Handle(gorun.KindCall, body); !handled || err != nil {
			t.Fatal(handled, err)
		}
	}
	close(all)
	c.Wait()
	if tried != 1 || !c.Deaf() {
		t.Errorf("%d answers were tried", tried)
	}
	if handled, err := c.Handle(gorun.KindCall, []byte(`{}`)); !handled || !errors.Is(err, ErrProtocol) {
		t.Errorf("it is listened to still: %v %v", handled, err)
	}
}
