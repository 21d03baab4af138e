package wire

import (
	"context"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/sse"
)

// Listener sends an answer of type T while it is made. One goroutine calls its methods. If a call
// fails, the client has gone away, and there are no further calls.
type Listener[T any] interface {
	// Begin is called when the work has been accepted; from then on, it may take long.
	Begin() error
	// Add sends a piece of the text.
	Add(text string) error
	// Beat keeps the connection alive while there are no pieces.
	Beat() error
	// End sends the rest of the answer, or the error instead.
	End(got T, err error) error
}

// Listen passes an answer to a listener while work makes it. Work passes the pieces of the text to
// stream. An empty piece means that the text starts over, which fails if a piece was already sent.
// Work calls accepted before it waits for other work.
func Listen[T any](
	ctx context.Context, work func(stream func(string), accepted func()) (T, error), to Listener[T],
) error {
	type piece struct {
		text  string
		begun bool
		end   bool
		got   T
		err   error
	}
	pieces, gone := make(chan piece), make(chan struct{})
	defer close(gone)
	pass := func(p piece) {
		select {
		case pieces <- p:
		case <-gone:
		}
	}

	go func() {
		got, err := work(func(text string) { pass(piece{text: text}) }, func() { pass(piece{begun: true}) })
		pass(piece{end: true, got: got, err: err})
	}()

	beat := time.NewTicker(sse.Heartbeat)
	defer beat.Stop()
	wasSent, isBroken := false, false
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil // the client has gone away, which also ends work
		case <-beat.C:
			err = to.Beat()
		case p := <-pieces:
			isBroken = isBroken || !p.end && !p.begun && p.text == "" && wasSent
			switch {
			case p.begun:
				err = to.Begin()
			case p.end && p.err == nil && isBroken:
				return to.End(p.got, errBroken)
			case p.end:
				return to.End(p.got, p.err)
			case p.text != "" && !isBroken:
				wasSent = true
				err = to.Add(p.text)
			}
		}
		if err != nil {
			return nil // the client has gone away
		}
	}
}

var errBroken = problem.New(http.StatusBadGateway, "model_failed", "the model's server broke off: ask again")
