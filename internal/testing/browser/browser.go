// Package browser opens pages in a real Chromium, for tests of what a server shows a person.
package browser

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// require makes a missing Chromium a failure in place of a skip.
const require = "RLM_REQUIRE_BROWSER"

// Page is a page in a real Chromium.
type Page struct {
	tb  testing.TB
	ctx context.Context //nolint:containedctx // it is the page, as chromedp has it
}

// Open starts Chromium. Errors of the page's program fail the test.
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

// Do acts on the page.
func (p *Page) Do(actions ...chromedp.Action) {
	p.tb.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.tb.Fatal(err)
	}
}

// Eval returns the value of an expression of the page.
func Eval[T any](p *Page, expression string) (value T) {
	p.tb.Helper()
	p.Do(chromedp.Evaluate(expression, &value))
	return value
}

// Wait waits until an expression of the page is true.
func (p *Page) Wait(expression string) {
	p.tb.Helper()
	p.Do(chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(time.Minute)))
}
