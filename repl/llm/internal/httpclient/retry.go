package httpclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// Outcome says what a call took.
type Outcome struct {
	Attempts int
	Wasted   llm.Usage // what failed attempts used, as far as parts of replies had come
}

// Do makes a call, again and again while that can help. Repeated are: the
// statuses 408, 409, 429 and 5xx, unless the server says otherwise by
// X-Should-Retry (the vendors' own clients do the same); connections that
// cannot be made or break; replies that take too long or are cut off, if no
// part of them was given away. Not repeated is what would fail again: other
// statuses, no credit, malformed and too large replies, redirects.
func (c *Client) Do(ctx context.Context, call Call) (Outcome, error) {
	var done Outcome
	for {
		done.Attempts++
		hint, err := c.send(ctx, call)
		if err == nil {
			return done, nil
		}
		failure, again := c.failed(err, call, hint)
		if failure == nil {
			return done, err
		}
		done.Wasted = done.Wasted.Add(failure.Usage)
		failure.Attempts, failure.Usage = done.Attempts, done.Wasted
		pause, ok := c.pause(failure, done.Attempts)
		deadline, hasDeadline := ctx.Deadline()
		if !again || !ok || done.Attempts >= c.HTTP.Attempts || hasDeadline && time.Until(deadline) < pause {
			return done, failure
		}
		if c.HTTP.Wait != nil {
			c.HTTP.Wait(failure, pause)
		}
		if err := wait(ctx, pause); err != nil {
			return done, err
		}
	}
}

// failed completes the error of an attempt and says whether to repeat it. It
// returns nil for what is no failure of the call, such as a cancelled context.
func (c *Client) failed(err error, call Call, hint string) (failure *llm.Error, again bool) {
	if !errors.As(err, &failure) {
		return nil, false
	}
	failure.Provider, failure.Model = c.Name, call.Model
	failure.Message = c.clean(failure.Message)
	if failure.Err != nil {
		failure.Err = cleanError{text: c.clean(failure.Err.Error()), err: failure.Err}
	}
	again = failure.Retryable()
	switch {
	case call.Given != nil && call.Given():
		again = false
	case hint == "true":
		again = true
	case hint == "false":
		again = false
	}
	return failure, again
}

// pause returns how long to wait before the next attempt, and false if that is
// longer than allowed. Half of it is chance, so that calls that failed together
// do not come back together.
func (c *Client) pause(failure *llm.Error, attempts int) (time.Duration, bool) {
	if asked := failure.RetryAfter; asked > 0 {
		return asked + rand.N(min(asked/10, time.Second)+1), asked <= c.HTTP.MaxWait
	}
	mean := c.HTTP.FirstWait
	for range attempts - 1 {
		mean = min(2*mean, c.HTTP.MaxWait)
	}
	return min(mean/2+rand.N(mean+1), c.HTTP.MaxWait), true
}

// wait waits, or returns the cause of the context's end.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// longest stands for waits that are longer than anybody waits.
const longest = 365 * 24 * time.Hour

// retryAfter reads how long a server asks to wait: Retry-After in seconds or
// as a date (RFC 9110, section 10.2.3), or Retry-After-Ms, which both vendors
// send. It is 0 if the header is missing, past or rubbish.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseUint(header.Get("Retry-After-Ms"), 10, 63); err == nil {
		return upTo(ms, time.Millisecond)
	}
	value := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 63)
	if err == nil {
		return upTo(seconds, time.Second)
	}
	if errors.Is(err, strconv.ErrRange) {
		return longest
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, date.Sub(now)), longest)
	}
	return 0
}

// upTo returns n units, or longest if that is more.
func upTo(n uint64, unit time.Duration) time.Duration {
	if n > uint64(longest/unit) {
		return longest
	}
	return time.Duration(n) * unit
}
