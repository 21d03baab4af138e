package httpclient

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Outcome reports the attempts and the wasted tokens of a call.
type Outcome struct {
	Attempts int
	wasted   llm.Usage // used by failed attempts that received part of a reply
}

// AddWaste returns the usage plus that of failed attempts.
func (o Outcome) AddWaste(u llm.Usage) llm.Usage { return addUsage(u, o.wasted) }

// Do makes a call and repeats it while this may help: see patience.
//
// It repeats the statuses 408, 409, 429 and 5xx, unless the header X-Should-Retry says
// otherwise, as the vendors' own clients do. It also repeats connections that fail, and replies
// that are late, truncated or unreadable. It does not repeat calls that would fail again: after
// other statuses, lack of credit, oversized replies, and redirects.
func (c *Client) Do(ctx context.Context, call Call) (Outcome, error) {
	var done Outcome
	p := patience{client: c, once: call.Once}
	for {
		round, err := c.pace.enter(ctx)
		if err != nil {
			return done, err
		}
		done.Attempts++
		hint, err := c.send(ctx, call)
		p.lowered = c.pace.leave(round, err)
		if err == nil {
			c.contact.success.Store(time.Now().UnixNano())
			return done, nil
		}
		failure := c.annotateError(err, call)
		if failure == nil {
			return done, err
		}

		failure.Attempts = done.Attempts
		isHopeless := call.GiveUp != nil && call.GiveUp(failure)
		pause, again := p.next(ctx, failure, hint)
		done.wasted = addUsage(done.wasted, failure.Usage)
		failure.Usage = done.wasted
		if !again || isHopeless {
			return done, failure
		}

		if err := wait(ctx, pause); err != nil {
			return done, err
		}
		if call.Restart != nil {
			call.Restart()
		}
	}
}

// annotateError adds provider and model to the error of an attempt, and removes the key from its
// messages. It returns nil for an error that is not a failure of the call, such as a cancelled
// context.
func (c *Client) annotateError(err error, call Call) *llm.Error {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return nil
	}

	failure.Provider, failure.Model = c.options.Name, call.Model
	if errors.Is(failure, kind.ErrAuth) {
		failure.KeyFrom = c.options.KeyFrom
	}
	failure.Message = c.clean(failure.Message)
	if failure.Err != nil {
		failure.Err = cleanError{text: c.clean(failure.Err.Error()), err: failure.Err}
	}
	return failure
}

// isWorthRepeating reports whether a request that failed in this way may succeed later. The
// server's hint takes precedence.
func isWorthRepeating(failure *llm.Error, hint retryHint) bool {
	switch hint {
	case "true":
		return true
	case "false":
		return false
	}
	return isOneOf(failure.Kind, kind.ErrRateLimited, kind.ErrServer, kind.ErrUnreachable,
		kind.ErrTimeout, kind.ErrCut, kind.ErrMalformed)
}

// isOneOf reports whether an error is of one of several kinds.
func isOneOf(err error, kinds ...kind.Error) bool {
	return slices.ContainsFunc(kinds, func(k kind.Error) bool { return errors.Is(err, k) })
}

// wait waits, and returns the cause of the context if the context ends first.
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

// maxRetryAfter caps the wait that a server may request.
const maxRetryAfter = 365 * 24 * time.Hour

// parseRetryAfter reads the wait that a server requests: Retry-After in seconds or as a
// date (RFC 9110, section 10.2.3), or Retry-After-Ms, which both vendors send. It
// returns 0 if the header is missing, in the past or malformed.
func parseRetryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseUint(header.Get("Retry-After-Ms"), 10, 63); err == nil {
		return multiply(ms, time.Millisecond)
	}

	value := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 63)
	switch {
	case err == nil:
		return multiply(seconds, time.Second)
	case errors.Is(err, strconv.ErrRange):
		return maxRetryAfter
	}

	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(0, date.Sub(now)), maxRetryAfter)
}

// multiply returns n units, at most maxRetryAfter.
func multiply(n uint64, unit time.Duration) time.Duration {
	if n > uint64(maxRetryAfter/unit) {
		return maxRetryAfter
	}
	return time.Duration(n) * unit
}

// addUsage returns the sum of two usages. The sum is estimated if either is.
func addUsage(a, b llm.Usage) llm.Usage {
	return llm.Usage{
		InputTokens:      addTokens(a.InputTokens, b.InputTokens),
		OutputTokens:     addTokens(a.OutputTokens, b.OutputTokens),
		CachedTokens:     addTokens(a.CachedTokens, b.CachedTokens),
		CacheWriteTokens: addTokens(a.CacheWriteTokens, b.CacheWriteTokens),
		ReasoningTokens:  addTokens(a.ReasoningTokens, b.ReasoningTokens),
		USD:              addUSD(a, b),
		Estimated:        a.Estimated || b.Estimated,
	}
}

// addUSD adds the costs that servers reported for two calls. The sum is 0, that is, unknown, if one
// of them used tokens at an unreported cost.
func addUSD(a, b llm.Usage) float64 {
	for _, u := range []llm.Usage{a, b} {
		if u != (llm.Usage{}) && u.USD == 0 {
			return 0
		}
	}
	return a.USD + b.USD
}

// addTokens adds two counts; a sum beyond int64 saturates.
func addTokens(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
