package idleconn_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlmhq/rlm/internal/data/remote/idleconn"
)

func TestASilentConnectionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		conn := idleconn.Limit(here, time.Second)
		defer conn.Close()

		begun := time.Now()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read: %v", err)
		}
		if _, err := conn.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write: %v", err)
		}
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("both took %s", took)
		}
	})
}

// A server receives for longer than the limit before it answers.
func TestWritingRenewsTheTimeForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		conn := idleconn.Limit(here, time.Second)
		defer conn.Close()
		go func() {
			defer there.Close()
			for range 10 {
				time.Sleep(900 * time.Millisecond)
				_, _ = there.Read(make([]byte, 1))
			}
			_, _ = there.Write([]byte("y"))
		}()

		answered := make(chan error)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			answered <- err
		}()
		synctest.Wait() // the answer is awaited from the beginning
		for range 10 {
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}
