package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// File is an open file on a server. Read resumes after a broken connection.
type File struct {
	// Name is the last part of the file's path.
	Name string
	// Size is the number of bytes, or -1 if the server does not report it.
	Size int64

	ctx      context.Context //nolint:containedctx // the context of its reads, as in a request
	body     io.ReadCloser
	at       int64
	version  string // the file's version, for If-Range; empty if the server reports none
	reopen   func(ctx context.Context, at int64) (*http.Response, error)
	attempts int // remaining
}

// maxAttempts bounds the requests for one file.
const maxAttempts = 5

// pause is the time before the second attempt. It grows with each attempt.
var pause = 500 * time.Millisecond

// OpenURL opens the file at an https address.
func (c *Client) OpenURL(ctx context.Context, address string) (*File, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("its address cannot be read: write https://HOST/PATH, with %20 for a space")
	}
	u.Scheme, u.Fragment = strings.ToLower(u.Scheme), ""
	if err := c.check(u); err != nil {
		return nil, err
	}

	f := &File{ctx: ctx, Name: nameOf(u), attempts: maxAttempts}
	f.reopen = func(ctx context.Context, at int64) (*http.Response, error) {
		return c.get(ctx, u, at, f.version)
	}
	if err := f.begin(); err != nil {
		return nil, err
	}
	return f, nil
}

// nameOf returns the name of the file at a URL.
func nameOf(u *url.URL) string {
	if name := path.Base(u.Path); name != "/" && name != "." {
		return name
	}
	return u.Hostname()
}

// get requests the bytes of a file starting at offset at.
func (c *Client) get(ctx context.Context, u *url.URL, at int64, version string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("its address cannot be used")
	}

	r.Header.Set("User-Agent", "rlm")
	r.Header.Set("Accept-Encoding", "identity")
	if at > 0 {
		r.Header.Set("Range", "bytes="+strconv.FormatInt(at, 10)+"-")
		r.Header.Set("If-Range", version)
	}

	answer, err := c.http.Do(r) //nolint:gosec // each address is checked: see Client
	if err != nil {
		return nil, hideQuery(err)
	}
	return answer, nil
}

// hideQuery removes the URL from an error, because its query may contain a key.
func hideQuery(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// begin opens the file, retrying if the server has a temporary problem.
func (f *File) begin() error {
	for wait := pause; ; wait *= 2 {
		f.attempts--
		answer, err := f.reopen(f.ctx, f.at)
		if err == nil {
			err = f.take(answer)
		}
		if err == nil || f.attempts <= 0 || !mayPass(err) || f.ctx.Err() != nil {
			return err
		}

		select {
		case <-time.After(wait):
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		}
	}
}

// statusError is a response without a file.
type statusError struct{ code int }

// Error describes the problem and its remedy.
func (e *statusError) Error() string {
	said := strconv.Itoa(e.code) + " " + http.StatusText(e.code)
	switch e.code {
	case http.StatusNotFound, http.StatusGone:
		return "the server has no such file (" + said + ")"
	case http.StatusUnauthorized, http.StatusForbidden:
		return "the server refuses the file (" + said + "): it needs a key, or is private"
	}
	return "the server answers " + strings.TrimSpace(said)
}

// IsMissing reports whether an error means that the file does not exist.
func IsMissing(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.code == http.StatusNotFound
}

// mayPass reports whether the problem may be temporary, so that another attempt may succeed.
func mayPass(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.code >= 500 || status.code == http.StatusTooManyRequests
	}
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// take checks a response, and takes ownership of its body.
func (f *File) take(answer *http.Response) error {
	err := f.checkAnswer(answer)
	if err != nil {
		return errors.Join(err, answer.Body.Close())
	}
	if f.at == 0 {
		f.Size, f.version = answer.ContentLength, answer.Header.Get("Etag")
		if f.version == "" || strings.HasPrefix(f.version, "W/") {
			f.version = answer.Header.Get("Last-Modified")
		}
	}

	f.body = answer.Body
	return nil
}

func (f *File) checkAnswer(answer *http.Response) error {
	switch {
	case f.at == 0 && answer.StatusCode == http.StatusOK:
		return nil
	case answer.StatusCode == http.StatusPartialContent && f.at > 0:
		want := "bytes " + strconv.FormatInt(f.at, 10) + "-"
		if !strings.HasPrefix(answer.Header.Get("Content-Range"), want) {
			return errors.New("the server answers with another part of the file than it was asked for")
		}
		return nil
	case answer.StatusCode == http.StatusOK:
		return errors.New("the connection broke, and the file has changed meanwhile, or cannot be read in parts")
	}
	return &statusError{answer.StatusCode}
}

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	for {
		n, err := f.body.Read(p)
		f.at += int64(n)

		switch {
		case errors.Is(err, io.EOF) && f.Size >= 0 && f.at < f.Size:
			err = io.ErrUnexpectedEOF
		case err == nil, errors.Is(err, io.EOF):
			return n, err
		}
		if n > 0 {
			return n, nil // the next call gets the error again, or resumes
		}

		if f.ctx.Err() != nil {
			return 0, context.Cause(f.ctx)
		}
		if f.attempts <= 0 || f.version == "" {
			return 0, fmt.Errorf("the connection broke after %d of %d bytes: %w", f.at, f.Size, hideQuery(err))
		}
		_ = f.body.Close() // the connection is broken
		if err := f.begin(); err != nil {
			return 0, err
		}
	}
}

// Close closes the file.
func (f *File) Close() error { return f.body.Close() }
