package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

// call ends a call that makes no progress, whatever its requests wait for.
type call struct {
	silence time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

// silentError reports that a call was ended.
type silentError struct{ silence time.Duration }

// Error returns the message.
func (e *silentError) Error() string {
	return fmt.Sprintf("the store has been silent for %s", e.silence)
}

// Timeout tells that the call may succeed later, as errors of package net do.
func (e *silentError) Timeout() bool { return true }

// callKey is the key of a call in the context of its requests.
type callKey struct{}

// begin begins a call, which must be ended.
func (s *Store) begin(ctx context.Context) (context.Context, *call) {
	ctx, cancel := context.WithCancelCause(ctx)
	silence := s.options.Silence
	timer := time.AfterFunc(silence, func() { cancel(&silentError{silence}) })
	c := &call{silence, timer, cancel}
	return context.WithValue(ctx, callKey{}, c), c
}

// progress gives the store the whole time again.
func (c *call) progress() { c.timer.Reset(c.silence) }

// pause stops the time until the next progress.
func (c *call) pause() { c.timer.Stop() }

// end frees what the call has.
func (c *call) end() {
	c.timer.Stop()
	c.cancel(nil)
}

// watcher sends requests, and tells their calls which of them sends bytes. The library reads the
// parts of an upload ahead, so what it has read does not show whether the store takes it.
type watcher struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := r.Context().Value(callKey{}).(*call)
	if ok && r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy
		r.Body = &watchedBody{r.Body, c}
	}
	return w.RoundTripper.RoundTrip(r)
}

// watchedBody is the body of a request.
type watchedBody struct {
	io.ReadCloser
	call *call
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.call.progress()
	return b.ReadCloser.Read(p)
}

// explain adds the attempt, bucket and key to an error, and what to change. It returns nil for nil.
func (s *Store) explain(ctx context.Context, attempt, digest string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, objects.ErrDamaged) {
		err = context.Cause(ctx)
	}
	if ctx.Err() == nil || isSilent(err) { // otherwise, the caller ended it
		err = s.describe(err)
	}
	return fmt.Errorf("cannot %s s3://%s/%s: %w", attempt, s.bucket, s.key(digest), err)
}

func isSilent(err error) bool {
	_, is := errors.AsType[*silentError](err)
	return is
}

// timeoutError is an error that tells whether time ran out.
type timeoutError interface {
	error
	Timeout() bool
}

// describe translates an error of a request, and says what to change.
func (s *Store) describe(err error) error {
	if said := minio.ToErrorResponse(err); said.StatusCode != 0 {
		return describeAnswer(said)
	}
	failed, isRequest := errors.AsType[*url.Error](err)
	if isRequest {
		err = failed.Err
	}

	timeout, isTimeout := errors.AsType[timeoutError](err)
	_, isNet := errors.AsType[*net.OpError](err)
	advice := fmt.Sprintf("check that %s is the endpoint, and that it works", s.endpoint)
	switch {
	case isTimeout && timeout.Timeout():
		return fmt.Errorf("the store does not answer: %w: %s", err, advice)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), // nobody may take it as an end
		isRequest && strings.HasPrefix(err.Error(), "Connection closed"): // what the library makes of it
		return errors.New("the store closes the connection: " + advice)
	case isNet, isRequest:
		return fmt.Errorf("cannot reach the store: %w: %s", err, advice)
	}
	return err
}

const otherRegion = "the bucket is in another region: add region=REGION to its address"

// refusals are codes of answers, with what to change.
var refusals = map[string]string{
	minio.NoSuchBucket:             "the bucket does not exist: create it, or name another one",
	"RequestTimeTooSkewed":         "the clocks differ: set the clock of this machine",
	"AuthorizationHeaderMalformed": otherRegion,
	"PermanentRedirect":            otherRegion,
	"QuotaExceeded":                "the store is full: remove something, or raise its quota",
	"XMinioStorageFull":            "the store is full: remove something, or add disks",
}

// describeAnswer translates an answer that refuses a request.
func describeAnswer(said minio.ErrorResponse) error {
	answer := fmt.Sprintf("%d %s", said.StatusCode, http.StatusText(said.StatusCode))
	if said.Code != "" && !strings.HasPrefix(said.Code, fmt.Sprint(said.StatusCode)) {
		answer = fmt.Sprintf("%d %.80s", said.StatusCode, said.Code)
	}

	if why, known := refusals[said.Code]; known {
		return fmt.Errorf("%s (%s)", why, answer)
	}
	switch said.StatusCode {
	case http.StatusNotFound:
		return objects.ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the store refuses it (%s): set AWS_ACCESS_KEY_ID and "+
			"AWS_SECRET_ACCESS_KEY to keys that may read, write, delete and list objects of this bucket", answer)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return fmt.Errorf("the store is overloaded (%s): try again later", answer)
	case http.StatusInsufficientStorage:
		return fmt.Errorf("the store is full (%s): remove something, or add disks", answer)
	}
	return fmt.Errorf("the store answers %s: %.300s", answer, said.Message)
}
