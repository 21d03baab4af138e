// Package browser opens pages in a real Chromium, for tests of what a server shows to people.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// require turns a missing Chromium into a failure instead of a skip.
const require = "RLM_REQUIRE_BROWSER"

// The interval at which Wait polls, and its time limit.
const (
	waitPause = 20 * time.Millisecond
	waitLimit = time.Minute
)

var errWait = fmt.Errorf("it was not true within %v", waitLimit)

// noContext is the error code of Chromium for an expression without a page.
const noContext = -32000

// Page is a page in a real Chromium.
type Page struct {
	tb  testing.TB
	ctx context.Context //nolint:containedctx // chromedp represents the page by its context
}

// Open starts Chromium. Errors of the page's scripts fail the test.
func Open(tb testing.TB, flags ...chromedp.ExecAllocatorOption) *Page {
	tb.Helper()
	path, err := exec.LookPath("chromium")
	switch {
	case err != nil && os.Getenv(require) != "":
		tb.Fatal(err)
	case err != nil:
		tb.Skip("there is no chromium: install Debian's package")
	}

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 800),
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(options, flags...)...)
	ctx, end := chromedp.NewContext(ctx)
	tb.Cleanup(func() { end(); stop(); cancel() })

	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			tb.Errorf("the page failed: %v", e.ExceptionDetails)
		case *runtime.EventConsoleAPICalled:
			tb.Errorf("the page wrote: %v", e.Args)
		}
	})
	p := &Page{tb, ctx}
	p.Do(runtime.Enable())
	return p
}

// Do runs actions on the page.
func (p *Page) Do(actions ...chromedp.Action) {
	p.tb.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.tb.Fatal(err)
	}
}

// Eval returns the value of an expression in the page.
func Eval[T any](p *Page, expression string) (value T) {
	p.tb.Helper()
	p.Do(chromedp.Evaluate(expression, &value))
	return value
}

// Wait waits until an expression in the page is true.
//
// It evaluates the expression repeatedly, in the current page. chromedp.Poll evaluates it once, in
// the execution context that chromedp recorded last. That may be the context of the previous page,
// because chromedp records events later than it reports the end of a navigation.
func (p *Page) Wait(expression string) {
	p.tb.Helper()
	ctx, stop := context.WithTimeoutCause(p.ctx, waitLimit, errWait)
	defer stop()
	for {
		var isTrue bool
		err := chromedp.Run(ctx, chromedp.Evaluate("Boolean("+expression+")", &isTrue))
		switch {
		case err == nil && isTrue:
			return
		case ctx.Err() != nil:
			p.tb.Fatalf("%s: %v", expression, context.Cause(ctx))
		case err != nil && !isBetweenPages(err):
			p.tb.Fatalf("%s: %v", expression, err)
		}
		_ = chromedp.Run(ctx, chromedp.Sleep(waitPause))
	}
}

// isBetweenPages reports whether an expression had no value because the page was changing at that
// moment.
func isBetweenPages(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && refused.Code == noContext
}
